//! What is selected along one axis.

use std::sync::Arc;

use crate::{Error, Result};

/// Positions along one axis of an array: a range with a step, or a list in any order, repeats
/// included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis(Positions);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    /// `count` positions from `start` on; the last of them fits in 64 bits, `step` is not zero.
    Range { start: u64, step: u64, count: u64 },
    /// Positions that form no range.
    List(Arc<[u64]>),
}

impl Axis {
    /// `count` positions from `start` on, `step` apart.
    pub fn range(start: u64, step: u64, count: u64) -> Result<Self> {
        let last = count.saturating_sub(1).checked_mul(step).and_then(|way| way.checked_add(start));
        if step == 0 || last.is_none_or(|last| last == u64::MAX) {
            return Err(Error::invalid(format!(
                "{count} positions from {start} on by a step of {step} are no range"
            )));
        }
        // One position has no step, so that equal axes compare as equal.
        let step = if count > 1 { step } else { 1 };
        Ok(Self(Positions::Range { start, step, count }))
    }

    /// One position.
    pub fn index(at: u64) -> Self {
        Self::contiguous(at, 1)
    }

    /// Positions in any order. Evenly spaced ones become a range.
    pub fn list(indices: Vec<u64>) -> Self {
        let step = match indices.as_slice() {
            [] => return Self::contiguous(0, 0),
            [only] => return Self::index(*only),
            [first, second, ..] => second.checked_sub(*first).filter(|&step| step > 0),
        };
        let even = |pair: &[u64]| pair[0].checked_add(step.unwrap_or(0)) == Some(pair[1]);
        match step {
            Some(step) if indices.windows(2).all(even) => Self(Positions::Range {
                start: indices.first().copied().unwrap_or(0),
                step,
                count: indices.len() as u64,
            }),
            _ => Self(Positions::List(indices.into())),
        }
    }

    /// Neighbouring positions, whose end the caller vouches for.
    pub(super) fn contiguous(start: u64, count: u64) -> Self {
        Self(Positions::Range { start, step: 1, count })
    }

    pub(super) fn positions(&self) -> &Positions {
        &self.0
    }

    /// How many positions there are.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Positions::Range { count, .. } => *count,
            Positions::List(indices) => indices.len() as u64,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest position.
    pub(super) fn max(&self) -> Option<u64> {
        match &self.0 {
            Positions::Range { start, step, count } => Some(start + count.checked_sub(1)? * step),
            Positions::List(indices) => indices.iter().max().copied(),
        }
    }

    /// Whether chunks along this axis may be selected in part. True if in doubt.
    pub(super) fn cuts(&self, extent: u64, chunk: u64) -> bool {
        match self.0 {
            Positions::Range { start, step: 1, count } => [start, start.saturating_add(count)]
                .iter()
                .any(|&at| !at.is_multiple_of(chunk) && at != extent),
            _ => chunk != 1,
        }
    }
}
