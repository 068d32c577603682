//! Tables: rows with keys, versioned.

mod conflicts;
mod durable;
mod export;
mod golden;
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use chunkyard_repo::{
    CommitOptions, Config, KeyPart, KeyRange, OpenOptions, Repository, RowChanges, Session, Table,
    TableSpec, Version,
};
use chunkyard_store::{Error, Result, Store};
use futures::TryStreamExt;

use super::support::{collect, create, memory, reopen, sound};

/// Numbers by number: the mapping of a segmentation.
pub(crate) fn numbers() -> TableSpec {
    let fields =
        vec![Field::new("k", DataType::UInt64, false), Field::new("v", DataType::UInt64, false)];
    TableSpec::new(Arc::new(Schema::new(fields)), 1).unwrap()
}

pub(crate) fn rows(pairs: &[(u64, u64)]) -> RecordBatch {
    let keys = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.0));
    let values = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.1));
    RecordBatch::try_new(numbers().schema().clone(), vec![Arc::new(keys), Arc::new(values)])
        .unwrap()
}

pub(crate) fn keys(keys: &[u64]) -> RecordBatch {
    let column = UInt64Array::from(keys.to_vec());
    RecordBatch::try_new(numbers().key_schema(), vec![Arc::new(column)]).unwrap()
}

fn pairs(batches: &[RecordBatch]) -> Vec<(u64, u64)> {
    let column = |batch: &RecordBatch, at: usize| {
        batch.column(at).as_primitive::<UInt64Type>().values().to_vec()
    };
    batches.iter().flat_map(|b| column(b, 0).into_iter().zip(column(b, 1))).collect()
}

pub(crate) async fn scan(table: &Table, range: &KeyRange) -> Result<Vec<(u64, u64)>> {
    Ok(pairs(&table.scan(range, None)?.try_collect::<Vec<_>>().await?))
}

pub(crate) async fn at(repo: &Repository, version: &Version) -> Result<Vec<(u64, u64)>> {
    let session = repo.readonly_session(version).await?;
    scan(&session.table("/t").await?, &KeyRange::All).await
}

async fn commit(session: &Arc<Session>) -> String {
    session.commit(CommitOptions::message("x")).await.unwrap().snapshot_id.clone()
}

/// A repository with a table of numbers, committed.
pub(crate) async fn with_rows(store: &Store, pairs: &[(u64, u64)]) -> Repository {
    let repo = create(store, Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.create_table("/t", numbers()).await.unwrap();
    table.upsert(rows(pairs)).await.unwrap();
    commit(&session).await;
    repo
}

async fn changed(repo: &Repository, from: &Version, to: &Version) -> Vec<RowChanges> {
    repo.diff_table(from, to, "/t").await.unwrap().try_collect().await.unwrap()
}

/// By key, the value before and after.
type Differences = BTreeMap<u64, (Option<u64>, Option<u64>)>;

pub(crate) async fn differences(repo: &Repository, from: &Version, to: &Version) -> Differences {
    let mut all = Differences::new();
    for changes in changed(repo, from, to).await {
        let half = |there: &BooleanArray, rows: &RecordBatch, at: usize| {
            let column = rows.column(1).as_primitive::<UInt64Type>();
            assert_eq!(there.value(at), column.is_valid(at));
            there.value(at).then(|| column.value(at))
        };
        for at in 0..changes.keys.num_rows() {
            let key = changes.keys.column(0).as_primitive::<UInt64Type>().value(at);
            let before = half(&changes.was, &changes.before, at);
            let after = half(&changes.is, &changes.after, at);
            assert!(all.insert(key, (before, after)).is_none());
        }
    }
    all
}

#[tokio::test]
async fn rows_are_set_looked_up_walked_and_deleted() {
    let store = memory();
    let repo = with_rows(&store, &[(5, 50), (1, 10), (5, 51), (9, 90)]).await;
    let first = Version::branch("main");
    assert_eq!(at(&repo, &first).await.unwrap(), [(1, 10), (5, 51), (9, 90)]);
    let one = repo.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();

    let session = repo.writable_session("main").await.unwrap();
    let table = session.table("/t").await.unwrap();
    table.upsert(rows(&[(7, 70), (1, 11)])).await.unwrap();
    table.delete(keys(&[9, 1000])).await.unwrap();
    let now = [(1, 11), (5, 51), (7, 70)];
    assert_eq!(scan(&table, &KeyRange::All).await.unwrap(), now, "its own writes");
    let found = table.get(keys(&[9, 7, 2, 1, 7])).await.unwrap();
    assert_eq!(found.found, BooleanArray::from(vec![false, true, false, true, true]));
    let values = found.rows.column(1).as_primitive::<UInt64Type>();
    assert_eq!(values, &UInt64Array::from(vec![None, Some(70), None, Some(11), Some(70)]));
    let two = commit(&session).await;

    let repo = reopen(&store).await;
    assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), now);
    let (one, two) = (Version::Snapshot(one), Version::Snapshot(two));
    assert_eq!(at(&repo, &one).await.unwrap(), [(1, 10), (5, 51), (9, 90)], "time travel");
    let expected = [(1, (Some(10), Some(11))), (7, (None, Some(70))), (9, (Some(90), None))];
    assert_eq!(differences(&repo, &one, &two).await, Differences::from(expected));
    sound(&repo).await;
}

#[tokio::test]
async fn ranges_are_half_open_and_may_name_a_part_of_the_key() {
    let fields = vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("at", DataType::Int32, false),
        Field::new("members", DataType::new_list(DataType::UInt64, true), true),
        Field::new("score", DataType::Float64, true),
        Field::new("raw", DataType::Binary, false),
        Field::new("ok", DataType::Boolean, false),
    ];
    let spec = TableSpec::new(Arc::new(Schema::new(fields)), 2).unwrap();
    let store = memory();
    let repo = create(&store, Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.create_table("/deep/er/t", spec.clone()).await.unwrap();
    let mut members = ListBuilder::new(UInt64Builder::new());
    members.append_value([Some(1), Some(2)]);
    members.append_null();
    members.append_value([]);
    members.append_value([Some(3)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["b", "a", "a", "ab"])),
        Arc::new(Int32Array::from(vec![1, 5, -5, 0])),
        Arc::new(members.finish()),
        Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN), Some(2.0)])),
        Arc::new(BinaryArray::from(vec![&b"x"[..], b"", b"yz", b"\0"])),
        Arc::new(BooleanArray::from(vec![true, false, true, true])),
    ];
    let batch = RecordBatch::try_new(spec.schema().clone(), columns).unwrap();
    table.upsert(batch).await.unwrap();
    commit(&session).await;
    let repo = reopen(&store).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.table("/deep/er/t").await.unwrap();
    assert_eq!(table.spec(), &spec);
    let names = async |range: KeyRange| -> Vec<(String, i32)> {
        let batches: Vec<_> =
            table.scan(&range, Some(&["at", "name"])).unwrap().try_collect().await.unwrap();
        let row = |batch: &RecordBatch, at: usize| {
            let number = batch.column(0).as_primitive::<arrow_array::types::Int32Type>().value(at);
            (batch.column(1).as_string::<i32>().value(at).to_owned(), number)
        };
        batches
            .iter()
            .flat_map(|b| (0..b.num_rows()).map(|at| row(b, at)).collect::<Vec<_>>())
            .collect()
    };
    let row = |name: &str, at: i32| (name.to_owned(), at);
    assert_eq!(names(KeyRange::All).await, [row("a", -5), row("a", 5), row("ab", 0), row("b", 1)]);
    assert_eq!(names(KeyRange::Prefix(vec!["a".into()])).await, [row("a", -5), row("a", 5)]);
    let key = |name: &str, at: i64| vec![name.into(), KeyPart::Int(at)];
    let some = KeyRange::Between(key("a", 5), key("b", 1));
    assert_eq!(names(some).await, [row("a", 5), row("ab", 0)]);
    assert_eq!(names(KeyRange::From(vec!["ab".into()])).await, [row("ab", 0), row("b", 1)]);
    assert_eq!(table.count(&KeyRange::only(key("a", 5))).await.unwrap(), 1);
    assert_eq!(table.delete_range(&KeyRange::Prefix(vec!["a".into()])).await.unwrap(), 2);
    assert_eq!(names(KeyRange::All).await, [row("ab", 0), row("b", 1)]);
    commit(&session).await;
    let repo = reopen(&store).await;
    let session = repo.readonly_session(&Version::branch("main")).await.unwrap();
    let table = session.table("/deep/er/t").await.unwrap();
    let batches: Vec<_> =
        table.scan(&KeyRange::All, None).unwrap().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(batches[0].schema(), *spec.schema());
    let first = batches[0].column(2).as_list::<i32>().value(0);
    assert_eq!(first.as_primitive::<UInt64Type>().values(), &[3]);
    sound(&repo).await;
}

#[tokio::test]
async fn what_is_no_table_or_no_row_of_it_is_refused() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.create_table("/t", numbers()).await.unwrap();
    session.create_group("/g", serde_json::Map::new()).unwrap();
    assert!(matches!(session.table("/g").await, Err(Error::NotFound { .. })));
    assert!(matches!(session.array("/t").await, Err(Error::NotFound { .. })));
    assert!(matches!(
        session.create_group("/t/x", serde_json::Map::new()),
        Err(Error::Invalid { .. })
    ));
    assert!(session.create_table("/t", numbers()).await.is_err());
    let wrong =
        RecordBatch::try_from_iter([("k", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    assert!(matches!(table.upsert(wrong.unwrap()).await, Err(Error::Invalid { .. })));
    assert!(matches!(table.upsert(keys(&[1])).await, Err(Error::Invalid { .. })), "no value");
    assert!(table.scan(&KeyRange::All, Some(&["nothing"])).is_err());
    let float = Schema::new(vec![Field::new("k", DataType::Float64, false)]);
    assert!(TableSpec::new(Arc::new(float), 1).is_err());
    let nullable = Schema::new(vec![Field::new("k", DataType::UInt64, true)]);
    assert!(TableSpec::new(Arc::new(nullable), 1).is_err());
    let taken = Schema::new(vec![
        Field::new("k", DataType::UInt64, false),
        Field::new("_removed", DataType::Boolean, false),
    ]);
    assert!(TableSpec::new(Arc::new(taken), 1).is_err());
    let read = repo.readonly_session(&Version::branch("main")).await.unwrap();
    assert!(read.table("/t").await.is_err(), "not committed");
}

#[tokio::test]
async fn a_table_moves_and_is_removed_like_any_node_and_readers_must_know_tables() {
    let store = memory();
    let repo = create(&store, Config::default()).await;
    assert!(!repo.state().await.unwrap().required_features.contains(&"tables".to_owned()));
    drop(repo);
    let repo = with_rows(&memory(), &[(1, 2)]).await;
    assert!(repo.state().await.unwrap().required_features.contains(&"tables".to_owned()));
    let session = repo.writable_session("main").await.unwrap();
    session.move_node("/t", "/a/b").unwrap();
    let attributes = serde_json::Map::from_iter([("unit".to_owned(), "voxel".into())]);
    session.set_attributes("/a/b", attributes.clone()).unwrap();
    let table = session.table("/a/b").await.unwrap();
    table.upsert(rows(&[(3, 4)])).await.unwrap();
    commit(&session).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.table("/a/b").await.unwrap();
    assert_eq!(scan(&table, &KeyRange::All).await.unwrap(), [(1, 2), (3, 4)]);
    assert_eq!(*session.attributes("/a/b").await.unwrap(), attributes);
    session.delete("/a/b").unwrap();
    assert!(table.upsert(rows(&[(5, 6)])).await.is_err(), "a handle outlives its table");
    commit(&session).await;
    let diff = repo.diff(&Version::branch("main"), &Version::branch("main")).await.unwrap();
    assert!(diff.is_empty());
    sound(&repo).await;
}

/// More rows than fit into memory go to the store before the commit, and the commit only names them.
#[tokio::test]
async fn a_bulk_load_is_bounded_in_memory_and_loses_nothing() {
    let store = memory();
    let options = OpenOptions { table_bytes_max: 200_000, ..OpenOptions::default() };
    create(&store, Config::default()).await;
    let repo = Repository::open_in(store.clone(), options).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let table = session.create_table("/t", numbers()).await.unwrap();
    let mut model = BTreeMap::new();
    for n in 0..40u64 {
        let some: Vec<(u64, u64)> =
            (0..1000).map(|i| ((i * 7919 + n * 104_729) % 30_011, n * 1000 + i)).collect();
        model.extend(some.iter().copied());
        table.upsert(rows(&some)).await.unwrap();
        if n % 10 == 3 {
            let gone: Vec<u64> = (n * 100..n * 100 + 50).collect();
            model.retain(|key, _| !gone.contains(key));
            table.delete(keys(&gone)).await.unwrap();
        }
    }
    let all: Vec<(u64, u64)> = model.iter().map(|(k, v)| (*k, *v)).collect();
    assert!(table.stats().unwrap().bytes > 0, "some went out early");
    assert_eq!(scan(&table, &KeyRange::All).await.unwrap(), all);
    commit(&session).await;
    for optimised in [false, true] {
        if optimised {
            repo.optimise("main").await.unwrap();
        }
        let repo = reopen(&store).await;
        assert_eq!(at(&repo, &Version::branch("main")).await.unwrap(), all);
        let session = repo.readonly_session(&Version::branch("main")).await.unwrap();
        let table = session.table("/t").await.unwrap();
        let asked: Vec<u64> = (0..30_011u64).rev().filter(|key| key % 13 == 0).collect();
        let found = table.get(keys(&asked)).await.unwrap();
        for (at, key) in asked.iter().enumerate() {
            let value = found.rows.column(1).as_primitive::<UInt64Type>();
            let value = value.is_valid(at).then(|| value.value(at));
            assert_eq!(value, model.get(key).copied(), "{key}");
            assert_eq!(found.found.value(at), value.is_some());
        }
        let some = KeyRange::Between(vec![10_000u64.into()], vec![10_100u64.into()]);
        let expected: Vec<_> = model.range(10_000..10_100).map(|(k, v)| (*k, *v)).collect();
        assert_eq!(scan(&table, &some).await.unwrap(), expected);
        if optimised {
            let stats = table.stats().unwrap();
            assert_eq!((stats.runs, stats.rows_max), (1, all.len() as u64));
        }
    }
    collect(&repo).await.unwrap();
    sound(&reopen(&store).await).await;
    assert_eq!(at(&reopen(&store).await, &Version::branch("main")).await.unwrap(), all);
}

/// The seed of the fuzz target, made here because this crate has Arrow at hand.
#[test]
#[ignore = "writes fuzz/seeds/table"]
fn make_the_seed_of_the_fuzz_target() {
    use chunkyard_repo::hostile;
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/table");
    std::fs::create_dir_all(&directory).unwrap();
    for (name, count, near) in [("pages", 3000, 1024), ("plain", 150, 0)] {
        let (rows, key) = seed(count);
        let dataset = "66f08abx07q8mbwfg5r7fb72rw";
        let file = hostile::render_table(dataset, &rows).unwrap();
        let found = hostile::read_table(dataset, &file, &key).unwrap();
        assert_eq!(found, (count as usize, near));
        let seed = [&[key.len() as u8][..], &key, &file].concat();
        std::fs::write(directory.join(name), seed).unwrap();
    }
}

/// Rows with all that a file can have, and a key in the second page of many.
fn seed(count: i64) -> (RecordBatch, Vec<u8>) {
    let mut members = ListBuilder::new(arrow_array::builder::UInt32Builder::new());
    (0..count).for_each(|n| members.append_value((0..n as u32 % 3).map(Some)));
    let columns: [(&str, ArrayRef); 5] = [
        (
            "name",
            Arc::new(StringArray::from_iter_values((0..count).map(|n| format!("n{}", n / 1500)))),
        ),
        ("at", Arc::new(arrow_array::Int64Array::from_iter_values((0..count).map(|n| n - 7)))),
        ("members", Arc::new(members.finish())),
        ("size", Arc::new(UInt64Array::from_iter((0..count).map(|n| (n % 2 == 0).then_some(5))))),
        ("_removed", Arc::new(BooleanArray::from_iter((0..count).map(|n| Some(n % 100 == 3))))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let key = [b"n1\0\0".as_slice(), &(2000u64 ^ 1 << 63).to_be_bytes()].concat();
    (rows, key)
}
