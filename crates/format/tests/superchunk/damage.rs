//! Damaged bytes are found, and the error says where.

use bytes::Bytes;
use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions};
use chunkyard_store::{Error, ErrorKind};

use super::support::{creation, files, memory, resealed, rows, try_numbers};

const FILES: [&str; 4] = ["data/__1__.bin", "data/__2__.bin", "data/__3__.bin", "data/__4__.bin"];

async fn dataset() -> Place {
    let place = memory();
    let blz = Blz::create(&place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..95)]).await.unwrap();
    blz.flush().await.unwrap();
    place
}

async fn put(place: &Place, name: &str, bytes: Vec<u8>) {
    place.directory().put(name, vec![bytes.into()]).await.unwrap();
}

async fn read(place: &Place) -> chunkyard_store::Result<Vec<i64>> {
    let blz = Blz::open(place, BlzOptions::default()).await?;
    try_numbers(&blz, "/").await
}

/// Any bit of any file: the rows are right, or an error names the damaged file.
#[tokio::test]
async fn a_flipped_byte_anywhere_never_becomes_a_row() {
    let place = dataset().await;
    let expected: Vec<i64> = (0..95).collect();
    let mut noticed = 0;
    for (name, whole) in files(&place, "data").await {
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << (at % 8);
            put(&place, &name, bytes).await;
            match read(&place).await {
                Ok(found) => assert_eq!(found, expected, "{name} at {at}"),
                Err(error) => {
                    noticed += 1;
                    let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported];
                    assert!(kinds.contains(&error.kind()), "{name} at {at}: {error}");
                }
            }
        }
        put(&place, &name, whole.to_vec()).await;
    }
    assert!(noticed > 500, "{noticed}");
    assert_eq!(read(&place).await.unwrap(), expected);
}

#[tokio::test]
async fn a_file_that_is_cut_anywhere_gives_no_wrong_rows() {
    let place = dataset().await;
    for (name, whole) in files(&place, "data").await {
        for len in (0..whole.len()).step_by(7) {
            put(&place, &name, whole[..len].to_vec()).await;
            let error = read(&place).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} of {len}: {error}");
        }
        put(&place, &name, whole.to_vec()).await;
    }
}

#[tokio::test]
async fn a_missing_file_and_wrong_sizes_are_called_by_their_names() {
    let place = dataset().await;
    for name in FILES {
        let whole: Bytes = place.directory().get(name).await.unwrap().bytes;
        place.directory().delete(&[name.to_owned()]).await.unwrap();
        let error = read(&place).await.unwrap_err();
        let Error::Corrupt { file, expected, found, .. } = &error else { panic!("{error:?}") };
        // The rows behind the last full chunk may be in either of two files.
        assert!(file == name || name == FILES[3], "{error}");
        assert!(expected.contains("meta/sizes") && !found.is_empty(), "{error}");
        put(&place, name, whole.to_vec()).await;
    }
    let sizes = place.directory().get("meta/sizes").await.unwrap().bytes;
    let sizes = String::from_utf8(sizes.to_vec()).unwrap();
    for (from, to) in [("[95]", "[96]"), ("[95]", "[125]"), ("[95]", "[-1]"), ("shape", "shapes")] {
        put(&place, "meta/sizes", resealed(sizes.as_bytes(), from, to)).await;
        let error = read(&place).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{to}: {error}");
    }
    for len in 0..sizes.len() - 2 {
        put(&place, "meta/sizes", sizes.as_bytes()[..len].to_vec()).await;
        assert_eq!(read(&place).await.unwrap_err().kind(), ErrorKind::Corrupt, "{len}");
    }
    put(&place, "meta/sizes", resealed(sizes.as_bytes(), "[95]", "[42]")).await;
    assert_eq!(read(&place).await.unwrap(), (0..42).collect::<Vec<_>>());
}
