//! Rows of manifests: what is written comes back, in order, and what is illegal is refused.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::{Native, Payload, RunBuilder, Virtual, decode_file};
use crate::config::Compat;
use crate::coord::Coord;
use crate::node::Inventory;
use crate::parquet_file::Label;

const LABEL: Label<'static> = Label { format: "manifest", dataset_id: "d", created_ms: 5 };

fn native(offset: u64) -> Payload {
    Payload::Native(Native { file: "ab/file".into(), offset, length: 10, crc32c: Some(7) })
}

fn elsewhere() -> Payload {
    Payload::Virtual(Box::new(Virtual {
        url: "s3://bucket/key".into(),
        offset: 3,
        length: 4,
        etag: Some("e".into()),
        last_modified_ms: Some(9),
        crc32c: None,
    }))
}

fn inline(bytes: &'static str) -> Payload {
    Payload::Inline { bytes: Bytes::from(bytes) }
}

fn rows(
    refs: Vec<(Vec<u64>, Payload)>,
) -> impl ExactSizeIterator<Item = Result<(Vec<u8>, Payload)>> {
    refs.into_iter()
        .map(|(index, payload)| Ok((Coord::encode(&index).as_bytes().to_vec(), payload)))
}

#[test]
fn every_kind_of_row_comes_back() {
    let first = vec![
        (vec![0, 0], inline("xyz")),
        (vec![0, 1], native(0)),
        (vec![0, 200], elsewhere()),
        (vec![300, 0], Payload::Removed),
    ];
    let second = vec![(vec![5], native(u64::MAX - 10))];
    let mut builder = RunBuilder::new(Compat::Wide);
    builder.push_array(3, 2, 4, rows(first.clone())).unwrap();
    builder.push_array(9, 1, 1, rows(second.clone())).unwrap();
    assert_eq!(builder.rows(), 5);
    let written = builder.finish(LABEL).unwrap();
    let file: Arc<str> = "m".into();
    let blocks = decode_file(&file, "d", &written.sealed.bytes, Some(written.sealed.tail)).unwrap();
    let mut found = Vec::new();
    for block in &blocks {
        for at in 0..block.len() {
            let row = block.row(at).unwrap();
            let rank = if row.array_id == 3 { 2 } else { 1 };
            found.push((row.coord.decode(rank).unwrap(), row.payload));
        }
    }
    assert_eq!(found, [first, second].concat());

    let entries = written.inventories(&file, 3, 2);
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!((entry.row, entry.rows, entry.level()), (0, Some(4), 2));
    assert_eq!(entry.extent, [(0, 301), (0, 201)]);
    let kinds = Inventory::INLINE | Inventory::VIRTUAL | Inventory::REMOVALS;
    assert_eq!(entry.flags & kinds, kinds);
    assert!(entry.may_hold(Coord::encode(&[0, 1]).as_bytes(), Some(&[0, 1])));
    assert!(!entry.may_hold(Coord::encode(&[301, 0]).as_bytes(), Some(&[301, 0])));
    assert_eq!(written.inventories(&file, 9, 0)[0].row, 4);
}

#[test]
fn rows_out_of_order_or_twice_are_refused() {
    for indices in [[vec![1], vec![0]], [vec![1], vec![1]]] {
        let mut builder = RunBuilder::new(Compat::Wide);
        let refs = indices.into_iter().map(|index| (index, native(0))).collect();
        let error = builder.push_array(1, 1, 2, rows(refs)).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    let mut builder = RunBuilder::new(Compat::Wide);
    builder.push_array(2, 1, 1, rows(vec![(vec![0], native(0))])).unwrap();
    assert!(builder.push_array(1, 1, 1, rows(vec![(vec![0], native(0))])).is_err());
    let mut builder = RunBuilder::new(Compat::Wide);
    assert!(builder.push_array(1, 2, 1, rows(vec![(vec![0], native(0))])).is_err(), "the rank");
}

#[test]
fn a_large_run_is_cut_into_tiles_that_continue_it() {
    let count = 70_000u64;
    let refs: Vec<_> = (0..count).map(|n| (vec![n], native(n * 10))).collect();
    let mut builder = RunBuilder::new(Compat::Wide);
    builder.push_array(1, 1, refs.len(), rows(refs)).unwrap();
    let written = builder.finish(LABEL).unwrap();
    let entries = written.inventories(&"m".into(), 1, 3);
    let told: Vec<_> = entries.iter().map(|e| (e.row, e.rows.unwrap())).collect();
    assert_eq!(told, [(0, 65_536), (65_536, count - 65_536)]);
    let continues: Vec<_> = entries.iter().map(|e| e.flags & Inventory::CONTINUES != 0).collect();
    assert_eq!(continues, [false, true]);
    assert!(entries[0].coord_max < entries[1].coord_min);
}

#[test]
fn a_length_beyond_32_bits_does_not_fit_the_draft() {
    let long = Native { file: "f".into(), offset: 0, length: 1 << 32, crc32c: Some(1) };
    let refs = vec![(vec![0], Payload::Native(long))];
    let mut builder = RunBuilder::new(Compat::Draft);
    let pushed = builder.push_array(1, 1, 1, rows(refs)).and_then(|()| builder.finish(LABEL));
    let error = pushed.map(drop).unwrap_err();
    assert!(matches!(error, Error::ValueDoesNotFit { field: "length", .. }), "{error}");
}

#[test]
fn cut_and_damaged_manifests_never_panic() {
    let mut builder = RunBuilder::new(Compat::Wide);
    let refs = vec![(vec![0], inline("abc")), (vec![1], native(5)), (vec![2], elsewhere())];
    builder.push_array(1, 1, 3, rows(refs)).unwrap();
    let sealed = builder.finish(LABEL).unwrap().sealed;
    let file: Arc<str> = "m".into();
    for length in 0..sealed.bytes.len() {
        let cut = sealed.bytes.slice(..length);
        assert!(decode_file(&file, "d", &cut, Some(sealed.tail)).is_err(), "{length} bytes");
    }
    for at in 0..sealed.bytes.len() {
        let mut bytes = sealed.bytes.to_vec();
        bytes[at] ^= 0x55;
        let bytes = Bytes::from(bytes);
        assert!(decode_file(&file, "d", &bytes, Some(sealed.tail)).is_err(), "byte {at}");
        // Without a recorded checksum, as in the draft: whatever comes out, no panic.
        for block in decode_file(&file, "d", &bytes, None).unwrap_or_default() {
            for row in 0..block.len() {
                let _row = block.row(row);
            }
        }
    }
}
