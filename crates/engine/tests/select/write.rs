//! Writing selections of an array in a session.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Axis, Points, Region, Selection};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::repo::{
    Array, CommitOptions, Config, CreateOptions, OpenOptions, Repository, Session, Version,
};
use futures::future::try_join_all;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::model::{Extent, Picked, Way, dtype, extents, picked, sample_of};
use crate::convert::naive::{Naive, fill_of};
use chunkyard_test_support::{cases, memory};

/// A repository whose thresholds are so low that a few bytes leave the manifest.
async fn tiny_repository() -> Repository {
    let config =
        Config { inline_chunk_max: 8, own_file_min: 200, pack_bytes: 100, ..Config::default() };
    let create = CreateOptions { config, ..CreateOptions::default() };
    Repository::create_in(memory(), OpenOptions::default(), create).await.unwrap()
}

fn bytes_spec(shape: &[u64], chunks: &[u64]) -> ArraySpec {
    ArraySpec::builder(shape, chunks, "uint8").build().unwrap()
}

async fn read_all(session: &Arc<Session>, path: &str) -> Vec<u8> {
    let array = session.array(path).await.unwrap();
    let region = Region::whole(array.spec().shape());
    array.read_region(&region).await.unwrap().to_vec()
}

/// The values to write.
#[derive(Debug, Clone, Copy)]
enum What {
    /// Elements of the sample, from this one on.
    Each(usize),
    /// One element of the sample.
    One(usize),
    /// The fill value.
    Fill,
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => (0usize..50).prop_map(What::Each),
        1 => (0usize..50).prop_map(What::One),
        1 => Just(What::Fill),
    ]
}

async fn write(array: &Array, picked: &Picked, elements: &[Vec<u8>], what: What) {
    let size = array.item_size().ok();
    let given = Naive { shape: picked.shape(), cells: elements.to_vec() }.to_elements(size);
    let one = elements.first().filter(|_| size.is_some() && !matches!(what, What::Each(_)));
    match (&picked.way, one) {
        (Way::Selection(selection), Some(one)) => {
            array.fill_selection(selection, one.clone().into()).await.unwrap();
        }
        (Way::Points(points), Some(one)) => {
            array.writer().fill_points(points, one.clone().into()).await.unwrap();
        }
        (Way::Selection(selection), None) => {
            array.writer().write_selected_elements(selection, given).await.unwrap();
        }
        (Way::Points(points), None) => {
            array.writer().write_point_elements(points, given).await.unwrap()
        }
    }
}

async fn whole(session: &Arc<Session>, spec: &ArraySpec) -> Naive {
    let array = session.array("/a").await.unwrap();
    let elements = array.read_elements(&Region::whole(spec.shape())).await.unwrap();
    Naive::from_elements(spec.shape(), &elements, array.item_size().ok())
}

async fn check(axes: &[Extent], dtype: &Value, writes: &[(Picked, What)]) {
    let sample = sample_of(axes, dtype, None);
    let spec = &sample.spec;
    let repo = tiny_repository().await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/a", spec.clone()).await.unwrap();
    let fill = fill_of(spec);
    let mut expected = Naive::filled(spec.shape(), &fill);
    for (picked, what) in writes {
        let cells = &sample.array.cells;
        let element = |at: usize| cells.get(at % cells.len().max(1)).unwrap_or(&fill).clone();
        let elements: Vec<Vec<u8>> = (0..picked.indices.len())
            .map(|at| match what {
                What::Each(from) => element(from + at),
                What::One(which) => element(*which),
                What::Fill => fill.clone(),
            })
            .collect();
        write(&array, picked, &elements, *what).await;
        picked.put(&mut expected, &elements);
        assert_eq!(whole(&session, spec).await, expected, "{picked:?} {what:?}");
    }
    session.commit(CommitOptions::message("written")).await.unwrap();
    let later = repo.readonly_session(&Version::branch("main")).await.unwrap();
    assert_eq!(whole(&later, spec).await, expected);
}

fn some_writes(axes: Vec<Extent>) -> impl Strategy<Value = (Vec<Extent>, Vec<(Picked, What)>)> {
    let writes = prop::collection::vec((picked(&axes), what()), 1..8);
    (Just(axes), writes)
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn any_written_selection_equals_assignment(
        (axes, writes) in extents().prop_flat_map(some_writes),
        dtype in dtype(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&axes, &dtype, &writes));
    }
}

#[tokio::test]
async fn a_filled_selection_that_is_the_fill_value_stores_nothing() {
    let repo = tiny_repository().await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/a", bytes_spec(&[10], &[3])).await.unwrap();
    let all = Selection::new(vec![Axis::range(0, 1, 10).unwrap()]);
    array.fill_selection(&all, vec![7].into()).await.unwrap();
    assert_eq!(read_all(&session, "/a").await, [7; 10]);
    array.fill_selection(&all, vec![0].into()).await.unwrap();
    let chunks: Vec<Vec<u64>> = (0..4).map(|at| vec![at]).collect();
    let located = session.locate("/a", &chunks).await.unwrap();
    assert!(located.iter().all(Option::is_none), "{located:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_interleaved_elements_lose_nothing() {
    let repo = tiny_repository().await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/a", bytes_spec(&[200], &[16])).await.unwrap();
    let writers = (0..8u8).map(|lane| {
        let array = array.clone();
        tokio::spawn(async move {
            let comb = Selection::new(vec![Axis::range(u64::from(lane), 8, 25).unwrap()]);
            array.write_selection(&comb, vec![lane + 1; 25].into()).await.unwrap();
        })
    });
    try_join_all(writers).await.unwrap();
    let expected: Vec<u8> = (0..200u8).map(|at| at % 8 + 1).collect();
    assert_eq!(read_all(&session, "/a").await, expected);
}

#[tokio::test]
async fn too_many_too_few_and_outside_elements_are_refused() {
    let repo = tiny_repository().await;
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&[4, 4], &[2, 2], json!("int16")).build().unwrap();
    let array = session.create_array("/a", spec).await.unwrap();
    let corners = Selection::new(vec![Axis::range(0, 3, 2).unwrap(); 2]);
    let refused = |result: chunkyard_engine::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    };
    refused(array.write_selection(&corners, vec![0; 7].into()).await);
    refused(array.fill_selection(&corners, vec![0; 8].into()).await);
    refused(
        array.write_points(&Points::new(vec![vec![4], vec![0]]).unwrap(), vec![0; 2].into()).await,
    );
    refused(array.write_selection(&Selection::new(vec![Axis::index(0)]), vec![0; 2].into()).await);
    let values: Vec<u8> = (1..9).collect();
    array.write_selection(&corners, values.clone().into()).await.unwrap();
    let read = array.reader().read_selection_into(&corners, vec![0; 8]).await.unwrap();
    assert_eq!(read, values);
}
