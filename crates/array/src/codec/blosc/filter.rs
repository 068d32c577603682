//! What is done to the elements of a block before it is compressed.

use super::params::Shuffle;
use super::{bits, shuffle};

/// The filter of one block. It may be none although the buffer has one: a block that the filter
/// cannot handle stays unfiltered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    None,
    Byte { item: usize },
    Bit { item: usize },
}

impl Filter {
    /// What format version 2 does to a block of `len` bytes.
    pub(super) fn of(shuffle: Shuffle, item: u8, len: usize) -> Self {
        let item = usize::from(item).max(1);
        match shuffle {
            Shuffle::Byte if item > 1 => Self::Byte { item },
            // Version 3 would shuffle the largest multiple of eight elements.
            Shuffle::Bit if len >= item && (len / item).is_multiple_of(8) => Self::Bit { item },
            _ => Self::None,
        }
    }

    /// Bytes of work space that [`Filter::apply`] and [`Filter::undo`] want.
    pub(super) fn work_bytes(self) -> usize {
        match self {
            Self::None | Self::Byte { .. } => 0,
            Self::Bit { item } => bits::work_bytes(item),
        }
    }

    /// Filters a block into `filtered`, of the same length, unless the block is to stay as it is.
    pub(super) fn apply<'a>(
        self,
        plain: &'a [u8],
        filtered: &'a mut [u8],
        work: &mut [u8],
    ) -> &'a [u8] {
        match self {
            Self::None => return plain,
            Self::Byte { item } => shuffle::shuffle(item, plain, filtered),
            Self::Bit { item } => bits::shuffle(item, plain, filtered, work),
        }
        filtered
    }

    /// Undoes [`Filter::apply`].
    pub(super) fn undo(self, filtered: &[u8], plain: &mut [u8], work: &mut [u8]) {
        match self {
            Self::None => plain.copy_from_slice(filtered),
            Self::Byte { item } => shuffle::unshuffle(item, filtered, plain),
            Self::Bit { item } => bits::unshuffle(item, filtered, plain, work),
        }
    }
}
