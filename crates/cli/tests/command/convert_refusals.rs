//! A real machine refuses in the middle of a conversion. `exhaustion` explains how.

use super::exhaustion::{PRELUDE, on_a_small_disk, shell, versions};

#[test]
fn a_full_disk_stops_a_conversion_which_goes_on_when_there_is_space() {
    let script = r#"
try 0 repo init "$PWD/src"
try 0 repo set "$PWD/src" /a v0.npy --chunks 50,50 --codec none
try 0 convert "$PWD/src" "$PWD/whole.zarr"
refusals=0
for free in 0 4 8 16 24 32 40 48 56 64; do
    for target in out.zarr out.repo; do
        cat /dev/zero > "$disk/filler" 2>/dev/null || true
        truncate -s $(($(stat -c %s "$disk/filler") - free * 1024)) "$disk/filler"
        found=0; "$bin" convert "$PWD/src" "$disk/$target" > "$said" 2>&1 || found=$?
        rm "$disk/filler"
        case $found in
            0) ;;
            1) grep -q "No space left on device" "$said" || fail "$target with $free KiB: why?"
               grep -q "$disk" "$said" || fail "$target with $free KiB: where?"
               refusals=$((refusals + 1))
               [ ! -e "$disk/out.zarr" ] || fail "$free KiB: the target is there"
               try 0 convert "$PWD/src" "$disk/$target" ;;
            *) fail "$target with $free KiB ended with $found" ;;
        esac
        case $target in
            *.zarr) diff -r "$PWD/whole.zarr" "$disk/$target" || fail "$free KiB: other bytes" ;;
            *.repo) try 0 verify "$disk/$target" --level bytes ;;
        esac
        rm -r "$disk/$target"
        [ -z "$(ls -A "$disk")" ] || fail "$free KiB: litter $(ls -A "$disk")"
    done
done
[ $refusals -gt 3 ] || fail "nothing was refused"
"#;
    if let Some(run) = on_a_small_disk(&versions(), "3m", script) {
        run.code(0);
    }
}

#[test]
fn a_chunk_that_may_not_be_read_is_named_and_the_target_is_not_there() {
    let script = r#"
if [ "$(id -u)" = 0 ]; then
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    other true 2>/dev/null || exit 98
    chmod 755 "$PWD"
    other test -x "$bin" || { cp "$bin" "$PWD/bin"; bin=$PWD/bin; }
    other test -x "$bin" || exit 98
    real=$bin; as() { other "$real" "$@"; }
else
    real=$bin; as() { "$real" "$@"; }
fi
try 0 repo init "$PWD/src"
try 0 repo set "$PWD/src" /a v0.npy --chunks 50,50
try 0 convert "$PWD/src" "$PWD/in.zarr"
mkdir "$PWD/free"; chmod 777 "$PWD/free"
chmod -R a+rX "$PWD/in.zarr"
chmod a-r "$PWD/in.zarr/a/c/2/1"
bin=as
for options in "" "--codec gzip:1" "--chunks 30,30" "--to repo"; do
    refused "Permission denied" convert "$PWD/in.zarr" "$PWD/free/out" $options
    grep -q "c/2/1" "$said" || fail "which chunk?"
    [ ! -e "$PWD/free/out/zarr.json" ] || fail "the target is there"
    rm -rf "$PWD/free/out" "$PWD"/free/.out*
done
bin=$real
chmod a+r "$PWD/in.zarr/a/c/2/1"
bin=as
try 0 convert "$PWD/in.zarr" "$PWD/free/out"
"#;
    match shell(&versions(), "sh", &["-c", &format!("{PRELUDE}{script}")]) {
        Some(run) if run.code != 98 => drop(run.code(0)),
        _ => eprintln!("NOT CHECKED HERE: cannot run as another user"),
    }
}

#[test]
fn damage_has_an_exit_code_and_names_the_chunk() {
    let script = r#"
try 0 repo init "$PWD/src"
try 0 repo set "$PWD/src" /a v0.npy --chunks 50,50 --codec zstd:1+crc32c
try 0 convert "$PWD/src" "$PWD/in.zarr"
printf 'x' | dd of="$PWD/in.zarr/a/c/1/1" bs=1 seek=100 conv=notrunc 2>/dev/null
for options in "" "--codec gzip:1" "--chunks 30,30"; do
    try 5 convert "$PWD/in.zarr" "$PWD/out.zarr" $options --restart
    grep -q "1, 1" "$said" || fail "which chunk?"
    [ ! -e "$PWD/out.zarr" ] || fail "the target is there"
done
mkdir "$PWD/there"; echo data > "$PWD/there/file"
try 4 convert "$PWD/src" "$PWD/there"
try 4 convert "$PWD/src" "$PWD/there" --overwrite
[ "$(cat "$PWD/there/file")" = data ] || fail "not ours to replace"
"#;
    let run = shell(&versions(), "sh", &["-c", &format!("{PRELUDE}{script}")]);
    run.expect("a shell").code(0);
}
