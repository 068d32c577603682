//! Copying a box of elements from one row-major array into another.
//!
//! A [`Plan`] is made once per box: it checks all bounds, merges the trailing dimensions that are
//! contiguous on both sides into one run of bytes, and keeps the rest as a few nested loops of
//! constant steps. The loops then add, they do not multiply; runs of 1, 2, 4, 8 or 16 bytes are a
//! load and a store instead of a call to `memcpy`, which is what a strided column costs elsewhere.
//!
//! Where the bytes land is a [`Sink`]: a slice here, shared output memory in [`crate::target`].

use crate::{Error, Region, Result};

#[cfg(test)]
mod tests;

/// Longest stretch of a repeated element that is prepared for filling.
const PATTERN_BYTES_MAX: usize = 64 << 10;

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

/// The bytes of `region` in an array, where they lie there as one piece.
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

/// Bytes of a dense array, or an error where memory could not hold it.
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

/// Memory that a [`Plan`] writes to. Offsets are those the plan was checked for.
pub(crate) trait Sink {
    /// Writes `run` at `offset`.
    fn put(&mut self, offset: usize, run: &[u8]);
    /// Sets `len` bytes at `offset`.
    fn set(&mut self, offset: usize, len: usize, byte: u8);
}

struct SliceSink<'a>(&'a mut [u8]);

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

#[derive(Clone, Copy, Debug)]
struct Loop {
    count: usize,
    source_step: usize,
    target_step: usize,
}

/// A checked copy: runs of bytes within nested loops, outermost first.
#[derive(Debug)]
pub(crate) struct Plan {
    source_start: usize,
    target_start: usize,
    run: usize,
    loops: Vec<Loop>,
}

impl Plan {
    /// Plans to copy `region` of an array of `source_shape` to `target_origin` of another array.
    pub(crate) fn new(
        source_shape: &[u64],
        region: &Region,
        target_shape: &[u64],
        target_origin: &[u64],
        item_size: usize,
    ) -> Result<Self> {
        let placed = Region::new(target_origin, region.shape())?;
        for (what, shape, part) in
            [("source", source_shape, region), ("target", target_shape, &placed)]
        {
            if !Region::whole(shape).contains(part) {
                return Err(Error::invalid(format!(
                    "region {part} is not within the {what} of shape {shape:?}"
                )));
            }
            dense_bytes(shape, item_size)?;
        }
        if region.is_empty() || item_size == 0 {
            return Ok(Self { source_start: 0, target_start: 0, run: 0, loops: Vec::new() });
        }

        // No extent is zero from here on, so each stride and offset is less than the byte length of
        // its array, which fits `usize`.
        let (mut source_start, mut target_start) = (0, 0);
        let (mut source_stride, mut target_stride) = (item_size, item_size);
        let mut run = item_size;
        let mut contiguous = true;
        let mut loops: Vec<Loop> = Vec::with_capacity(region.rank());
        for dimension in (0..region.rank()).rev() {
            let count = region.shape()[dimension] as usize;
            source_start += region.origin()[dimension] as usize * source_stride;
            target_start += target_origin[dimension] as usize * target_stride;
            contiguous &= run == source_stride && run == target_stride;
            if count > 1 && contiguous {
                run *= count;
            } else if count > 1 {
                push_loop(&mut loops, count, source_stride, target_stride);
                contiguous = false;
            }
            source_stride *= source_shape[dimension] as usize;
            target_stride *= target_shape[dimension] as usize;
        }
        loops.reverse();
        Ok(Self { source_start, target_start, run, loops })
    }

    /// Plans to touch `region` of one array.
    pub(crate) fn in_place(shape: &[u64], region: &Region, item_size: usize) -> Result<Self> {
        Self::new(shape, region, shape, region.origin(), item_size)
    }

    /// Bytes of a run.
    pub(crate) fn run(&self) -> usize {
        self.run
    }

    /// Offset and length in the target, when the target is one run of bytes.
    pub(crate) fn single_run(&self) -> Option<(usize, usize)> {
        self.loops.is_empty().then_some((self.target_start, self.run))
    }

    /// Copies from `source`, whose length has been checked against the shape planned for.
    pub(crate) fn copy(&self, source: &[u8], sink: &mut impl Sink) {
        match self.run {
            0 => {}
            1 => self.copy_small::<1>(source, sink),
            2 => self.copy_small::<2>(source, sink),
            4 => self.copy_small::<4>(source, sink),
            8 => self.copy_small::<8>(source, sink),
            16 => self.copy_small::<16>(source, sink),
            run => self.each_run(|source_at, target_at| {
                sink.put(target_at, &source[source_at..source_at + run]);
            }),
        }
    }

    fn copy_small<const N: usize>(&self, source: &[u8], sink: &mut impl Sink) {
        self.each_run(|source_at, target_at| {
            // The length is a constant, so that this becomes one load and one store.
            if let Some(run) = source[source_at..].first_chunk::<N>() {
                sink.put(target_at, run);
            }
        });
    }

    /// Sets all items to `element`, whose length is the item size planned for.
    pub(crate) fn fill(&self, element: &[u8], sink: &mut impl Sink) {
        let Some((&first, rest)) = element.split_first() else { return };
        if rest.iter().all(|&byte| byte == first) {
            self.each_run(|_, target_at| sink.set(target_at, self.run, first));
            return;
        }
        let items = (PATTERN_BYTES_MAX.min(self.run) / element.len()).max(1);
        let pattern = element.repeat(items);
        self.each_run(|_, target_at| {
            let mut done = 0;
            while done < self.run {
                let len = pattern.len().min(self.run - done);
                sink.put(target_at + done, &pattern[..len]);
                done += len;
            }
        });
    }

    /// Calls `visit(source offset, target offset)` for each run.
    #[inline]
    pub(crate) fn each_run(&self, mut visit: impl FnMut(usize, usize)) {
        if self.run == 0 {
            return;
        }
        let (mut source_at, mut target_at) = (self.source_start, self.target_start);
        let Some((inner, outer)) = self.loops.split_last() else {
            return visit(source_at, target_at);
        };
        let mut done = vec![0usize; outer.len()];
        loop {
            let (mut s, mut t) = (source_at, target_at);
            for _ in 0..inner.count {
                visit(s, t);
                s += inner.source_step;
                t += inner.target_step;
            }
            let mut level = outer.len();
            loop {
                let Some(next) = level.checked_sub(1) else { return };
                level = next;
                let step = outer[level];
                done[level] += 1;
                source_at += step.source_step;
                target_at += step.target_step;
                if done[level] < step.count {
                    break;
                }
                done[level] = 0;
                source_at -= step.source_step * step.count;
                target_at -= step.target_step * step.count;
            }
        }
    }
}

/// Adds a loop around those in `loops` (innermost first), merged with the last one where both sides
/// just go on at the same step.
fn push_loop(loops: &mut Vec<Loop>, count: usize, source_step: usize, target_step: usize) {
    if let Some(inner) = loops.last_mut()
        && inner.source_step * inner.count == source_step
        && inner.target_step * inner.count == target_step
    {
        inner.count *= count;
        return;
    }
    loops.push(Loop { count, source_step, target_step });
}
