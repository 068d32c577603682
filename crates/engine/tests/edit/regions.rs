//! Writing parts of arrays: other readers find the same as after plain assignment.

use chunkyard_array::{Axis, Points, Region, Selection, Sharding};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::Reader;
use chunkyard_engine::format::zarr3::{Zarr3Array, Zarr3Editor};
use futures::future::try_join_all;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::hierarchy::{empty, spec};
use crate::convert::formats::twice;
use crate::convert::naive::{Naive, fill_of};
use crate::convert::support::{Yard, opened};
use crate::select::model::{Extent, Picked, Way, dtype, extents, picked, sample_of};
use chunkyard_test_support::cases;

async fn write(array: &Zarr3Array, picked: &Picked, elements: &Naive) {
    let given = elements.to_elements(array.reader().item_size().ok());
    match &picked.way {
        Way::Selection(selection) => array.writer().write_selected_elements(selection, given).await,
        Way::Points(points) => array.writer().write_point_elements(points, given).await,
    }
    .unwrap();
}

async fn whole(reader: &Reader, shape: &[u64]) -> Naive {
    let elements = reader.read_elements(&Region::whole(shape)).await.unwrap();
    Naive::from_elements(shape, &elements, reader.item_size().ok())
}

async fn check(axes: &[Extent], dtype: &Value, sharded: bool, writes: &[Picked]) {
    let yard = Yard::memory();
    let sample = sample_of(axes, dtype, None);
    let mut spec = sample.spec.clone();
    if sharded {
        let shards = twice(spec.chunk_shape().unwrap());
        spec = spec.sharded(&Sharding::new(&shards)).unwrap();
    }
    let editor = empty(&yard).await;
    let array = editor.create_array("/a", &spec).await.unwrap();
    let mut expected = Naive::filled(spec.shape(), &fill_of(&spec));
    for (number, picked) in writes.iter().enumerate() {
        let cells = sample.array.cells.iter().cycle().skip(number * 7);
        let elements: Vec<Vec<u8>> = cells.take(picked.indices.len()).cloned().collect();
        picked.put(&mut expected, &elements);
        write(&array, picked, &Naive { shape: picked.shape(), cells: elements }).await;
        assert_eq!(whole(array.reader(), spec.shape()).await, expected, "{picked:?}");
    }
    let source = opened(&yard.at("a")).await;
    assert_eq!(whole(&Reader::new(&source, "/a").unwrap(), spec.shape()).await, expected);
}

fn some_writes(axes: Vec<Extent>) -> impl Strategy<Value = (Vec<Extent>, Vec<Picked>)> {
    let writes = prop::collection::vec(picked(&axes), 1..6);
    (Just(axes), writes)
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn any_written_selection_is_found_by_any_reader(
        (axes, writes) in extents().prop_flat_map(some_writes),
        dtype in dtype(),
        sharded in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&axes, &dtype, sharded, &writes));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_of_one_process_do_not_undo_each_other() {
    for yard in Yard::both() {
        let editor = empty(&yard).await;
        editor.create_array("/a", &spec(&[64], &[8])).await.unwrap();
        // Each opens the hierarchy for itself, and writes every eighth element of every chunk.
        let writers = (0..8u8).map(|lane| {
            let store = yard.store("a");
            tokio::spawn(async move {
                let editor = Zarr3Editor::open(store).await.unwrap();
                let array = editor.array("/a").await.unwrap();
                let comb = Selection::new(vec![Axis::range(u64::from(lane), 8, 8).unwrap()]);
                array.writer().write_selection(&comb, vec![lane + 1; 8].into()).await.unwrap();
            })
        });
        try_join_all(writers).await.unwrap();
        let array = editor.array("/a").await.unwrap();
        let read = array.reader().read_region(&Region::whole(&[64])).await.unwrap();
        assert!(read.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 8 + 1));
    }
}

#[tokio::test]
async fn a_chunk_that_becomes_the_fill_value_is_deleted() {
    for yard in Yard::both() {
        let editor = empty(&yard).await;
        let array = editor.create_array("/a", &spec(&[4], &[2])).await.unwrap();
        let all = Selection::from(&Region::whole(&[4]));
        array.writer().fill_selection(&all, vec![5].into()).await.unwrap();
        yard.store("a").head("a/c/1").await.unwrap();
        array
            .writer()
            .fill_points(&Points::new(vec![vec![2, 3]]).unwrap(), vec![0].into())
            .await
            .unwrap();
        let error = yard.store("a").head("a/c/1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let read = array.reader().read_region(&Region::whole(&[4])).await.unwrap();
        assert_eq!(&read[..], [5, 5, 0, 0]);
    }
}

#[tokio::test]
async fn a_shard_is_read_anew_after_it_was_written() {
    let yard = Yard::directory();
    let editor = empty(&yard).await;
    let spec = spec(&[8], &[2]).sharded(&Sharding::new(&[8])).unwrap();
    let array = editor.create_array("/a", &spec).await.unwrap();
    for round in 1..4u8 {
        let one = Selection::new(vec![Axis::index(u64::from(round))]);
        array.writer().write_selection(&one, vec![round].into()).await.unwrap();
        let read = array.reader().read_selection_into(&one, vec![0]).await.unwrap();
        assert_eq!(read, [round]);
    }
    let read = array.reader().read_region(&Region::whole(&[8])).await.unwrap();
    assert_eq!(&read[..], [0, 1, 2, 3, 0, 0, 0, 0]);
    assert_eq!(json!(array.spec().shape()), json!([8]));
}
