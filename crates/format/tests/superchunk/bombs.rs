//! Numbers in meta files that would take more memory than any machine has.

use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Creation, dtype};
use chunkyard_store::ErrorKind;

use super::support::{creation, memory, numbers, open, rows};

async fn put(place: &Place, name: &str, text: &str) {
    place.directory().put(name, vec![text.to_owned().into()]).await.unwrap();
}

/// A dataset of a few rows, opened after its meta files are changed.
async fn said(storage: &str, shape: &str) -> chunkyard_store::Result<Blz> {
    let place = memory();
    let blz = Blz::create(&place, &creation("<i8", 10, 3), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..5)]).await.unwrap();
    blz.flush().await.unwrap();
    put(&place, "meta/storage", storage).await;
    put(&place, "meta/attributes", "{}").await;
    put(&place, "meta/sizes", &format!(r#"{{"shape": {shape}, "nbytes": 40, "cbytes": 40}}"#))
        .await;
    Blz::open(&place, BlzOptions::default()).await
}

#[tokio::test]
async fn chunks_that_blosc_has_no_room_for_are_refused_before_memory_is_taken_for_one() {
    for (dtype, chunklen, shape) in [
        ("int64", u64::MAX, "[5]"),
        ("int64", 1 << 60, "[5]"),
        ("int64", 1 << 28, "[5]"),
        ("int64", 1, "[5, 1000000, 1000000]"),
        ("int64", 1, "[5, 18446744073709551615, 18446744073709551615]"),
        ("[('a', '<i8')]", 1 << 40, "[5]"),
    ] {
        let storage = format!(r#"{{"dtype": "{dtype}", "chunklen": {chunklen}}}"#);
        let error = said(&storage, shape).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{storage} {shape}: {error}");
        assert!(error.to_string().contains("as Blosc has them"), "{error}");
    }
}

#[tokio::test]
async fn the_default_of_a_long_row_takes_no_more_than_an_element() {
    let storage = r#"{"dtype": "uint8", "chunklen": 1, "dflt": 7}"#;
    let blz = said(storage, "[0, 2000000000]").await.unwrap();
    assert_eq!(blz.columns()[0].default_row.as_ref(), [7]);
    let listed = r#"{"dtype": "uint8", "chunklen": 1, "dflt": [7, 8]}"#;
    let blz = said(listed, "[0, 2]").await.unwrap();
    assert_eq!(blz.columns()[0].default_row.as_ref(), [7, 8]);
}

#[tokio::test]
async fn a_struct_that_is_one_element_of_gigabytes_is_refused() {
    let storage = r#"{"dtype": "[('a', 'u1', (60000000,))]", "chunklen": 1}"#;
    let error = said(storage, "[0]").await.and_then(|blz| blz.dataset()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[tokio::test]
async fn rows_of_many_elements_are_added_as_the_default_says() {
    let place = memory();
    let mut wished = Creation::new(dtype::parse("<i8").unwrap(), &[3]);
    (wished.wish.chunklen, wished.wish.default) = (Some(4), Some(7.into()));
    let blz = Blz::create(&place, &wished, BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..6)]).await.unwrap();
    blz.resize(13).await.unwrap();
    blz.flush().await.unwrap();
    let expected: Vec<i64> = (0..6).chain([7; 33]).collect();
    assert_eq!(numbers(&open(&place).await, "/").await, expected);
}
