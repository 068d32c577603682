//! Repositories of released versions, kept in `testdata/repo` and read forever. `make.sh` beside them
//! made them.

use std::path::{Path, PathBuf};

use chunkyard_repo::{Level, OpenOptions, Repository, Version};

use super::support::read_at;

fn directories() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/repo");
    let entries = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// The elements of a NumPy file: what follows its header.
fn elements(npy: &Path) -> Vec<u8> {
    let bytes = std::fs::read(npy).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    bytes[10 + header..].to_vec()
}

#[tokio::test]
async fn repositories_of_every_released_version_are_read() {
    let directories = directories();
    assert!(!directories.is_empty());
    for directory in directories {
        let place = directory.join("repository");
        let repo = Repository::open(place.to_str().unwrap(), OpenOptions::default()).await.unwrap();
        let report = repo.verify(Level::Bytes).await.unwrap();
        assert_eq!(report.findings, [], "{}", directory.display());

        let mut compared = 0;
        for entry in std::fs::read_dir(&directory).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "npy") {
                continue;
            }
            // `<version>-<path, with - for />.npy`
            let name = file.file_stem().unwrap().to_str().unwrap();
            let (version, path) = name.split_once('-').unwrap();
            let path = format!("/{}", path.replace('-', "/"));
            let version = Version::Named(version.to_owned());
            let found = read_at(&repo, &version, &path).await.unwrap();
            assert_eq!(found, elements(&file), "{}", file.display());
            compared += 1;
        }
        assert!(compared > 0, "{}", directory.display());

        let session = repo.readonly_session(&Version::Default).await.unwrap();
        assert!(session.attributes("/noise").await.unwrap().contains_key("history"));
        assert!(session.node("/segmentation/labels").unwrap().is_array());
    }
}
