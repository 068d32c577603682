//! A region is a box of elements: where it begins and how far it extends, per dimension.
//!
//! Everything that reads, writes, clips or requests a part of an array uses regions. A region does
//! not know its array; it only promises that its end does not overflow.

use std::fmt;

use crate::{Error, Result};

mod parse;
#[cfg(test)]
mod tests;

/// A box of elements with an origin and a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    origin: Vec<u64>,
    shape: Vec<u64>,
}

impl Region {
    /// A region at `origin` of extent `shape`.
    pub fn new(origin: impl Into<Vec<u64>>, shape: impl Into<Vec<u64>>) -> Result<Self> {
        let (origin, shape) = (origin.into(), shape.into());
        if origin.len() != shape.len() {
            return Err(Error::invalid(format!(
                "a region needs as many origins as extents, found {} and {}",
                origin.len(),
                shape.len()
            )));
        }
        for (&start, &extent) in origin.iter().zip(&shape) {
            if start.checked_add(extent).is_none() {
                return Err(Error::invalid(format!(
                    "a region at {start} of extent {extent} ends beyond 2^64"
                )));
            }
        }
        Ok(Self { origin, shape })
    }

    /// The region that covers a whole array of the given shape.
    pub fn whole(shape: &[u64]) -> Self {
        Self { origin: vec![0; shape.len()], shape: shape.to_vec() }
    }

    /// A region given by `start..end` bounds whose order the caller vouches for; an inverted bound
    /// becomes an empty one.
    pub(crate) fn from_bounds(bounds: impl Iterator<Item = (u64, u64)>) -> Self {
        let (origin, shape) = bounds.map(|(start, end)| (start, end.saturating_sub(start))).unzip();
        Self { origin, shape }
    }

    /// First element, per dimension.
    pub fn origin(&self) -> &[u64] {
        &self.origin
    }

    /// Extent, per dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// One past the last element, per dimension.
    pub fn end(&self) -> Vec<u64> {
        self.bounds().map(|(_, end)| end).collect()
    }

    /// Number of elements; saturates, so that no product can wrap into a small number.
    pub fn num_elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// Bytes that the region takes when its elements lie densely in memory.
    pub fn num_bytes(&self, item_size: usize) -> Result<usize> {
        crate::copy::dense_bytes(&self.shape, item_size)
    }

    /// Whether there is no element in the region. A region of rank zero holds one.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The elements in both regions; `None` when there are none or the ranks differ.
    pub fn intersect(&self, other: &Region) -> Option<Region> {
        if self.rank() != other.rank() {
            return None;
        }
        let common = Self::from_bounds(
            self.bounds().zip(other.bounds()).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))),
        );
        (!common.is_empty()).then_some(common)
    }

    /// Whether every element of `other` is in this region.
    pub fn contains(&self, other: &Region) -> bool {
        self.rank() == other.rank()
            && (other.is_empty()
                || self.bounds().zip(other.bounds()).all(|(a, b)| a.0 <= b.0 && b.1 <= a.1))
    }

    /// The same box relative to `origin`.
    pub fn relative_to(&self, origin: &[u64]) -> Result<Region> {
        if origin.len() != self.rank() {
            return Err(Error::invalid(format!(
                "region {self} has rank {}, the origin it is seen from has rank {}",
                self.rank(),
                origin.len()
            )));
        }
        let moved: Option<Vec<u64>> =
            self.origin.iter().zip(origin).map(|(&own, &base)| own.checked_sub(base)).collect();
        match moved {
            Some(moved) => Ok(Self { origin: moved, shape: self.shape.clone() }),
            None => Err(Error::invalid(format!("region {self} begins before {origin:?}"))),
        }
    }

    fn bounds(&self) -> impl Iterator<Item = (u64, u64)> {
        self.origin.iter().zip(&self.shape).map(|(&start, &extent)| (start, start + extent))
    }
}

/// Prints what [`Region::parse`] reads: `0:10,5:20`.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (dimension, (start, end)) in self.bounds().enumerate() {
            let comma = if dimension == 0 { "" } else { "," };
            write!(f, "{comma}{start}:{end}")?;
        }
        Ok(())
    }
}
