//! Blocks that were encoded before: a growing buffer is encoded again, and most of it is unchanged.

use super::header::{HEADER_BYTES, Header};

/// The first blocks of a buffer, to be taken over into one that holds the same bytes and more.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    /// Where each begins in its buffer, and behind them where the last one ends; four bytes each.
    offsets: &'a [u8],
    /// The blocks, one behind the other.
    pub(super) bytes: &'a [u8],
}

impl<'a> Kept<'a> {
    /// The blocks of a buffer that a buffer with the header `wanted` can take over. The last is
    /// left out: it may be shorter than the others, and nothing tells where it ends.
    pub(super) fn of(before: &'a [u8], wanted: &Header) -> Option<Self> {
        let had = Header::parse(before).ok()?;
        let alike = had.flags == wanted.flags
            && had.item == wanted.item
            && had.block_bytes == wanted.block_bytes
            && had.decoded_bytes <= wanted.decoded_bytes;
        let blocks = usize::try_from(had.blocks().checked_sub(1).filter(|_| alike)?).ok()?;
        let offsets = before.get(HEADER_BYTES..)?.get(..4 * (blocks + 1))?;
        let mut kept = Self { offsets, bytes: &[] };
        let (first, end) = (kept.offset(0)?, kept.offset(blocks)?);
        // Another program may have written them in another order.
        let in_order = (0..blocks).all(|block| kept.offset(block) < kept.offset(block + 1));
        kept.bytes = before.get(first..end).filter(|_| in_order)?;
        Some(kept)
    }

    /// How many they are.
    pub(super) fn blocks(&self) -> usize {
        (self.offsets.len() / 4).saturating_sub(1)
    }

    /// Where each begins, counted from the first.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        let first = self.offset(0).unwrap_or(0);
        (0..self.blocks()).filter_map(move |block| self.offset(block)?.checked_sub(first))
    }

    fn offset(&self, block: usize) -> Option<usize> {
        let bytes = self.offsets.get(4 * block..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }
}
