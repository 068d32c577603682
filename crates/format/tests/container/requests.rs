//! How many requests an action takes. An object store bills for each of them.

use chunkyard_array::Region;
use chunkyard_format::container::model::AttributeValue;
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_store::{Counted, Counts, Store, block_codec};

use super::support::{create, definition, memory, open, place, write};

fn requests(counts: Counts) -> u64 {
    let Counts { gets, puts, lists, heads, deletes, moves, .. } = counts;
    gets + puts + lists + heads + deletes + moves
}

/// A container of so many layers over its base; each writes one chunk of 100, and an attribute.
async fn layered(store: &Store, layers: i32) {
    let container = create(store).await;
    container.define(definition("a", &[100_000], &[1000])).await.unwrap();
    for layer in 0..layers {
        let at = u64::from(layer as u32) % 100 * 1000;
        write(&container, "a", &[at], vec![layer + 1; 1000]).await;
        container.set_attribute("a", "last", AttributeValue::Int32(layer)).await.unwrap();
        container.flush().await.unwrap();
    }
}

#[tokio::test]
async fn opening_costs_a_request_per_layer_and_two_more() {
    for layers in [0, 1, 20] {
        let store = memory();
        layered(&store, layers).await;
        let (store, counted) = Counted::wrap(&store);
        let container = open(&store).await;
        let counts = counted.take();
        let files = u64::from(layers as u32) + 1;
        assert!(requests(counts) <= files + 2, "{layers}: {counts:?}");
        if layers > 0 {
            container.array("a").await.unwrap();
            container.names().await.unwrap();
            assert_eq!(requests(counted.take()), 0, "the names are known");
        }
    }
}

#[tokio::test]
async fn the_first_chunk_of_an_opened_container_costs_one_request() {
    let store = memory();
    layered(&store, 5).await;
    let (store, counted) = Counted::wrap(&store);
    let container = open(&store).await;
    let array = container.array("a").await.unwrap();
    counted.take();
    let chunk = Region::new([2000], [1000]).unwrap();
    array.reader().unwrap().read_region(&chunk).await.unwrap();
    let counts = counted.take();
    assert_eq!(requests(counts), 1, "{counts:?}");
    array.reader().unwrap().read_region(&chunk).await.unwrap();
    assert!(requests(counted.take()) <= 1);
    // A chunk that was never written is known to be missing.
    let missing = Region::new([50_000], [10_000]).unwrap();
    array.reader().unwrap().read_region(&missing).await.unwrap();
    assert_eq!(requests(counted.take()), 0);
}

#[tokio::test]
async fn a_flush_costs_the_same_however_many_layers_there_are() {
    let mut costs = Vec::new();
    for layers in [2, 30] {
        let store = memory();
        layered(&store, layers).await;
        let (store, counted) = Counted::wrap(&store);
        let container = open(&store).await;
        write(&container, "a", &[0], vec![-1; 1000]).await;
        counted.take();
        container.flush().await.unwrap();
        costs.push(requests(counted.take()));
    }
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0] <= 10, "{costs:?}");
}

#[tokio::test]
async fn a_flush_of_one_changed_chunk_reads_only_that_chunk() {
    let store = memory();
    let codec = block_codec("none").unwrap();
    let options = ContainerOptions { codec, ..Default::default() };
    let container = Container::create(&place(&store), options.clone()).await.unwrap();
    let chunk = 32_000;
    container.define(definition("a", &[10 * chunk], &[chunk])).await.unwrap();
    write(&container, "a", &[0], (0..10 * chunk as i32).collect()).await;
    container.flush().await.unwrap();
    let (store, counted) = Counted::wrap(&store);
    let container = Container::open(&place(&store), options).await.unwrap();
    counted.take();
    // In the middle, so that neither the smallest nor the largest element goes.
    write(&container, "a", &[5 * chunk + 7], vec![1]).await;
    container.flush().await.unwrap();
    let counts = counted.take();
    let bytes = 4 * chunk;
    // Once to change it and once for its old statistics; and the end of the new layer.
    assert!(counts.get_bytes < 2 * bytes + 70_000, "{counts:?}");
    assert!(counts.put_bytes < bytes + 20_000, "{counts:?}");
    // A whole chunk is not read before it is written; its statistics go away with it.
    write(&container, "a", &[3 * chunk], vec![5; chunk as usize]).await;
    assert_eq!(requests(counted.take()), 0);
}

#[tokio::test]
async fn compacting_reads_each_layer_once() {
    let store = memory();
    layered(&store, 20).await;
    let (store, counted) = Counted::wrap(&store);
    let container = open(&store).await;
    counted.take();
    container.compact(&CompactOptions::default()).await.unwrap();
    let counts = counted.take();
    // The container is opened anew, and each block is read once more.
    assert!(counts.gets <= 20 * 3 + 10, "{counts:?}");
    assert_eq!(counts.deletes, 20, "{counts:?}");
}
