//! A real machine refuses in the middle of an export. `exhaustion` explains how.

use super::exhaustion::{PRELUDE, on_a_small_disk, shell};
use super::export_jobs::source;

/// What scripts here share: an export elsewhere that is complete, and what every attempt must leave.
const EXPORT: &str = r#"
how="--emit arrow,precomputed,table --spec spec.json"
try 0 export-shards brain whole $how
# unfinished OUT: nothing there looks finished that is not
unfinished() {
    [ ! -e "$1/info" ] || fail "$1 looks complete"
    [ -d "$1" ] || return 0
    (cd "$1" && find . -name '*.arrow' -o -name '*.shard' -o -name '*.parquet') > "$said.files"
    while read -r file; do cmp -s "$1/$file" "whole/$file" || fail "$file is not whole"; done < "$said.files"
    rm "$said.files"
}
# completed OUT: the same command goes on, and all is there
completed() { try 0 export-shards brain "$1" $how; try 0 export-shards brain "$1" --check; }
"#;

#[test]
fn a_full_disk_ends_an_export_and_leaves_no_shard_in_part() {
    let script = r#"
for free in 0 40 200; do
    cat /dev/zero > "$disk/filler" 2>/dev/null || true
    size=$(stat -c %s "$disk/filler")
    truncate -s $((size - free * 1024)) "$disk/filler"
    refused "No space left on device" export-shards brain "$disk/out" $how
    grep -q "$disk" "$said" || fail "where?"
    unfinished "$disk/out"
    rm "$disk/filler"
    completed "$disk/out"
    rm -r "$disk/out"
done
"#;
    if let Some(run) = on_a_small_disk(&source(), "16m", &format!("{EXPORT}{script}")) {
        run.code(0);
    }
}

#[test]
fn a_target_that_must_not_be_written_is_named() {
    let script = r#"
mkdir "$disk/out"
mount -o remount,ro "$disk"
refused "Read-only file system" export-shards brain "$disk/out" $how
grep -q "$disk/out" "$said" || fail "where?"
unfinished "$disk/out"
mount -o remount,rw "$disk"
completed "$disk/out"
"#;
    if let Some(run) = on_a_small_disk(&source(), "16m", &format!("{EXPORT}{script}")) {
        run.code(0);
    }
}

#[test]
fn a_target_of_another_user_is_refused() {
    // Root becomes another user; any other user removes his own right to write.
    let script = r#"
mkdir out
if [ "$(id -u)" = 0 ]; then
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    other true 2>/dev/null || exit 98
    chmod 755 "$PWD"; chmod -R a+rX brain spec.json out
    other test -x "$bin" || { cp "$bin" "$PWD/bin"; bin=$PWD/bin; }
    other test -x "$bin" || exit 98
    real=$bin; as() { other "$real" "$@"; }
else
    real=$bin; as() { "$real" "$@"; }
fi
chmod a-w out
bin=as
refused "Permission denied" export-shards brain "$PWD/out" $how
grep -q "$PWD/out" "$said" || fail "where?"
bin=$real
chmod u+w out
unfinished out
completed out
"#;
    let run = shell(&source(), "sh", &["-c", &format!("{PRELUDE}{EXPORT}{script}")]);
    match run {
        Some(run) if run.code != 98 => drop(run.code(0)),
        _ => eprintln!("NOT CHECKED HERE: cannot run as another user"),
    }
}
