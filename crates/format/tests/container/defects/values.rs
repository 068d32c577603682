//! Elements, extents and attributes.

use bytes::Bytes;
use chunkyard_format::container::model::{AttributeValue, DType, FillValue};
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Definition};
use chunkyard_store::ErrorKind;

use super::text;
use crate::container::support::{
    create, definition, memory, open, place, read, read_text, write, write_text,
};

#[tokio::test]
async fn an_extent_beyond_32_bits_is_refused() {
    let container = create(&memory()).await;
    let large = (1 << 32) + 5;
    for refused in [definition("a", &[large], &[8]), definition("a", &[8], &[large])] {
        let error = container.define(refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("4294967301"), "{error}");
    }
    container.define(definition("a", &[u32::MAX.into()], &[8])).await.unwrap();
    let error = container.resize("a", &[large]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    write(&container, "a", &[u64::from(u32::MAX) - 1], vec![3]).await;
    container.flush().await.unwrap();
}

#[tokio::test]
async fn attributes_of_two_layers_do_not_mix() {
    let store = memory();
    let container = create(&store).await;
    for name in ["a", "b"] {
        container.define(definition(name, &[1], &[1])).await.unwrap();
    }
    container.set_attribute("a", "units", text("K")).await.unwrap();
    container.set_attribute("a", "scale", AttributeValue::Float64(0.5)).await.unwrap();
    container.set_attribute("b", "units", text("m")).await.unwrap();
    container.flush().await.unwrap();
    container.set_attribute("b", "offset", AttributeValue::Int64(3)).await.unwrap();
    container.flush().await.unwrap();
    container.set_attribute("a", "offset", AttributeValue::Int64(4)).await.unwrap();
    container.remove_attribute("a", "scale").await.unwrap();
    container.flush().await.unwrap();
    let expected = [
        ("a", "units", Some(text("K"))),
        ("a", "scale", None),
        ("a", "offset", Some(AttributeValue::Int64(4))),
        ("b", "units", Some(text("m"))),
        ("b", "offset", Some(AttributeValue::Int64(3))),
    ];
    for compacted in [false, true] {
        if compacted {
            open(&store).await.compact(&CompactOptions::default()).await.unwrap();
        }
        let container = open(&store).await;
        for (array, key, value) in &expected {
            let found = container.attribute(array, key).await.unwrap();
            assert_eq!(found, *value, "{array} {key}, compacted: {compacted}");
        }
    }
}

#[tokio::test]
async fn more_than_65535_attribute_keys_are_kept_apart() {
    let store = memory();
    let container = create(&store).await;
    let attributes = (0..65_600).map(|n| (format!("key {n}"), AttributeValue::Int64(n)));
    let attributes = attributes.collect();
    let definition = Definition { attributes, ..definition("a", &[1], &[1]) };
    container.define(definition).await.unwrap();
    container.flush().await.unwrap();
    let container = open(&store).await;
    for n in [0, 1, 65_535, 65_536, 65_537, 65_599] {
        let found = container.attribute("a", &format!("key {n}")).await.unwrap();
        assert_eq!(found, Some(AttributeValue::Int64(n)));
    }
}

#[tokio::test]
async fn a_zero_length_axis_can_be_written() {
    let store = memory();
    let container = create(&store).await;
    container.define(Definition::new("a", DType::Int32, &[0, 3])).await.unwrap();
    container.define(definition("b", &[2, 0], &[1, 4])).await.unwrap();
    for name in ["a", "b"] {
        let array = container.array(name).await.unwrap();
        let shape: Vec<u64> = array.described().meta.shape.iter().map(|&n| n.into()).collect();
        let nothing = chunkyard_array::Region::whole(&shape);
        array.writer().unwrap().write_region(&nothing, Bytes::new()).await.unwrap();
    }
    container.flush().await.unwrap();
    let container = open(&store).await;
    assert!(read(&container, "a").await.is_empty());
    // It can grow from there.
    container.resize("a", &[2, 3]).await.unwrap();
    crate::container::support::write_box(&container, "a", &[1, 0], &[1, 3], vec![1, 2, 3]).await;
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0, 0, 0, 1, 2, 3]);
}

#[tokio::test]
async fn rewriting_a_chunk_leaves_no_dead_bytes() {
    let sizes = [1, 10].map(|times| async move {
        let store = memory();
        let codec = chunkyard_store::block_codec("none").unwrap();
        let options = ContainerOptions { codec, ..Default::default() };
        let container = Container::create(&place(&store), options).await.unwrap();
        container.define(definition("a", &[1000], &[1000])).await.unwrap();
        for time in 0..times {
            write(&container, "a", &[time], vec![1]).await;
        }
        container.flush().await.unwrap().unwrap().bytes
    });
    let [once, often] = sizes;
    assert_eq!(once.await, often.await);
}

#[tokio::test]
async fn strings_that_were_never_written_are_the_fill_value() {
    let store = memory();
    let container = create(&store).await;
    let definition = Definition {
        chunk_shape: Some(vec![2]),
        fill_value: Some(FillValue::String("n/a".to_owned())),
        ..Definition::new("s", DType::String, &[5])
    };
    container.define(definition).await.unwrap();
    write_text(&container, "s", 3, &["", "x"]).await;
    container.flush().await.unwrap();
    for compacted in [false, true] {
        if compacted {
            open(&store).await.compact(&CompactOptions::default()).await.unwrap();
        }
        let container = open(&store).await;
        assert_eq!(read_text(&container, "s").await, ["n/a", "n/a", "n/a", "", "x"]);
        let stats = container.statistics("s").await.unwrap().unwrap();
        assert_eq!((stats.null_count, stats.row_count), (3, 5));
    }
}

#[tokio::test]
async fn a_string_that_is_not_utf8_is_corrupt() {
    let container = create(&memory()).await;
    container.define(Definition::new("s", DType::String, &[1])).await.unwrap();
    let array = container.array("s").await.unwrap();
    let chunk = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    let written = array.write_chunk(&[0], [&chunk[..], &[0xff]].concat().into()).await;
    let region = chunkyard_array::Region::whole(&[1]);
    let read = match written {
        Err(error) => Err(error),
        Ok(()) => array.reader().unwrap().read_elements(&region).await,
    };
    let error = read.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error}");
}
