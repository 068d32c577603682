//! What is left of a file whose changes were not synced when the power failed.

use bytes::Bytes;

use super::plan::Unsynced;
use crate::backend::Backend;
use crate::error::Result;

/// A content that is not durable: the bytes that are certainly on the disk, and the changes since.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Empty for a new file.
    pub(super) durable: Bytes,
    changes: Vec<Change>,
}

/// A change of a file in place, in pieces that reach the disk independently.
#[derive(Debug)]
pub(super) enum Change {
    Write { position: u64, bytes: Vec<Bytes> },
    Truncate { len: u64 },
}

impl Content {
    /// A file that certainly holds these bytes.
    pub(super) fn new(durable: Bytes) -> Self {
        Self { durable, changes: Vec::new() }
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// The bytes that a power cut leaves.
    fn left(&self, unsynced: Unsynced) -> Vec<u8> {
        let mut left = self.durable.to_vec();
        let mut pieces = 0;
        for change in &self.changes {
            match change {
                Change::Truncate { len } => {
                    if reaches(unsynced, pieces) {
                        left.truncate(size(*len));
                    }
                    pieces += 1;
                }
                Change::Write { position, bytes } => {
                    let all = bytes.concat();
                    let (first, second) = all.split_at(all.len() / 2);
                    let middle = size(*position).saturating_add(first.len());
                    for (start, piece) in [(size(*position), first), (middle, second)] {
                        if reaches(unsynced, pieces) {
                            overwrite(&mut left, start, piece, unsynced == Unsynced::Emptied);
                        }
                        pieces += 1;
                    }
                }
            }
        }
        left
    }

    /// Leaves of a file what a power cut leaves, under all its names, because they are one file.
    pub(super) async fn lose(
        &self,
        inner: &dyn Backend,
        path: &str,
        unsynced: Unsynced,
    ) -> Result<()> {
        inner.truncate(path, 0).await?;
        inner.write_at(path, 0, vec![self.left(unsynced).into()]).await
    }
}

/// Whether an unsynced piece reached the disk.
fn reaches(unsynced: Unsynced, piece: u32) -> bool {
    match unsynced {
        Unsynced::Kept | Unsynced::Emptied => true,
        Unsynced::Reverted => false,
        Unsynced::Mixed(pieces) => pieces.rotate_right(piece) & 1 == 1,
    }
}

/// Writes bytes over others. A file that grew without them has zeros there, and so has a file that
/// got only the bytes after them.
fn overwrite(left: &mut Vec<u8>, start: usize, piece: &[u8], only_size: bool) {
    let end = start.saturating_add(piece.len());
    if !piece.is_empty() && left.len() < end {
        left.resize(end, 0);
    }
    if let Some(place) = left.get_mut(start..end).filter(|_| !only_size) {
        place.copy_from_slice(piece);
    }
}

/// Positions are within a file that was in memory, or just beyond.
fn size(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        let mut content = Content::new("0123456789".into());
        content.change(Change::Write { position: 8, bytes: vec!["ab".into(), "cd".into()] });
        content.change(Change::Truncate { len: 11 });
        content.change(Change::Write { position: 0, bytes: vec!["xy".into()] });
        content
    }

    #[test]
    fn every_subset_of_what_was_not_synced_can_be_left() {
        let left = |pieces| String::from_utf8(content().left(Unsynced::Mixed(pieces))).unwrap();
        assert_eq!(left(0b00000), "0123456789");
        assert_eq!(left(0b00001), "01234567ab");
        assert_eq!(left(0b00010), "0123456789cd");
        assert_eq!(left(0b00110), "0123456789c");
        assert_eq!(left(0b10101), "0y234567ab");
        assert_eq!(left(0b11111), "xy234567abc");
    }

    #[test]
    fn sizes_can_reach_the_disk_without_bytes() {
        assert_eq!(content().left(Unsynced::Emptied), b"0123456789\0");
        assert_eq!(content().left(Unsynced::Reverted), b"0123456789");
        assert_eq!(content().left(Unsynced::Kept), b"xy234567abc");
    }
}
