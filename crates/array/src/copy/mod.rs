//! Copying a box of elements from one row-major array into another.
//!
//! A [`Plan`] says what is copied; it is made and checked once per box. A [`Sink`] is where the
//! bytes land: a slice here, shared output memory in [`crate::target`].

mod plan;
#[cfg(test)]
mod tests;

pub(crate) use self::plan::{Plan, Stretch};
use crate::{Error, Region, Result};

/// Copies `source_region` of an array to `target_origin` of another one.
///
/// Both arrays are row-major, dense, and have items of `item_size` bytes.
pub fn copy_region(
    source: &[u8],
    source_shape: &[u64],
    source_region: &Region,
    target: &mut [u8],
    target_shape: &[u64],
    target_origin: &[u64],
    item_size: usize,
) -> Result<()> {
    check_len("source", source.len(), source_shape, item_size)?;
    check_len("target", target.len(), target_shape, item_size)?;
    let plan = Plan::new(source_shape, source_region, target_shape, target_origin, item_size)?;
    plan.copy(source, &mut SliceSink(target));
    Ok(())
}

/// The bytes of `region` in an array, if they are contiguous.
pub fn contiguous_bytes<'a>(
    array: &'a [u8],
    shape: &[u64],
    region: &Region,
    item_size: usize,
) -> Result<Option<&'a [u8]>> {
    check_len("array", array.len(), shape, item_size)?;
    let run = Plan::in_place(shape, region, item_size)?.single_run();
    Ok(run.and_then(|(offset, len)| array.get(offset..)?.get(..len)))
}

/// Sets every item of `region` of an array to `element`.
pub fn fill_region(
    target: &mut [u8],
    target_shape: &[u64],
    region: &Region,
    element: &[u8],
) -> Result<()> {
    check_len("target", target.len(), target_shape, element.len())?;
    Plan::in_place(target_shape, region, element.len())?.fill(element, &mut SliceSink(target));
    Ok(())
}

/// Bytes of a dense array, or an error if memory could not hold it.
pub(crate) fn dense_bytes(shape: &[u64], item_size: usize) -> Result<usize> {
    let item_size = item_size as u64;
    // A zero anywhere makes the product zero, however large the other extents are.
    let bytes = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(item_size, |bytes, &extent| bytes.checked_mul(extent))
    };
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Error::invalid(format!(
            "an array of shape {shape:?} with items of {item_size} bytes does not fit in memory"
        ))),
    }
}

pub(crate) fn check_len(what: &str, len: usize, shape: &[u64], item_size: usize) -> Result<()> {
    let expected = dense_bytes(shape, item_size)?;
    if len == expected {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} of shape {shape:?} with items of {item_size} bytes: expected {expected} bytes, \
         found {len}"
    )))
}

/// Memory that a [`Plan`] writes to. Offsets are the ones that the plan was checked for.
pub(crate) trait Sink {
    /// Writes `run` at `offset`.
    fn put(&mut self, offset: usize, run: &[u8]);
    /// Sets `len` bytes at `offset`.
    fn set(&mut self, offset: usize, len: usize, byte: u8);
}

/// A slice, whose length has been checked against the shape planned for.
pub(crate) struct SliceSink<'a>(pub(crate) &'a mut [u8]);

impl Sink for SliceSink<'_> {
    #[inline]
    fn put(&mut self, offset: usize, run: &[u8]) {
        self.0[offset..offset + run.len()].copy_from_slice(run);
    }

    #[inline]
    fn set(&mut self, offset: usize, len: usize, byte: u8) {
        self.0[offset..offset + len].fill(byte);
    }
}
