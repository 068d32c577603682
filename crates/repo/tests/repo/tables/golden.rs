//! A repository with a table in `testdata/table`, read forever, here and by pyarrow
//! (`tests/python/test_tables.py`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{Array, Float64Array, Int32Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use chunkyard_repo::{
    CommitOptions, CreateOptions, KeyRange, Level, OpenOptions, Repository, TableSpec, Version,
};
use futures::TryStreamExt;
use serde_json::{Value, json};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/table")
}

fn spec() -> TableSpec {
    let fields = vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("at", DataType::Int32, false),
        Field::new("size", DataType::UInt64, false),
        Field::new("score", DataType::Float64, true),
    ];
    TableSpec::new(Arc::new(Schema::new(fields)), 2).unwrap()
}

type Row = (String, i32, u64, Option<f64>);

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.3))),
    ];
    RecordBatch::try_new(spec().schema().clone(), columns).unwrap()
}

async fn read(repo: &Repository) -> Value {
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    let table = session.table("/seg/bodies").await.unwrap();
    assert_eq!(table.spec(), &spec());
    let batches: Vec<_> = table.scan(&KeyRange::All, None).unwrap().try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        for at in 0..batch.num_rows() {
            let score = batch.column(3).as_primitive::<arrow_array::types::Float64Type>();
            rows.push(json!([
                batch.column(0).as_string::<i32>().value(at),
                batch.column(1).as_primitive::<Int32Type>().value(at),
                batch.column(2).as_primitive::<UInt64Type>().value(at),
                score.is_valid(at).then(|| score.value(at)),
            ]));
        }
    }
    Value::Array(rows)
}

#[tokio::test]
async fn a_table_of_every_released_version_is_read() {
    let place = directory().join("repository");
    let repo = Repository::open(place.to_str().unwrap(), OpenOptions::default()).await.unwrap();
    assert_eq!(repo.verify(Level::Bytes).await.unwrap().findings, []);
    let expected = std::fs::read(directory().join("expected.json")).unwrap();
    assert_eq!(read(&repo).await, serde_json::from_slice::<Value>(&expected).unwrap());
}

#[tokio::test]
#[ignore = "writes testdata/table, which is made once"]
async fn make_the_golden_table() {
    let place = directory().join("repository");
    assert!(!place.exists(), "a golden file that was released is never made again");
    let url = place.to_str().unwrap();
    let repo =
        Repository::create(url, OpenOptions::default(), CreateOptions::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let table = session.create_table("/seg/bodies", spec()).await.unwrap();
    let row = |n: i32| {
        let score = (n % 3 != 0).then(|| f64::from(n) / 4.0);
        (format!("b{}", n % 7), n - 50, (n as u64) << 32 | 5, score)
    };
    table.upsert(batch(&(0..3000).map(row).collect::<Vec<_>>())).await.unwrap();
    session.commit(CommitOptions::message("many")).await.unwrap();
    for n in 0..2i32 {
        let session = repo.writable_session("main").await.unwrap();
        let table = session.table("/seg/bodies").await.unwrap();
        table.upsert(batch(&[("b1".into(), -49, 7 + n as u64, None)])).await.unwrap();
        table.upsert(batch(&[(String::new(), n, 1, Some(0.5))])).await.unwrap();
        let gone = batch(&[row(2 + n), row(1000 + n)]).project(&[0, 1]).unwrap();
        table.delete(gone).await.unwrap();
        session.commit(CommitOptions::message("some")).await.unwrap();
    }
    let expected = serde_json::to_string(&read(&repo).await).unwrap().replace("],[", "],\n[");
    std::fs::write(directory().join("expected.json"), expected + "\n").unwrap();
}
