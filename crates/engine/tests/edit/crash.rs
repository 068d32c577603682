//! A fault at every step of a write: each chunk is the old one or the new one, and nothing that was
//! acknowledged is lost.

use chunkyard_array::{ArraySpec, Axis, Region, Selection, Sharding};
use chunkyard_engine::format::zarr3::Zarr3Editor;
use chunkyard_engine::store::fault::{Plan, at_every_operation};
use chunkyard_engine::store::{Durability, Store};
use chunkyard_engine::{ErrorKind, Result};

use super::hierarchy::spec;
use chunkyard_test_support::deaths;
use chunkyard_test_support::scratch;

const SHAPE: [u64; 1] = [12];

/// An array whose first two chunks are stored.
async fn before(store: &Store, spec: &ArraySpec) -> Result<()> {
    let root = chunkyard_array::GroupSpec::new(chunkyard_array::Attributes::new());
    let editor =
        Zarr3Editor::create(store.clone(), chunkyard_engine::format::Node::Group(root)).await?;
    let array = editor.create_array("/a", spec).await?;
    array.writer().write_region(&Region::new([0], [8])?, vec![1; 8].into()).await
}

/// Writes to all chunks, to the first and last only in part; the second becomes the fill value.
async fn write(store: &Store) -> Result<()> {
    let array = Zarr3Editor::open(store.clone()).await?.array("/a").await?;
    let part = Selection::new(vec![Axis::range(2, 1, 8)?]);
    array.writer().write_selection(&part, vec![2, 2, 0, 0, 0, 0, 2, 2].into()).await
}

async fn read(store: &Store) -> Vec<u8> {
    let array = Zarr3Editor::open(store.clone()).await.unwrap().array("/a").await.unwrap();
    array.reader().read_region(&Region::whole(&SHAPE)).await.unwrap().to_vec()
}

#[tokio::test]
async fn a_chunk_is_the_old_or_the_new_one_wherever_it_dies() {
    const OLD: [u8; 12] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0];
    const NEW: [u8; 12] = [1, 1, 2, 2, 0, 0, 0, 0, 2, 2, 0, 0];
    let plain = spec(&SHAPE, &[4]);
    let sharded = spec(&SHAPE, &[2]).sharded(&Sharding::new(&[4])).unwrap();
    for spec in [plain, sharded] {
        for (mode, unsynced) in deaths() {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let directory = scratch(Durability::None);
                before(&directory, &spec).await.unwrap();
                let plan = attempt.plan();
                let (store, fault) = attempt.wrap(&directory);
                let outcome = write(&store).await;
                assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
                if outcome.is_ok() {
                    fault.die().await.unwrap();
                    assert_eq!(read(&directory).await, NEW, "acknowledged and lost");
                    break;
                }
                let found = read(&directory).await;
                for chunk in [0..4, 4..8, 8..12] {
                    let found = &found[chunk.clone()];
                    let either = found == &OLD[chunk.clone()] || found == &NEW[chunk.clone()];
                    assert!(either, "{plan:?}: {found:?}");
                }
            }
        }
    }
}

/// Creates, changes and deletes nodes.
async fn rearrange(store: &Store) -> Result<()> {
    let editor = Zarr3Editor::open(store.clone()).await?;
    editor.create_array("/deep/b", &spec(&[4], &[2])).await?;
    editor.resize("/a", &[4]).await?;
    editor.delete("/deep").await
}

#[tokio::test]
async fn a_hierarchy_can_be_read_and_changed_again_wherever_it_dies() {
    for (mode, unsynced) in deaths() {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let directory = scratch(Durability::None);
            before(&directory, &spec(&SHAPE, &[4])).await.unwrap();
            let plan = attempt.plan();
            let (store, fault) = attempt.wrap(&directory);
            let outcome = rearrange(&store).await;
            assert_eq!(outcome.is_err(), fault.fired(), "{plan:?}");
            if outcome.is_ok() {
                fault.die().await.unwrap();
            }
            let editor = Zarr3Editor::open(directory.clone()).await.unwrap();
            let length = editor.array("/a").await.unwrap().spec().shape()[0];
            assert!(length == 4 || (length == 12 && outcome.is_err()), "{plan:?}");
            match editor.delete("/deep").await {
                Ok(()) => assert!(outcome.is_err(), "{plan:?}: acknowledged and back"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{plan:?}"),
            }
            editor.create_array("/deep/b", &spec(&[4], &[2])).await.unwrap();
        }
    }
}
