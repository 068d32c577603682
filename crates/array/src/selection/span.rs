//! The part of an axis that lies in one chunk.

use std::sync::Arc;

use crate::copy::Stretch;

/// Positions along one axis that lie in one chunk: *inside* is relative to the chunk, *outside* to
/// the selection.
#[derive(Clone, Debug)]
pub(super) enum Span {
    /// `count` positions, `step` apart inside, neighbours outside. There is at least one.
    Even { inside: u64, step: u64, outside: u64, count: u64 },
    /// Pairs of inside and outside, in ascending order; there are at least two. Where an inside
    /// repeats, the later outside comes later: of values written there, the last one stays.
    Listed(Arc<[(u64, u64)]>),
}

impl Span {
    /// The span of sorted pairs, of which there is at least one.
    pub(super) fn of_pairs(pairs: &[(u64, u64)]) -> Self {
        let (inside, outside) = pairs.first().copied().unwrap_or_default();
        let step = match pairs {
            [first, second, ..] => second.0 - first.0,
            _ => 1,
        };
        let even = |pair: &[(u64, u64)]| {
            pair[0].0 + step == pair[1].0 && pair[0].1.checked_add(1) == Some(pair[1].1)
        };
        match step > 0 && pairs.windows(2).all(even) {
            true => Self::Even { inside, step, outside, count: pairs.len() as u64 },
            false => Self::Listed(pairs.into()),
        }
    }

    /// First position inside, and one past the last.
    pub(super) fn bounds(&self) -> (u64, u64) {
        match self {
            Self::Even { inside, step, count, .. } => {
                (*inside, inside + count.saturating_sub(1) * step + 1)
            }
            Self::Listed(pairs) => {
                let at = |pair: Option<&(u64, u64)>| pair.map_or(0, |pair| pair.0);
                (at(pairs.first()), at(pairs.last()) + 1)
            }
        }
    }

    /// Whether these are the positions from zero to `extent`, in order.
    pub(super) fn is_whole(&self, extent: u64) -> bool {
        match self {
            Self::Even { inside, step, count, .. } => {
                *inside == 0 && *count == extent && (*step == 1 || *count == 1)
            }
            Self::Listed(_) => false,
        }
    }

    /// Whether all positions from zero to `extent` are there, in any order.
    pub(super) fn covers(&self, extent: u64) -> bool {
        match self {
            Self::Even { .. } => self.is_whole(extent),
            Self::Listed(pairs) => pairs.chunk_by(|a, b| a.0 == b.0).count() as u64 >= extent,
        }
    }

    /// The part from `start` to `end` inside, as a copy of a box that begins at `start`.
    pub(super) fn stretch(&self, start: u64, end: u64) -> Option<Stretch<'_>> {
        match self {
            Self::Even { inside, step, outside, count } => {
                let before = start.saturating_sub(*inside).div_ceil(*step);
                let until = end.saturating_sub(*inside).div_ceil(*step).min(*count);
                let count = until.checked_sub(before).filter(|&count| count > 0)?;
                Some(Stretch::Even {
                    source: inside + before * step - start,
                    step: *step,
                    target: outside + before,
                    count,
                })
            }
            Self::Listed(pairs) => {
                let from = pairs.partition_point(|pair| pair.0 < start);
                let until = pairs.partition_point(|pair| pair.0 < end);
                let pairs = pairs.get(from..until).filter(|pairs| !pairs.is_empty())?;
                Some(Stretch::Listed { origin: start, pairs })
            }
        }
    }
}
