//! Reading selections of any format.

use chunkyard_array::{Axis, Points, Selection};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::Reader;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::model::{Extent, Picked, Way, dtype, extents, picked, sample_of};
use crate::convert::formats::{Entry, named};
use crate::convert::naive::Naive;
use crate::convert::support::{PATH, Yard};
use chunkyard_test_support::cases;

pub(super) async fn read(reader: &Reader, picked: &Picked) -> Naive {
    let elements = match &picked.way {
        Way::Selection(selection) => reader.read_selected_elements(selection).await,
        Way::Points(points) => reader.read_point_elements(points).await,
    };
    let size = reader.item_size().ok();
    Naive::from_elements(&picked.shape(), &elements.unwrap(), size)
}

/// Writes a sample in a format, with some chunks missing, and reads the picked elements.
async fn check(
    axes: &[Extent],
    dtype: &Value,
    codecs: Option<&str>,
    from: &'static Entry,
    picks: &[Picked],
) {
    let yard = Yard::memory();
    let sample = sample_of(axes, dtype, codecs).sparse(|index| index.iter().sum::<u64>() % 3 != 2);
    let source = from.write(&yard, "a", &sample).await;
    let reader = Reader::new(&source, PATH).unwrap();
    for picked in picks {
        assert_eq!(read(&reader, picked).await, picked.take(&sample.array), "{picked:?}");
    }
}

pub(super) fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

pub(super) fn some_picked(axes: Vec<Extent>) -> impl Strategy<Value = (Vec<Extent>, Vec<Picked>)> {
    let picks = prop::collection::vec(picked(&axes), 1..6);
    (Just(axes), picks)
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn any_selection_of_any_array_equals_indexing(
        (axes, picks) in extents().prop_flat_map(some_picked),
        dtype in dtype(),
        from in prop::sample::select(vec![named("zarr3"), named("shards"), named("repo")]),
    ) {
        block_on(check(&axes, &dtype, None, from, &picks));
    }
}

proptest! {
    #![proptest_config(cases(12))]

    // A chunk of 240 kB has several blocks, of which few are decoded.
    #[test]
    fn blocks_of_large_chunks_are_decoded_in_part(
        (axes, picks) in Just(vec![
            Extent { extent: 90, chunk: 60 },
            Extent { extent: 1200, chunk: 1000 },
        ]).prop_flat_map(some_picked),
        dtype in prop::sample::select(vec![json!("uint32"), json!("uint16"), json!("r24")]),
        codecs in prop::sample::select(vec!["blosc:zstd:1:shuffle", "blosc:lz4:1:noshuffle", "zstd:1", "none"]),
        from in prop::sample::select(vec![named("zarr3"), named("shards"), named("repo")]),
    ) {
        block_on(check(&axes, &dtype, Some(codecs), from, &picks));
    }
}

#[tokio::test]
async fn selections_outside_the_array_are_refused_by_name() {
    let yard = Yard::memory();
    let axes = [Extent { extent: 6, chunk: 4 }, Extent { extent: 5, chunk: 2 }];
    let sample = sample_of(&axes, &json!("int16"), None);
    let source = named("zarr3").write(&yard, "a", &sample).await;
    let reader = Reader::new(&source, PATH).unwrap();
    let beyond = Selection::new(vec![Axis::index(0), Axis::list(vec![5, 1])]);
    let error = reader.read_selected_elements(&beyond).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("index 5 is out of bounds for axis 1"), "{error}");
    assert!(error.to_string().contains(PATH), "{error}");
    let points = Points::new(vec![vec![6], vec![0]]).unwrap();
    assert_eq!(reader.read_point_elements(&points).await.unwrap_err().kind(), ErrorKind::Invalid);
    // Memory of another size is refused before anything is written to it.
    let two = Selection::new(vec![Axis::index(0), Axis::list(vec![3, 1])]);
    let error = reader.read_selection_into(&two, vec![0; 3]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let read = reader.read_selection_into(&two, vec![0; 4]).await.unwrap();
    assert_eq!(read, [sample.array.cells[3].clone(), sample.array.cells[1].clone()].concat());
}
