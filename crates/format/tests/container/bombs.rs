//! Small files that repeat the same bytes many times: readers do not keep a copy for each.

use bytes::Bytes;
use chunkyard_format::container::model::{ArrayMeta, AttributeValue, DType, IndexWidth};
use chunkyard_format::hostile::container::footer::{NewArray, NewFooter};
use chunkyard_store::ErrorKind;

use super::support::{empty_footer, layer_file, memory, open};

fn scalar(name: &str, attributes: Vec<(u64, u64)>) -> ArrayMeta {
    ArrayMeta {
        name: name.to_owned(),
        dtype: DType::Int8,
        shape: Vec::new(),
        dimension_names: Vec::new(),
        chunk_shape: Vec::new(),
        fill_value: None,
        deleted: false,
        attributes,
        index_width: IndexWidth::U16,
    }
}

fn file(metas: &[ArrayMeta], keys: &[String], values: &[AttributeValue]) -> Bytes {
    let arrays: Vec<_> =
        metas.iter().map(|meta| NewArray { meta, coords: &[], addresses: &[] }).collect();
    let footer =
        NewFooter { arrays: &arrays, attr_keys: keys, attr_values: values, ..empty_footer(0, "") };
    layer_file(&[], &footer)
}

#[tokio::test]
async fn a_long_value_that_many_attributes_share_is_refused_before_it_fills_the_memory() {
    let keys: Vec<String> = (0..2000).map(|number| format!("k{number}")).collect();
    let values = [AttributeValue::String("x".repeat(1 << 20))];
    let shared = |count: u64| (0..count).map(|key| (key, 0)).collect();
    let metas =
        [scalar("few", shared(20)), scalar("many", shared(2000)), scalar("none", Vec::new())];
    let store = memory();
    store.put("x.af", vec![file(&metas, &keys, &values)]).await.unwrap();

    let container = open(&store).await;
    let few = container.array("few").await.unwrap();
    assert_eq!(few.described().attributes.len(), 20);
    let error = container.array("many").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("more than 256 MiB"), "{error}");
    // The refused array takes nothing from the room that is left.
    container.array("many").await.unwrap_err();
    container.array("none").await.unwrap();
    let error = container.dataset().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[tokio::test]
async fn a_long_value_that_many_arrays_share_is_refused_before_it_fills_the_memory() {
    let metas: Vec<_> = (0..300).map(|at| scalar(&format!("a{at}"), vec![(0, 0)])).collect();
    let store = memory();
    let text = [AttributeValue::String("x".repeat(1 << 20))];
    store.put("x.af", vec![file(&metas, &["k".to_owned()], &text)]).await.unwrap();

    let container = open(&store).await;
    for at in 0..255 {
        container.array(&format!("a{at}")).await.unwrap();
    }
    let error = container.dataset().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// The file, with the names of all arrays pointing to the bytes of the first.
fn with_one_name(file: &[u8]) -> Vec<u8> {
    let mut bent = file.to_vec();
    let number = |at: usize| i64::from_le_bytes(*file[at..].first_chunk().unwrap());
    // Before the trailer of twelve bytes is the root of 96; the pointer to the arrays is at 24, their
    // number after it.
    let pointer = file.len() - 12 - 96 + 24;
    let arrays = pointer.checked_add_signed(number(pointer) as isize).unwrap();
    for array in 1..number(pointer + 8) as usize {
        let at = arrays + 168 * array;
        bent.copy_within(arrays..arrays + 8, at);
        let distance = number(arrays + 8) - 168 * array as i64;
        bent[at + 8..at + 16].copy_from_slice(&distance.to_le_bytes());
    }
    bent
}

#[tokio::test]
async fn names_that_are_the_same_bytes_are_not_listed_one_by_one() {
    let long = "x".repeat(300);
    let metas: Vec<_> = (0..600)
        .map(|at| scalar(if at == 0 { &long } else { "more-than-sixteen-bytes" }, Vec::new()))
        .collect();
    let store = memory();
    let bent = with_one_name(&file(&metas, &[], &[]));
    store.put("x.af", vec![bent.into()]).await.unwrap();
    let error = open(&store).await.names().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("share bytes"), "{error}");
}
