//! Tables that no edit wrote: whatever stands in them, questions and edits give an answer or an error.

use std::sync::Arc;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use chunkyard_array::Region;
use chunkyard_format::Meter;
use chunkyard_labels::{
    Author, Edit, Ids, Labelmap, Layout, Resolution, Run, Runs, Side, diff, merge_branch,
};
use chunkyard_repo::{Repository, Version};
use chunkyard_store::{ErrorKind, Result};
use chunkyard_test_support::{cases, memory};
use futures::TryStreamExt;
use proptest::prelude::*;
use serde_json::json;

use super::support::{PATH, Voxels, assert_sound, create, edit, import, tip};

/// Ids that are there, that are not, and that overflow when they are added.
const IDS: [u64; 8] = [0, 1, 2, 3, 4, 77, 1 << 63, u64::MAX];

/// A row of any table, as numbers to choose from.
#[derive(Debug, Clone)]
struct Wrong {
    table: usize,
    ids: [u64; 9],
    at: [u32; 3],
    counts: Vec<u32>,
    list: Vec<u64>,
    kind: &'static str,
}

fn wrong() -> impl Strategy<Value = Wrong> {
    let id = || prop::sample::select(&IDS[..]);
    let at = || prop_oneof![4 => 0..3u32, 1 => Just(u32::MAX), 1 => Just(1 << 20)];
    let count = || prop_oneof![Just(0), Just(1), Just(4096), Just(u32::MAX)];
    let kinds = ["merge", "cleave", "split-body", "split-supervoxel", "revert", "map", "nonsense"];
    (
        0..6usize,
        prop::array::uniform9(id()),
        [at(), at(), at()],
        prop::collection::vec(count(), 0..3),
        prop::collection::vec(id(), 0..3),
        prop::sample::select(kinds.to_vec()),
    )
        .prop_map(|(table, ids, at, counts, list, kind)| Wrong {
            table,
            ids,
            at,
            counts,
            list,
            kind,
        })
}

const TABLES: [&str; 6] = ["mapping", "index", "bodies", "supervoxels", "mutations", "history"];

fn list<T: arrow_array::ArrowPrimitiveType>(values: &[T::Native]) -> ArrayRef {
    let values = values.iter().copied().map(Some);
    Arc::new(ListArray::from_iter_primitive::<T, _, _>([Some(values.collect::<Vec<_>>())]))
}

fn text(value: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}

impl Wrong {
    fn columns(&self) -> Vec<ArrayRef> {
        let ids: Vec<ArrayRef> =
            self.ids.iter().map(|id| Arc::new(UInt64Array::from(vec![*id])) as ArrayRef).collect();
        let at = self.at.map(|at| Arc::new(UInt32Array::from(vec![at])) as ArrayRef);
        match TABLES[self.table] {
            "mapping" => ids[..2].to_vec(),
            "index" => {
                let lists = [
                    list::<UInt64Type>(&self.list),
                    list::<UInt32Type>(&self.counts),
                    list::<UInt64Type>(&self.ids[1..1 + self.list.len()]),
                ];
                ids[..1].iter().cloned().chain(at).chain(lists).collect()
            }
            "bodies" => [&ids[..], &ids[..1]].concat(),
            "supervoxels" => ids,
            "mutations" => {
                let lists = [list::<UInt64Type>(&self.list), list::<UInt64Type>(&self.ids[3..5])];
                let time: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN]));
                let mut columns = vec![ids[0].clone(), text(self.kind)];
                columns.extend(ids[1..3].iter().cloned().chain(lists));
                columns.extend([time, text("user"), text("note")]);
                columns
            }
            _ => ids[..5].to_vec(),
        }
    }

    async fn write(&self, map: &Labelmap) {
        let table = map.session().table(&format!("{PATH}/{}", TABLES[self.table])).await.unwrap();
        let rows = RecordBatch::try_new(table.schema().clone(), self.columns()).unwrap();
        table.upsert(rows).await.unwrap();
    }
}

/// Four columns of eight voxels along x, in two blocks.
async fn small() -> Repository {
    let repo = create(&memory()).await;
    let shape = [16, 16, 32];
    let labels = (0..16 * 16 * 32u64).map(|place| place % 32 / 8 + 1).collect();
    import(&repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
    repo.create_branch("other", &Version::branch("main")).await.unwrap();
    edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    repo
}

/// An answer or an error: either will do.
fn answered<T>(_answer: Result<T>) {}

/// Asks everything that there is to ask.
async fn ask(map: &Labelmap) {
    let whole = Region::whole(&map.layout().shape);
    answered(map.labels_at(&[[0, 0, 0], [15, 15, 31]], Ids::Bodies).await);
    answered(map.labels_in(&whole, Ids::Bodies).await);
    answered(map.load_mapping().await);
    answered(map.count_of_bodies().await);
    answered(map.count_of_voxels().await);
    answered(map.all_bodies(0).unwrap().try_collect::<Vec<_>>().await);
    answered(map.mutations(0).unwrap().try_collect::<Vec<_>>().await);
    for id in IDS {
        answered(map.body(id).await);
        answered(map.supervoxels_of(id).await);
        answered(map.blocks_of(id).await);
        answered(map.sparse_volume(id, None).await);
        answered(map.binary_blocks(id, Some(1)).await);
        answered(map.blame(id).await);
    }
    map.verify(&Meter::default()).await.map_or_else(
        |error| assert_ne!(error.kind(), ErrorKind::Store, "{error}"),
        |found| assert!(found.problem_count >= found.problems.len() as u64),
    );
}

fn edits() -> Vec<Edit> {
    let runs = Runs::new((0..16).map(|z| Run { start: [z, 3, 2], length: 9 }).collect());
    let mut edits = Vec::new();
    for id in IDS {
        edits.extend([
            Edit::Merge { target: 3, bodies: vec![id] },
            Edit::Merge { target: id, bodies: vec![3] },
            Edit::Cleave { body: 1, supervoxels: vec![id], new_body: None },
            Edit::SplitSupervoxel { supervoxel: id, voxels: runs.clone(), part: None, rest: None },
            Edit::SplitBody { body: id, voxels: runs.clone(), new_body: None, halves: vec![] },
            Edit::Renumber { body: id, new_body: 900 },
            Edit::Map { mapping: vec![(id, 3), (4, id)] },
            Edit::Revert { mutation: id },
        ]);
    }
    edits
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn tables_of_any_content_give_answers_or_errors(rows in prop::collection::vec(wrong(), 1..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let repo = small().await;
            let before = Version::branch("other");
            let session = repo.writable_session("main").await.unwrap();
            let map = Labelmap::open(&session, PATH).await.unwrap();
            for row in &rows {
                row.write(&map).await;
            }
            map.commit("rows that no edit makes").await.unwrap();
            ask(&tip(&repo, "main").await).await;
            let main = Version::branch("main");
            answered(diff(&repo, &before, &main, PATH).await);
            answered(diff(&repo, &main, &before, PATH).await);
            for edit in edits() {
                let session = repo.writable_session("main").await.unwrap();
                let map = Labelmap::open(&session, PATH).await.unwrap();
                answered(map.apply(&edit, &Author::default()).await);
            }
            let resolution = Resolution { others: Some(Side::Theirs), ..Resolution::default() };
            let author = Author::default();
            answered(merge_branch(&repo, "other", &main, PATH, &resolution, &author).await);
        });
    }
}

/// Edits of ids that are there, that are not, and that are retired: those that are accepted leave all tables in
/// agreement with the voxels.
#[tokio::test]
async fn edits_of_strange_ids_are_refused_or_leave_a_sound_labelmap() {
    let repo = small().await;
    let session = repo.writable_session("main").await.unwrap();
    let map = Labelmap::open(&session, PATH).await.unwrap();
    let author = Author::default();
    let mut accepted = Vec::new();
    for round in 0..2 {
        for edit in edits() {
            if map.apply(&edit, &author).await.is_ok() {
                accepted.push(edit);
                let found = map.verify(&Meter::default()).await.unwrap();
                assert!(found.is_sound(), "round {round}: {accepted:?}: {:?}", found.problems);
            }
        }
    }
    assert!(accepted.len() > 5, "{accepted:?}");
    map.commit("all that was accepted").await.unwrap();
    assert_sound(&tip(&repo, "main").await).await;
}

#[tokio::test]
async fn attributes_that_describe_no_labelmap_are_damage() {
    let layout = json!({"version": 1, "shape": [16, 16, 32], "block": [16, 16, 16], "scales": 2,
        "voxel_size": [1.0, 1.0, 1.0]});
    for (key, value) in [
        ("shape", json!([0, 16, 32])),
        ("shape", json!([16, 16])),
        ("shape", json!([-1, 16, 32])),
        ("shape", json!([u64::MAX, u64::MAX, u64::MAX])),
        ("block", json!([16, 16, 0])),
        ("block", json!([17, 16, 16])),
        ("block", json!([u32::MAX - 15, 16, 16])),
        ("scales", json!(0)),
        ("scales", json!(u64::MAX)),
        ("voxel_size", json!([0.0, 1.0, 1.0])),
        ("origin", json!("here")),
    ] {
        let repo = small().await;
        let session = repo.writable_session("main").await.unwrap();
        let mut wrong = layout.clone();
        wrong[key] = value;
        let mut attributes = (*session.attributes(PATH).await.unwrap()).clone();
        attributes.insert("chunkyard_labelmap".into(), wrong.clone());
        session.set_attributes(PATH, attributes).unwrap();
        let error = Labelmap::open(&session, PATH).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong}: {error}");
        assert!(error.to_string().contains(PATH), "{error}");
    }
    let repo = small().await;
    let session = repo.writable_session("main").await.unwrap();
    let mut attributes = (*session.attributes(PATH).await.unwrap()).clone();
    attributes.insert("chunkyard_labelmap".into(), json!({"version": 2}));
    session.set_attributes(PATH, attributes).unwrap();
    let error = Labelmap::open(&session, PATH).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
