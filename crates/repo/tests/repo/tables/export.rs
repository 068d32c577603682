//! A table as one Parquet file.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use bytes::Bytes;
use chunkyard_repo::{KeyRange, Table};
use chunkyard_store::ErrorKind;
use futures::TryStreamExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{commit, keys, memory, pairs, rows, with_rows};

async fn file(table: &Table, range: &KeyRange, columns: Option<&[&str]>) -> (usize, Bytes) {
    let pieces: Vec<Bytes> = table.parquet(range, columns).unwrap().try_collect().await.unwrap();
    (pieces.len(), pieces.concat().into())
}

fn read(file: Bytes) -> (usize, Vec<RecordBatch>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let groups = reader.metadata().num_row_groups();
    (groups, reader.build().unwrap().map(Result::unwrap).collect())
}

#[tokio::test]
async fn a_table_leaves_as_one_file_without_what_was_deleted() {
    let store = memory();
    let first: Vec<(u64, u64)> = (0..300_000).map(|key| (key, key / 7)).collect();
    let repo = with_rows(&store, &first).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.table("/t").await.unwrap();
    table.upsert(rows(&[(5, 1), (400_000, 2)])).await.unwrap();
    commit(&session).await;
    let session = repo.writable_session("main").await.unwrap();
    let table = session.table("/t").await.unwrap();
    table.delete(keys(&[0, 299_999])).await.unwrap();

    let mut expected = first;
    (expected[5], expected[0]) = ((5, 1), (0, 0));
    expected.remove(299_999);
    expected.remove(0);
    expected.push((400_000, 2));
    let (pieces, bytes) = file(&table, &KeyRange::All, None).await;
    let (groups, found) = read(bytes);
    assert_eq!(pairs(&found), expected);
    assert_eq!(groups, 3);
    assert!(pieces >= groups, "complete row groups leave at once: {pieces} pieces");

    let (_, bytes) = file(&table, &KeyRange::All, Some(&["v"])).await;
    let (_, found) = read(bytes);
    assert_eq!(found[0].num_columns(), 1);
    let values: Vec<u64> = found
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    assert_eq!(values, expected.iter().map(|row| row.1).collect::<Vec<_>>());

    let (_, bytes) = file(&table, &KeyRange::From(vec![399_999u64.into()]), None).await;
    assert_eq!(pairs(&read(bytes).1), [(400_000, 2)]);
    let (_, bytes) = file(&table, &KeyRange::From(vec![500_000u64.into()]), None).await;
    assert!(read(bytes).1.is_empty(), "a table without rows is a file without rows");
    let refused = table.parquet(&KeyRange::All, Some(&["w"])).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}
