//! A real machine refuses: a full disk, a read-only one, another user's directory, no descriptors.
//!
//! Permission bits do not bind root, and tests often run as root, so these tests use limits that bind
//! every user: a small file system in a mount namespace, limits of the process, another user. If the
//! environment offers none of these, a test says so; the engine's tests then still refuse every
//! operation with a store that fails on purpose.

use std::process::Command;

use super::support::{Noise, Run, Scratch, npy};

/// The prelude of every script: the binary, a quiet run that keeps its exit code, and checks.
pub(super) const PRELUDE: &str = r#"
set -eu
fail() { echo "FAILED: $*; last said: $(cat "$said")" >&2; exit 99; }
said=$(mktemp); trap 'rm -f "$said"' EXIT
# try CODE ARGUMENTS...: the command must end with CODE
try() { code=$1; shift; found=0; "$bin" "$@" > "$said" 2>&1 || found=$?
        [ "$found" = "$code" ] || fail "$* ended with $found instead of $code"; }
# refused WHY ARGUMENTS...: the command must end with 1 and say why and where
refused() { why=$1; shift; try 1 "$@"; grep -q "$why" "$said" || fail "$* did not say: $why"
            grep -q "/" "$said" || fail "$* did not say where"; }
# refused_or_idle WHY ARGUMENTS...: the same, unless there was nothing to do
refused_or_idle() { why=$1; shift; found=0; "$bin" "$@" > "$said" 2>&1 || found=$?
                    [ "$found" = 0 ] || refused "$why" "$@"; }
# sound: all bytes are right and history is as it was
sound() { try 0 verify "$repo" --level bytes; [ "$("$bin" repo log "$repo" --json)" = "$history" ] || fail "another history"; }
remember() { history=$("$bin" repo log "$repo" --json); }
"#;

/// Runs a script in a namespace where `$disk` is a file system of `size`. `None` if that is not
/// permitted.
pub(super) fn on_a_small_disk(scratch: &Scratch, size: &str, script: &str) -> Option<Run> {
    std::fs::create_dir_all(scratch.path("disk")).unwrap();
    let mount = format!("mount -t tmpfs -o size={size} tmpfs disk 2>/dev/null || exit 98\n");
    let script = format!("{PRELUDE}{mount}disk=$PWD/disk; repo=$disk/r\n{script}");
    for flags in [&["-m"][..], &["-U", "-r", "-m"]] {
        let arguments: Vec<&str> = flags.iter().copied().chain(["sh", "-c", &script]).collect();
        match shell(scratch, "unshare", &arguments) {
            Some(run) if run.code != 98 && !run.stderr.contains("unshare failed") => {
                return Some(run);
            }
            _ => {}
        }
    }
    eprintln!("NOT CHECKED HERE: no file system can be mounted in a namespace");
    None
}

pub(super) fn shell(scratch: &Scratch, program: &str, arguments: &[&str]) -> Option<Run> {
    let binary = scratch.command(&[]).get_program().to_owned();
    let mut command = Command::new(program);
    command.args(arguments).env("bin", binary).current_dir(scratch.path("."));
    let output = command.output().ok()?;
    Some(Run {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A scratch directory with `v0.npy` and `v1.npy`, 40 KB each that no codec makes smaller.
pub(super) fn versions() -> Scratch {
    let scratch = Scratch::new();
    let mut noise = Noise(1);
    for version in 0..2 {
        let values = noise.words(10_000);
        scratch.write(&format!("v{version}.npy"), &npy("|u1", false, &[200, 200], &values));
    }
    scratch
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost_at_any_free_space() {
    let scratch = versions();
    let script = r#"
try 0 repo init "$repo"
try 0 repo set "$repo" /a v0.npy --chunks 50,50
try 0 repo set "$repo" /a v0.npy
remember
for free in 0 4 8 12 16 24 32 40 48 56 64 72 80 96; do
    cat /dev/zero > "$disk/filler" 2>/dev/null || true
    size=$(stat -c %s "$disk/filler")
    truncate -s $((size - free * 1024)) "$disk/filler"
    for work in "set $repo /a v1.npy" "optimise $repo" "repack $repo" "expire $repo --keep-last 9" \
                "attrs $repo /a --set {\"k\":$free}"; do
        found=0; "$bin" repo $work > "$said" 2>&1 || found=$?
        case $found in
            0) remember ;;
            1) grep -q "No space left on device" "$said" || fail "$work with $free KiB: why?"
               grep -q "$disk" "$said" || fail "$work with $free KiB: where?" ;;
            *) fail "$work with $free KiB ended with $found" ;;
        esac
        sound
    done
    # Collecting frees space even on a full disk, or says that it cannot.
    found=0; "$bin" repo gc "$repo" --min-age 0s > "$said" 2>&1 || found=$?
    [ "$found" -le 1 ] || fail "gc with $free KiB ended with $found"
    rm "$disk/filler"
    sound
done
try 0 repo set "$repo" /a v1.npy
try 0 repo gc "$repo" --min-age 0s
remember; sound
[ -z "$("$bin" verify "$repo" --json | grep -o '"orphan-files":[ ]*[1-9]')" ] || fail "litter stays"
[ -z "$(find "$repo" -name '.tmp-*')$(ls "$repo/.tmp" 2>/dev/null)" ] || fail "temporary files stay"
"#;
    if let Some(run) = on_a_small_disk(&scratch, "3m", script) {
        run.code(0);
    }
}

#[test]
fn a_read_only_file_system_can_be_read_and_nothing_else() {
    let scratch = versions();
    let script = r#"
try 0 repo init "$repo"
try 0 repo set "$repo" /a v0.npy --chunks 50,50
try 0 repo set "$repo" /a v1.npy
remember
mount -o remount,ro "$disk"
why="Read-only file system"
refused "$why" repo set "$repo" /a v0.npy
refused_or_idle "$why" repo repack "$repo"
refused_or_idle "$why" repo optimise "$repo"
refused "$why" repo expire "$repo" --keep-last 1
refused "$why" repo tag "$repo" create t
refused "$why" repo init "$disk/other"
try 0 repo get "$repo" /a -o "$said.npy"
rm "$said.npy"
sound
mount -o remount,rw "$disk"
try 0 repo expire "$repo" --keep-last 1
mount -o remount,ro "$disk"
refused "$why" repo gc "$repo" --min-age 0s
remember; sound
mount -o remount,rw "$disk"
try 0 repo gc "$repo" --min-age 0s
try 0 repo set "$repo" /a v0.npy
remember; sound
"#;
    if let Some(run) = on_a_small_disk(&scratch, "4m", script) {
        run.code(0);
    }
}

#[test]
fn another_users_repository_is_never_written_and_is_read_if_permitted() {
    let scratch = versions();
    // Root becomes another user; any other user removes his own right to write.
    let script = r#"
if [ "$(id -u)" = 0 ]; then
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    other true 2>/dev/null || exit 98
    other test -x "$bin" 2>/dev/null && other test -r "$PWD/v0.npy" || { chmod 755 "$PWD"; }
    other test -x "$bin" || { cp "$bin" "$PWD/bin"; bin=$PWD/bin; }
    other test -x "$bin" || exit 98
    real=$bin; as() { other "$real" "$@"; }
else
    real=$bin; as() { "$real" "$@"; }
fi
repo=$PWD/r
try 0 repo init "$repo"
try 0 repo set "$repo" /a v0.npy --chunks 50,50
remember
chmod -R a+rX,a-w "$repo"
bin=as
why="Permission denied"
refused "$why" repo set "$repo" /a v1.npy
refused_or_idle "$why" repo optimise "$repo"
refused "$why" repo tag "$repo" create t
refused "$why" repo init "$repo/below"
sound
chmod a-rx "$repo"
refused "$why" repo log "$repo"
refused "$why" repo set "$repo" /a v1.npy
chmod -R u+rwX "$repo"
bin=$real
sound
try 0 repo set "$repo" /a v1.npy
"#;
    let run = shell(&scratch, "sh", &["-c", &format!("{PRELUDE}{script}")]);
    match run {
        Some(run) if run.code != 98 => drop(run.code(0)),
        _ => eprintln!("NOT CHECKED HERE: cannot run as another user"),
    }
}

#[test]
fn a_lack_of_descriptors_is_reported_and_nothing_is_lost() {
    let scratch = versions();
    let script = r#"
repo=$PWD/r
try 0 repo init "$repo"
try 0 repo set "$repo" /a v0.npy --chunks 20,20
remember
refusals=0
for limit in 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20 24; do
    for work in "set $repo /a v1.npy" "optimise $repo" "repack $repo" "get $repo /a -o $PWD/out.npy" "gc $repo"; do
        found=0; (ulimit -n $limit; exec "$bin" repo $work) > "$said" 2>&1 || found=$?
        case $found in
            0) remember ;;
            1) grep -q "Too many open files" "$said" || fail "$work with $limit: why?"; refusals=$((refusals + 1)) ;;
            127) ;; # not even the libraries could be loaded
            *) fail "$work with $limit descriptors ended with $found" ;;
        esac
        sound
    done
done
[ $refusals -gt 0 ] || fail "nothing was refused"
try 0 repo set "$repo" /a v1.npy
"#;
    let run = shell(&scratch, "sh", &["-c", &format!("{PRELUDE}{script}")]);
    run.expect("a shell").code(0);
}

#[test]
fn a_file_size_limit_is_reported_and_nothing_is_lost() {
    let scratch = versions();
    // If the signal is ignored, the write fails with EFBIG.
    let script = r#"
repo=$PWD/r
try 0 repo init "$repo"
try 0 repo set "$repo" /a v0.npy --chunks 200,200
remember
for blocks in 0 1 4 16 64; do
    found=0; (trap '' XFSZ; ulimit -f $blocks; exec "$bin" repo set "$repo" /a v1.npy) > "$said" 2>&1 || found=$?
    [ $found = 1 ] || fail "with $blocks blocks it ended with $found"
    # With none at all, not even the reason can be written down.
    [ $blocks = 0 ] || grep -q "File too large" "$said" || fail "why?"
    sound
done
try 0 repo set "$repo" /a v1.npy
try 0 repo gc "$repo" --min-age 0s
remember; sound
"#;
    let run = shell(&scratch, "sh", &["-c", &format!("{PRELUDE}{script}")]);
    run.expect("a shell").code(0);
}
