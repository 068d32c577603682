//! A checked copy between two row-major arrays.
//!
//! A plan checks all bounds when it is made, merges the trailing dimensions that are contiguous on
//! both sides into one run of bytes, and keeps the rest as a few nested loops, of constant steps or
//! over a list. The loops only add and never multiply; runs of 1, 2, 4, 8 or 16 bytes are a load
//! and a store instead of the call to `memcpy` that a strided column costs elsewhere.

use super::{Sink, dense_bytes};
use crate::{Error, Region, Result};

/// Longest stretch of a repeated element that is prepared for filling.
const PATTERN_BYTES_MAX: usize = 64 << 10;

/// Which positions along one dimension of the source go to which positions of the target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stretch<'a> {
    /// `count` positions from `source` on, `step` apart, to as many from `target` on.
    Even { source: u64, step: u64, target: u64, count: u64 },
    /// Pairs of a position in the source, counted from `origin`, and one in the target.
    Listed { origin: u64, pairs: &'a [(u64, u64)] },
}

/// One loop around the runs of a plan, in bytes.
#[derive(Debug)]
enum Loop {
    Even { count: usize, source_step: usize, target_step: usize },
    Listed(Vec<(usize, usize)>),
}

/// Runs of bytes within nested loops, outermost first.
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
        }
        let axes = region.origin().iter().zip(target_origin).zip(region.shape());
        let stretches: Vec<Stretch<'_>> = axes
            .map(|((&source, &target), &count)| Stretch::Even { source, step: 1, target, count })
            .collect();
        Self::of(source_shape, target_shape, item_size, &stretches)
    }

    /// Plans to touch `region` of one array.
    pub(crate) fn in_place(shape: &[u64], region: &Region, item_size: usize) -> Result<Self> {
        Self::new(shape, region, shape, region.origin(), item_size)
    }

    /// Plans to copy all combinations of the positions along each dimension.
    pub(crate) fn of(
        source_shape: &[u64],
        target_shape: &[u64],
        item_size: usize,
        stretches: &[Stretch<'_>],
    ) -> Result<Self> {
        dense_bytes(source_shape, item_size)?;
        dense_bytes(target_shape, item_size)?;
        if [source_shape.len(), target_shape.len()] != [stretches.len(); 2] {
            return Err(Error::invalid(format!(
                "{} axes are copied from an array of shape {source_shape:?} to one of shape \
                 {target_shape:?}",
                stretches.len()
            )));
        }
        let axes = || stretches.iter().zip(source_shape.iter().zip(target_shape));
        if item_size == 0 || stretches.iter().any(|stretch| stretch.len() == 0) {
            return Ok(Self { source_start: 0, target_start: 0, run: 0, loops: Vec::new() });
        }
        if !axes().all(|(stretch, (&source, &target))| stretch.is_within(source, target)) {
            return Err(Error::invalid(format!(
                "positions to copy are not within arrays of shape {source_shape:?} and \
                 {target_shape:?}"
            )));
        }
        let (mut source_stride, mut target_stride) = (item_size, item_size);
        let mut plan = Self { source_start: 0, target_start: 0, run: item_size, loops: Vec::new() };
        let mut contiguous = true;
        // All positions were found to be within arrays that fit in memory: nothing overflows.
        for (stretch, (&source_extent, &target_extent)) in axes().rev() {
            match *stretch {
                Stretch::Even { source, step, target, count } => {
                    let (step, count) = (step as usize, count as usize);
                    plan.source_start += source as usize * source_stride;
                    plan.target_start += target as usize * target_stride;
                    contiguous &= plan.run == source_stride && plan.run == target_stride;
                    if count > 1 && contiguous && step == 1 {
                        plan.run *= count;
                    } else if count > 1 {
                        push_loop(&mut plan.loops, count, step * source_stride, target_stride);
                        contiguous = false;
                    }
                }
                Stretch::Listed { origin, pairs } => {
                    let at = |&(source, target): &(u64, u64)| {
                        let source = (source - origin) as usize * source_stride;
                        (source, target as usize * target_stride)
                    };
                    plan.loops.push(Loop::Listed(pairs.iter().map(at).collect()));
                    contiguous = false;
                }
            }
            source_stride *= source_extent as usize;
            target_stride *= target_extent as usize;
        }
        plan.loops.reverse();
        Ok(plan)
    }

    /// The same plan with source and target swapped.
    pub(crate) fn reversed(mut self) -> Self {
        std::mem::swap(&mut self.source_start, &mut self.target_start);
        for one in &mut self.loops {
            match one {
                Loop::Even { source_step, target_step, .. } => {
                    std::mem::swap(source_step, target_step);
                }
                Loop::Listed(pairs) => {
                    pairs.iter_mut().for_each(|(source, target)| std::mem::swap(source, target));
                }
            }
        }
        self
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

    /// Calls `visit(source offset, target offset)` for each run, in the order of the loops.
    #[inline]
    pub(crate) fn each_run(&self, mut visit: impl FnMut(usize, usize)) {
        if self.run > 0 {
            walk(&self.loops, self.source_start, self.target_start, &mut visit);
        }
    }
}

/// Runs the loops from an offset in the source and one in the target.
fn walk(loops: &[Loop], source: usize, target: usize, visit: &mut impl FnMut(usize, usize)) {
    let Some((outer, inner)) = loops.split_first() else { return visit(source, target) };
    match outer {
        Loop::Even { count, source_step, target_step } => {
            let (mut source, mut target) = (source, target);
            // The innermost loop is separate, because most of the time goes there.
            if inner.is_empty() {
                for _ in 0..*count {
                    visit(source, target);
                    source += source_step;
                    target += target_step;
                }
                return;
            }
            for _ in 0..*count {
                walk(inner, source, target, visit);
                source += source_step;
                target += target_step;
            }
        }
        Loop::Listed(pairs) if inner.is_empty() => {
            pairs.iter().for_each(|&(s, t)| visit(source + s, target + t));
        }
        Loop::Listed(pairs) => {
            pairs.iter().for_each(|&(s, t)| walk(inner, source + s, target + t, visit));
        }
    }
}

/// Adds a loop around `loops` (innermost first), merged with the last one if both sides continue
/// with the same step.
fn push_loop(loops: &mut Vec<Loop>, more: usize, source_further: usize, target_further: usize) {
    if let Some(Loop::Even { count, source_step, target_step }) = loops.last_mut()
        && *source_step * *count == source_further
        && *target_step * *count == target_further
    {
        *count *= more;
        return;
    }
    loops.push(Loop::Even {
        count: more,
        source_step: source_further,
        target_step: target_further,
    });
}

impl Stretch<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Even { count, .. } => *count,
            Self::Listed { pairs, .. } => pairs.len() as u64,
        }
    }

    /// Whether all positions are within extents.
    fn is_within(&self, source_extent: u64, target_extent: u64) -> bool {
        match *self {
            Self::Even { source, step, target, count } => {
                let further = count.saturating_sub(1);
                let last = |start: u64, step: u64| further.checked_mul(step)?.checked_add(start);
                last(source, step).is_some_and(|last| last < source_extent)
                    && last(target, 1).is_some_and(|last| last < target_extent)
            }
            Self::Listed { origin, pairs } => pairs.iter().all(|&(source, target)| {
                source.checked_sub(origin).is_some_and(|source| source < source_extent)
                    && target < target_extent
            }),
        }
    }
}
