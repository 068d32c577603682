//! Answers of a DVID server.

use std::collections::VecDeque;
use std::fmt::Debug;

use bytes::Bytes;
use chunkyard_engine::format::hostile::dvid_http::{
    Asked, BlockRecords, IndexRecords, Info, LabelRecords, MappingRecords,
};
use chunkyard_engine::{Error, ErrorKind, Result};

/// A payload may have this many bytes.
const BYTES_MAX: u32 = 1 << 16;

/// An answer was refused because of its content. Which request it answers is known above the parser.
fn refused(error: &Error) {
    let kind = error.kind();
    assert!(
        matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported),
        "bytes cannot cause {error:?}"
    );
}

/// An answer says the same in one piece and byte by byte, and what it says is all of it.
fn same<T: Debug + PartialEq>(
    data: &[u8],
    read: impl Fn(&[u8], usize) -> Result<VecDeque<T>>,
    render: impl Fn(&VecDeque<T>) -> Option<Vec<u8>>,
) {
    let (whole, bytes) = (read(data, data.len().max(1)), read(data, 1));
    match (whole, bytes) {
        (Ok(whole), Ok(bytes)) => {
            assert_eq!(whole, bytes);
            if let Some(rendered) = render(&whole) {
                assert_eq!(rendered, data);
            }
        }
        (Err(whole), Err(bytes)) => {
            refused(&whole);
            refused(&bytes);
        }
        (whole, bytes) => panic!("{whole:?} in one piece, {bytes:?} byte by byte"),
    }
}

pub(crate) fn blocks(data: &[u8]) {
    let asked = [
        Asked::Box { start: [-8, -8, -8], size: [16, 16, 16] },
        Asked::List([[0, 0, 0], [0, 0, 1], [-1, 2, 3]].into()),
    ];
    for asked in asked {
        let read = |data: &[u8], step: usize| {
            let mut records = BlockRecords::new(asked.clone(), BYTES_MAX);
            let mut found = VecDeque::new();
            for part in data.chunks(step) {
                records.take(part, &mut found)?;
            }
            records.end()?;
            Ok(found)
        };
        let record = |([z, y, x], bytes): &([i32; 3], Bytes)| {
            assert!(asked.has(&[*z, *y, *x]) && (1..=BYTES_MAX as usize).contains(&bytes.len()));
            let head = [*x, *y, *z, bytes.len() as i32].map(i32::to_le_bytes).concat();
            [&head[..], bytes].concat()
        };
        same(data, read, |found| Some(found.iter().flat_map(record).collect()));
    }
}

pub(crate) fn indices(data: &[u8]) {
    let read = |data: &[u8], step: usize| {
        let mut records = IndexRecords::new(vec![1, 72, 87, u64::MAX], u64::from(BYTES_MAX))?;
        let mut found = VecDeque::new();
        for part in data.chunks(step) {
            records.take(part, &mut found)?;
        }
        records.end()?;
        Ok(found)
    };
    let record = |(label, bytes): &(u64, Option<Bytes>)| {
        let bytes = bytes.as_deref().unwrap_or_default();
        [&(bytes.len() as u64).to_le_bytes(), &label.to_le_bytes(), bytes].concat()
    };
    same(data, read, |found| Some(found.iter().flat_map(record).collect()));
}

pub(crate) fn lists(data: &[u8]) {
    for sizes in [false, true] {
        let read = |data: &[u8], step: usize| {
            let mut records = LabelRecords::new(3, sizes, 100);
            let mut found = VecDeque::new();
            for part in data.chunks(step) {
                records.take(part, &mut found)?;
            }
            records.end()?;
            Ok(found)
        };
        let record = |(label, voxels): &(u64, Option<u64>)| {
            assert_eq!(voxels.is_some(), sizes);
            let numbers = [Some(*label), *voxels].into_iter().flatten();
            numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
        };
        same(data, read, |found| {
            assert!(found.iter().zip(found.iter().skip(1)).all(|(a, b)| a.0 < b.0));
            Some(found.iter().flat_map(record).collect())
        });
    }
    let read = |data: &[u8], step: usize| {
        let mut records = MappingRecords::default();
        let mut found = VecDeque::new();
        for part in data.chunks(step) {
            records.take(part, &mut found)?;
        }
        records.end(&mut found)?;
        Ok(found)
    };
    // As text, a number may have zeros before it.
    same(data, read, |_: &VecDeque<(u64, u64)>| None);
}

pub(crate) fn description(data: &[u8]) {
    match Info::parse(data) {
        Err(error) => refused(&error),
        Ok(info) => {
            assert!(info.block_size.iter().all(|n| n % 8 == 0 && (8..=1024).contains(n)));
            assert!(info.max_level < 31);
            if let Some((min, max)) = info.extents {
                assert!(min.iter().zip(max).all(|(min, max)| *min <= max));
            }
        }
    }
}
