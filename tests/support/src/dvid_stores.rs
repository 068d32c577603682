//! Stores that a real DVID wrote; `testdata/dvid/README.md` says how.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The stores in `testdata/dvid/stores`.
pub const DVID_STORES: [&str; 5] = ["basic", "edits", "branches", "offset-live", "many"];

/// A store that goes away with the test: `data/badger`, `data/mutlog` and `repos_info.json`.
pub fn dvid_store(name: &str) -> tempfile::TempDir {
    unpack_store(&dvid_testdata().join("stores").join(format!("{name}.store")))
}

/// What `testdata/dvid/make/pack_store.py` packed; it goes away with the test.
pub fn unpack_store(packed: &Path) -> tempfile::TempDir {
    let packed = zstd::decode_all(&std::fs::read(packed).unwrap()[..]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut rest = &packed[..];
    while !rest.is_empty() {
        let length = take(&mut rest, 2);
        let length = u16::from_le_bytes(*length.first_chunk().unwrap());
        let path = std::str::from_utf8(take(&mut rest, length.into())).unwrap();
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let file = File::create(file).unwrap();
        file.set_len(number(&mut rest)).unwrap();
        let extents = u32::from_le_bytes(*take(&mut rest, 4).first_chunk().unwrap());
        for _ in 0..extents {
            let (offset, length) = (number(&mut rest), number(&mut rest));
            file.write_all_at(take(&mut rest, length as usize), offset).unwrap();
        }
    }
    directory
}

/// The folder `testdata/dvid`.
pub fn dvid_testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid")
}

fn number(rest: &mut &[u8]) -> u64 {
    u64::from_le_bytes(*take(rest, 8).first_chunk().unwrap())
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, behind) = rest.split_at(count);
    *rest = behind;
    taken
}
