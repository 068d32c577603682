//! Blocks, in no particular order:
//!
//! ```text
//!  i32 x │ i32 y │ i32 z │ u32 n │ n bytes: gzip of a label block          all little-endian
//! ```
//!
//! Blocks that are not stored are left out, and the end of the answer is the end of the list. So each record is compared
//! with what was asked for: a message of the server in the middle of its answer is no record, or none that was asked for.

use std::collections::{BTreeSet, HashSet, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use url::Url;

use super::backend::Instance;
use super::client::DvidClient;
use super::corrupt;
use super::course::Course;
use crate::error::Result;

/// Bytes before the payload of a record.
const HEAD: usize = 16;

/// Blocks of one scale, with coordinates as z, y, x.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// These.
    List(BTreeSet<[i32; 3]>),
    /// All within a box.
    Box {
        /// The first block.
        start: [i32; 3],
        /// Blocks along each axis.
        size: [u32; 3],
    },
}

impl Asked {
    /// Whether a block was asked for.
    pub fn has(&self, block: &[i32; 3]) -> bool {
        match self {
            Self::List(blocks) => blocks.contains(block),
            Self::Box { start, size } => {
                start.iter().zip(size).zip(block).all(|((start, size), at)| {
                    let within = i64::from(*at) - i64::from(*start);
                    (0..i64::from(*size)).contains(&within)
                })
            }
        }
    }

    /// The box that a list fills, if it fills one.
    pub(super) fn as_box(&self) -> Self {
        let Self::List(blocks) = self else { return self.clone() };
        let Some(first) = blocks.first() else { return self.clone() };
        let (mut low, mut high) = (*first, *first);
        for block in blocks {
            for axis in 0..3 {
                low[axis] = low[axis].min(block[axis]);
                high[axis] = high[axis].max(block[axis]);
            }
        }
        let extent = |axis: usize| high[axis].abs_diff(low[axis]).saturating_add(1);
        let size = [extent(0), extent(1), extent(2)];
        let volume = size.iter().try_fold(1u64, |volume, n| volume.checked_mul(u64::from(*n)));
        match volume == Some(blocks.len() as u64) {
            true => Self::Box { start: low, size },
            false => self.clone(),
        }
    }
}

/// Takes an answer with blocks apart.
#[derive(Debug)]
pub struct BlockRecords {
    asked: Asked,
    bytes_max: u32,
    /// Blocks of earlier answers that broke off.
    known: HashSet<[i32; 3]>,
    /// Blocks of this answer.
    seen: HashSet<[i32; 3]>,
    held: BytesMut,
}

impl BlockRecords {
    /// For an answer about these blocks, of which none has more bytes than `bytes_max`.
    pub fn new(asked: Asked, bytes_max: u32) -> Self {
        let (known, seen) = (HashSet::new(), HashSet::new());
        Self { asked, bytes_max, known, seen, held: BytesMut::new() }
    }

    /// Takes the next bytes, and gives the blocks that they complete.
    pub fn take(&mut self, bytes: &[u8], blocks: &mut VecDeque<([i32; 3], Bytes)>) -> Result<()> {
        self.held.extend_from_slice(bytes);
        while let Some(mut head) = self.held.get(..HEAD) {
            let (x, y, z) = (head.get_i32_le(), head.get_i32_le(), head.get_i32_le());
            let (block, length) = ([z, y, x], head.get_u32_le());
            self.check(block, length)?;
            let end = HEAD.saturating_add(length as usize);
            if self.held.len() < end {
                break;
            }
            let record = self.held.split_to(end).freeze();
            self.seen.insert(block);
            if !self.known.contains(&block) {
                blocks.push_back((block, record.slice(HEAD..)));
            }
        }
        Ok(())
    }

    fn check(&self, block: [i32; 3], length: u32) -> Result<()> {
        let [z, y, x] = block;
        let what = format!("record {} for block ({x}, {y}, {z})", self.seen.len());
        if !self.asked.has(&block) {
            return Err(corrupt(&what, "a block that was asked for", "another"));
        }
        if self.seen.contains(&block) {
            return Err(corrupt(&what, "each block once", "it is there twice"));
        }
        if length == 0 || length > self.bytes_max {
            let expected = format!("1 to {} bytes", self.bytes_max);
            return Err(corrupt(&what, expected, format!("{length} bytes")));
        }
        Ok(())
    }

    /// The answer is complete: no record may have begun.
    pub fn end(&mut self) -> Result<()> {
        match self.held.len() {
            0 => Ok(()),
            left => {
                let what = format!("end behind record {}", self.seen.len());
                Err(corrupt(&what, "the end of a record", format!("{left} bytes of another")))
            }
        }
    }
}

/// The request for blocks of one scale.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) instance: Instance,
    pub(super) scale: u8,
    pub(super) records: BlockRecords,
    pub(super) complete: bool,
}

impl Blocks {
    pub(super) fn new(instance: Instance, scale: u8, asked: Asked) -> Self {
        let complete = asked == Asked::List(BTreeSet::new());
        let records = BlockRecords::new(asked, instance.record_bytes_max);
        Self { instance, scale, records, complete }
    }
}

impl Course for Blocks {
    type Item = ([i32; 3], Bytes);

    fn request(&mut self, client: &DvidClient) -> Option<(Url, Option<Bytes>)> {
        if self.complete {
            return None;
        }
        Some((self.instance.blocks_url(client, self.scale, &self.records.asked), None))
    }

    fn take(&mut self, bytes: &[u8], items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.take(bytes, items)
    }

    fn end(&mut self, _items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.end()?;
        self.complete = true;
        Ok(())
    }

    fn broken(&mut self) -> bool {
        let records = &mut self.records;
        records.held.clear();
        let seen = std::mem::take(&mut records.seen);
        match &mut records.asked {
            // Only what is missing is asked for again.
            Asked::List(blocks) => {
                blocks.retain(|block| !seen.contains(block));
                self.complete = blocks.is_empty();
            }
            // A box has no holes, so what is known comes again, and is left out.
            Asked::Box { .. } => records.known.extend(seen),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn record([z, y, x]: [i32; 3], payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        [x, y, z].iter().for_each(|n| bytes.extend(n.to_le_bytes()));
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn list(blocks: &[[i32; 3]]) -> Asked {
        Asked::List(blocks.iter().copied().collect())
    }

    fn read(asked: Asked, bytes: &[u8], step: usize) -> Result<Vec<([i32; 3], Bytes)>> {
        let mut records = BlockRecords::new(asked, 100);
        let mut found = VecDeque::new();
        for part in bytes.chunks(step) {
            records.take(part, &mut found)?;
        }
        records.end()?;
        Ok(found.into())
    }

    #[test]
    fn records_are_read_however_they_are_cut() {
        let (a, b) = ([-1, 0, 2], [0, 5, -3]);
        let bytes = [record(b, b"second"), record(a, b"1")].concat();
        for step in 1..=bytes.len() {
            let found = read(list(&[a, b, [9, 9, 9]]), &bytes, step).unwrap();
            assert_eq!(found, [(b, "second".into()), (a, "1".into())]);
        }
        assert!(read(list(&[a]), b"", 1).unwrap().is_empty());
    }

    #[test]
    fn whatever_was_not_asked_for_is_an_error() {
        let (a, b) = ([1, 2, 3], [1, 2, 4]);
        let sound = record(a, b"one");
        let wrong = [
            record(b, b"one"),
            [sound.clone(), sound.clone()].concat(),
            [sound.clone(), b"x".to_vec()].concat(),
            sound[..sound.len() - 1].to_vec(),
            record(a, b""),
            record(a, &[0; 101]),
            b"unable to GET data: found multiple kv for key".to_vec(),
        ];
        for bytes in wrong {
            for step in [1, 7, 1000] {
                let error = read(list(&[a]), &bytes, step).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}: {error}");
            }
        }
        assert_eq!(read(list(&[a, b]), &sound, 1000).unwrap().len(), 1);
    }

    #[test]
    fn a_length_is_refused_before_its_bytes_arrive() {
        let mut records = BlockRecords::new(list(&[[0, 0, 0]]), 1 << 20);
        let mut head = vec![0; 12];
        head.extend(u32::MAX.to_le_bytes());
        assert!(records.take(&head, &mut VecDeque::new()).is_err());
    }

    #[test]
    fn a_list_without_holes_is_a_box() {
        let full = list(&[[0, 0, -1], [0, 0, 0], [1, 0, -1], [1, 0, 0]]);
        let is = full.as_box();
        assert_eq!(is, Asked::Box { start: [0, 0, -1], size: [2, 1, 2] });
        assert!(is.has(&[1, 0, -1]) && !is.has(&[1, 0, 1]) && !is.has(&[2, 0, 0]));
        let holed = list(&[[0, 0, 0], [0, 1, 1]]);
        assert_eq!(holed.as_box(), holed);
        let far = list(&[[i32::MIN, 0, 0], [i32::MAX, 0, 0]]);
        assert_eq!(far.as_box(), far);
    }
}
