//! Written data is read back, layer by layer.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_format::container::Container;
use chunkyard_format::container::model::{AttributeValue, StatValue};
use chunkyard_format::container::{CompactOptions, ContainerOptions};
use chunkyard_store::{Error, ErrorKind};
use futures::TryStreamExt;

use super::support::{create, definition, directory, memory, open, place, read, write, write_box};

#[tokio::test(flavor = "multi_thread")]
async fn flushed_data_is_there_when_the_container_is_opened_again() {
    let (_temp, local) = directory();
    for store in [local, memory()] {
        let container = create(&store).await;
        container.define(definition("a/b", &[4, 5], &[2, 3])).await.unwrap();
        write_box(&container, "a/b", &[0, 0], &[4, 5], (0..20).collect()).await;
        assert_eq!(read(&container, "a/b").await, (0..20).collect::<Vec<_>>());
        assert!(open(&store).await.names().await.unwrap().is_empty());
        let flushed = container.flush().await.unwrap().unwrap();
        assert_eq!(flushed.layer, 1);
        assert_eq!(flushed.note, None);
        for container in [&container, &open(&store).await] {
            assert_eq!(container.names().await.unwrap(), ["a/b"]);
            assert_eq!(read(container, "a/b").await, (0..20).collect::<Vec<_>>());
            assert!(!container.is_changed());
        }
        // One chunk of four is in the second layer; the others are found below.
        write_box(&container, "a/b", &[1, 1], &[1, 1], vec![-1]).await;
        assert_eq!(container.flush().await.unwrap().unwrap().layer, 2);
        let mut expected: Vec<i32> = (0..20).collect();
        expected[6] = -1;
        let again = open(&store).await;
        assert_eq!(read(&again, "a/b").await, expected);
        assert_eq!(again.layers().await.unwrap()[2].chunks, 1);
        let stats = again.statistics("a/b").await.unwrap().unwrap();
        assert_eq!((stats.min, stats.max), (Some(StatValue::Int(-1)), Some(StatValue::Int(19))));
        assert_eq!((stats.null_count, stats.row_count), (0, 20));
        let compacted = again.compact(&CompactOptions::default()).await.unwrap();
        assert_eq!(compacted.layers, 3);
        for container in [&again, &open(&store).await] {
            assert_eq!(read(container, "a/b").await, expected);
            assert_eq!(container.layers().await.unwrap().len(), 1);
            assert_eq!(container.statistics("a/b").await.unwrap().unwrap().null_count, 0);
        }
        // Numbers continue: none is ever used twice.
        write_box(&again, "a/b", &[3, 4], &[1, 1], vec![5]).await;
        assert_eq!(again.flush().await.unwrap().unwrap().layer, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_can_be_opened_as_of_a_layer() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[4], &[2])).await.unwrap();
    for value in 1..=3 {
        write(&container, "a", &[0], vec![value]).await;
        container.flush().await.unwrap();
    }
    for layer in 1..=3 {
        let options = ContainerOptions { as_of: Some(layer), ..Default::default() };
        let then = Container::open(&place(&store), options).await.unwrap();
        assert_eq!(read(&then, "a").await[0], i32::try_from(layer).unwrap());
        let refused = then.delete("a").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    let options = ContainerOptions { as_of: Some(9), ..Default::default() };
    let error = Container::open(&place(&store), options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_set_listed_and_removed_across_layers() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[1], &[1])).await.unwrap();
    container.define(definition("b", &[1], &[1])).await.unwrap();
    container.set_attribute("a", "units", AttributeValue::String("K".into())).await.unwrap();
    container.set_attribute("b", "scale", AttributeValue::Float64(0.5)).await.unwrap();
    container.flush().await.unwrap();
    container.set_attribute("a", "offset", AttributeValue::Int64(7)).await.unwrap();
    container.flush().await.unwrap();
    assert!(container.remove_attribute("a", "units").await.unwrap());
    assert!(!container.remove_attribute("a", "units").await.unwrap());
    container.flush().await.unwrap();
    let container = open(&store).await;
    let described = container.describe("a").await.unwrap();
    assert_eq!(described.attributes, [("offset".to_owned(), AttributeValue::Int64(7))]);
    let scale = container.attribute("b", "scale").await.unwrap();
    assert_eq!(scale, Some(AttributeValue::Float64(0.5)));
    let list = AttributeValue::Int8List(vec![1]);
    let refused = container.set_attribute("a", "list", list).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_grows_and_shrinks_and_forgets_what_was_cut_off() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[5], &[4])).await.unwrap();
    write(&container, "a", &[0], vec![1, 2, 3, 4, 5]).await;
    container.flush().await.unwrap();
    container.resize("a", &[7]).await.unwrap();
    assert_eq!(read(&container, "a").await, [1, 2, 3, 4, 5, 0, 0]);
    write(&container, "a", &[6], vec![7]).await;
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [1, 2, 3, 4, 5, 0, 7]);
    container.resize("a", &[3]).await.unwrap();
    assert_eq!(read(&container, "a").await, [1, 2, 3]);
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [1, 2, 3]);
    container.resize("a", &[8]).await.unwrap();
    assert_eq!(read(&container, "a").await, [1, 2, 3, 0, 0, 0, 0, 0]);
    container.flush().await.unwrap();
    let container = open(&store).await;
    assert_eq!(read(&container, "a").await, [1, 2, 3, 0, 0, 0, 0, 0]);
    container.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [1, 2, 3, 0, 0, 0, 0, 0]);
    let stats = container.statistics("a").await.unwrap().unwrap();
    assert_eq!((stats.null_count, stats.row_count), (4, 8));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_is_appended_to_and_read_as_a_stream() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[0, 3], &[2, 2])).await.unwrap();
    let rows = |values: std::ops::Range<i32>| {
        ElementsBuf::Fixed(values.flat_map(i32::to_le_bytes).collect())
    };
    container.append("a", 0, 1, rows(0..3)).await.unwrap();
    container.flush().await.unwrap();
    container.append("a", 0, 4, rows(3..15)).await.unwrap();
    // Too few elements: nothing changes.
    let refused = container.append("a", 0, 2, rows(0..1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(
        container.append("a", 2, 1, rows(0..3)).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    container.flush().await.unwrap();
    let container = open(&store).await;
    assert_eq!(read(&container, "a").await, (0..15).collect::<Vec<_>>());
    let array = container.array("a").await.unwrap();
    let whole = Region::new([1, 0], [4, 3]).unwrap();
    let parts: Vec<_> = array.stream(&whole).unwrap().try_collect().await.unwrap();
    let origins: Vec<_> = parts.iter().map(|(part, _)| part.origin().to_vec()).collect();
    assert_eq!(origins, [[1, 0], [1, 2], [2, 0], [2, 2], [4, 0], [4, 2]]);
    let elements = parts.iter().map(|(part, _)| part.num_elements()).sum::<u64>();
    assert_eq!(elements, 12);
    assert!(matches!(&parts[1].1, ElementsBuf::Fixed(bytes) if bytes == &5_i32.to_le_bytes()));
}
