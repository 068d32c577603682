//! Cells cut and joined, and tables written and read.

use chunkyard_store::{ErrorKind, Options, Store};
use proptest::prelude::*;

use super::read::Found;
use super::*;

/// The rows of a payload, as a writer cuts it.
fn cut(payload: &[u8], labels: usize) -> Vec<Part<'_>> {
    let parts = parts(payload.len(), labels).unwrap();
    let row = |part| Part {
        part,
        parts,
        bytes: payload.len() as u32,
        crc32c: crc32c::crc32c(payload),
        cells: std::array::from_fn(|at| cell(payload.len(), part, at).map(|range| &payload[range])),
    };
    (0..parts).map(row).collect()
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

#[test]
fn lengths_around_every_border_are_cut_and_joined() {
    for around in [0, 1, CELL_BYTES, 2 * CELL_BYTES, ROW_BYTES, 2 * ROW_BYTES, 600 << 10] {
        for bytes in around.saturating_sub(1)..=around + 1 {
            let payload = payload(bytes);
            let rows = cut(&payload, 3);
            assert_eq!(rows.len(), bytes.div_ceil(ROW_BYTES).max(1));
            let cells: Vec<_> = rows.iter().flat_map(|row| row.cells).collect();
            assert!(cells.iter().flatten().all(|cell| cell.len() <= CELL_BYTES));
            assert!(cells.iter().flatten().all(|cell| !cell.is_empty()) || bytes == 0);
            assert_eq!(join("x", &rows).unwrap(), payload);
        }
    }
    // Empty is not missing.
    assert_eq!(cut(&[], 0)[0].cells, [Some(&[][..]), None, None, None]);
}

#[test]
fn long_lists_go_on_in_further_rows() {
    assert_eq!(parts(10, ROW_LABELS).unwrap(), 1);
    assert_eq!(parts(10, ROW_LABELS + 1).unwrap(), 2);
    assert_eq!(labels(ROW_LABELS + 1, 1), ROW_LABELS..ROW_LABELS + 1);
    assert!(labels(3, 1).is_empty());
    let rows = cut(b"ten bytes.", 3 * ROW_LABELS);
    assert_eq!((rows.len(), rows[1].cells), (3, [None; 4]));
    assert_eq!(join("x", &rows).unwrap(), b"ten bytes.");
    assert_eq!(parts(PARTS_MAX * ROW_BYTES + 1, 0).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn rows_that_are_missing_doubled_or_damaged_are_errors() {
    let payload = payload(2 * ROW_BYTES + 5);
    let sound = cut(&payload, 0);
    let mut wrong: Vec<Vec<Part<'_>>> = vec![Vec::new(), sound[1..].to_vec(), sound[..2].to_vec()];
    wrong.push([&sound[..1], &sound[..1], &sound[2..]].concat());
    wrong.push(vec![sound[0].clone(), sound[2].clone(), sound[1].clone()]);
    for change in [
        |row: &mut Part<'_>| row.cells.swap(0, 3),
        |row: &mut Part<'_>| row.cells[1] = None,
        |row: &mut Part<'_>| row.crc32c ^= 1,
        |row: &mut Part<'_>| row.bytes += 1,
        |row: &mut Part<'_>| row.parts += 1,
    ] {
        for at in 0..3 {
            let mut rows = sound.clone();
            let before = rows.clone();
            change(&mut rows[at]);
            if rows != before {
                wrong.push(rows);
            }
        }
    }
    for rows in wrong {
        assert_eq!(join("x", &rows).unwrap_err().kind(), ErrorKind::Corrupt, "{}", rows.len());
    }
}

proptest! {
    #[test]
    fn any_payload_is_joined_again(bytes in 0..3 * ROW_BYTES, count in 0..3 * ROW_LABELS) {
        let payload = payload(bytes);
        let rows = cut(&payload, count);
        prop_assert_eq!(&join("x", &rows).unwrap(), &payload);
        let ranges: Vec<_> = (0..rows.len() as u16).flat_map(|part| labels(count, part)).collect();
        prop_assert!(ranges.into_iter().eq(0..count));
        if rows.len() > 1 {
            let cut_short = join("x", &rows[..rows.len() - 1]);
            prop_assert_eq!(cut_short.unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}

#[tokio::test]
async fn a_table_is_read_as_it_was_written() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let blocks: Vec<Found> = [(5, 0), (3, 1), (ROW_LABELS + 7, 700_000), (2, 20_000_000)]
        .into_iter()
        .enumerate()
        .map(|(at, (count, bytes))| {
            let supervoxels: Vec<u64> = (0..count as u64).collect();
            let labels = supervoxels.iter().map(|id| id / 2).collect();
            (7 * at as u64, labels, supervoxels, payload(bytes))
        })
        .collect();
    let mut writer = TableWriter::begin(&store, "blocks_s0/shard=00.parquet", 0, 9).await.unwrap();
    for (morton, labels, supervoxels, payload) in &blocks {
        let block = Block {
            morton: *morton,
            origin: [64, -64, 128],
            labels,
            supervoxels,
            payload,
            raw_bytes: 17,
            codec: "zstd",
        };
        writer.push(block).await.unwrap();
        let again = writer.push(block).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Invalid);
    }
    assert!(store.get("blocks_s0/shard=00.parquet").await.is_err(), "visible before the end");
    let written = writer.close().await.unwrap();
    let content = store.get("blocks_s0/shard=00.parquet").await.unwrap().bytes;
    assert_eq!((written.blocks, written.file_bytes), (4, content.len() as u64));
    assert_eq!(written.crc32c, crc32c::crc32c(&content));
    assert_eq!(written.rows, 1 + 1 + 2 + 20_000_000_u64.div_ceil(ROW_BYTES as u64));
    assert!(read("t", content.clone()).unwrap() == blocks);
    for end in [0, 7, content.len() / 2, content.len() - 1] {
        assert_eq!(read("t", content.slice(..end)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[tokio::test]
async fn an_empty_table_has_columns_and_no_rows() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let writer = TableWriter::begin(&store, "t.parquet", 3, 0).await.unwrap();
    assert_eq!(writer.close().await.unwrap().rows, 0);
    assert_eq!(read("t", store.get("t.parquet").await.unwrap().bytes).unwrap(), []);
}

/// Blocks whose payload takes two cells, whose list takes two rows, and which are empty.
fn golden_blocks() -> Vec<Found> {
    let block = |morton: u64, count: usize, bytes| {
        let supervoxels: Vec<u64> = (0..count as u64).map(|id| 100 + id).collect();
        (morton, supervoxels.iter().map(|id| id / 2).collect(), supervoxels, payload(bytes))
    };
    vec![block(1, 3, CELL_BYTES + 9), block(4, ROW_LABELS + 2, 700), block(6, 0, 0)]
}

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/block_table");

#[test]
fn the_golden_table_is_read() {
    let content = std::fs::read(format!("{GOLDEN}/blocks_s2.parquet")).unwrap();
    assert!(read("golden", content.into()).unwrap() == golden_blocks());
}

/// `MAKE_GOLDEN=1 cargo test -p chunkyard-engine --lib make_the_golden_table -- --ignored`
#[tokio::test]
#[ignore = "writes testdata/block_table anew, if told to"]
async fn make_the_golden_table() {
    if std::env::var_os("MAKE_GOLDEN").is_none() {
        return;
    }
    let store = Store::open(GOLDEN, &Options::default()).unwrap();
    let mut writer = TableWriter::begin(&store, "blocks_s2.parquet", 2, 0x41f9).await.unwrap();
    for (number, (morton, labels, supervoxels, payload)) in (0..).zip(golden_blocks()) {
        let (labels, supervoxels, payload) = (&*labels, &*supervoxels, &*payload);
        let (origin, raw_bytes) = ([64 * number, -64, 128], 17);
        let block =
            Block { morton, origin, labels, supervoxels, payload, raw_bytes, codec: "zstd" };
        writer.push(block).await.unwrap();
    }
    writer.close().await.unwrap();
}
