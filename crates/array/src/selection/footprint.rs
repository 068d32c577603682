//! The part of one chunk that a selection wants, and where it goes.

use std::sync::Arc;

use super::span::Span;
use crate::copy::{Plan, SliceSink, Stretch, check_len};
use crate::{Error, Region, Result};

/// The part of a selection that lies in one chunk. Knows two places of each element: *inside* the
/// chunk, and *outside*, among the selected elements.
#[derive(Clone, Debug)]
pub struct Footprint {
    chunk_shape: Arc<[u64]>,
    bounds: Region,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// All combinations of the positions along each axis.
    Product(Vec<Span>),
    /// Pairs of inside and outside, each a number of elements in row-major order; ascending, and as
    /// in [`Span::Listed`] the later of repeated ones comes later.
    Points(Vec<(u64, u64)>),
}

impl Footprint {
    /// All combinations of the positions of spans.
    pub(super) fn product(chunk_shape: Arc<[u64]>, spans: Vec<Span>) -> Self {
        let bounds = Region::from_bounds(spans.iter().map(Span::bounds));
        Self { chunk_shape, bounds, pattern: Pattern::Product(spans) }
    }

    /// Points, given by their numbers inside and outside, of which there is at least one.
    pub(super) fn points(chunk_shape: Arc<[u64]>, mut pairs: Vec<(u64, u64)>) -> Self {
        pairs.sort_unstable();
        let mut bounds = vec![(u64::MAX, 0); chunk_shape.len()];
        let mut position = vec![0; chunk_shape.len()];
        for &(inside, _) in &pairs {
            unravel(inside, &chunk_shape, &mut position);
            for (bound, &at) in bounds.iter_mut().zip(&position) {
                *bound = (bound.0.min(at), bound.1.max(at + 1));
            }
        }
        let bounds = Region::from_bounds(bounds.into_iter());
        Self { chunk_shape, bounds, pattern: Pattern::Points(pairs) }
    }

    /// Shape of the whole chunk, padding included.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// The same for a chunk of a smaller `shape` at the same origin, for formats that clip the
    /// chunks at the upper edge of an array. An error if elements outside the smaller chunk are
    /// wanted.
    pub fn clipped(mut self, shape: &[u64]) -> Result<Self> {
        if *shape == *self.chunk_shape {
            return Ok(self);
        }
        if !Region::whole(shape).contains(&self.bounds) {
            return Err(Error::invalid(format!(
                "{} of a chunk is not within its clipped shape {shape:?}",
                self.bounds
            )));
        }
        if let Pattern::Points(pairs) = &mut self.pattern {
            // Row-major order is the same in both shapes, so the points stay sorted.
            let mut position = vec![0; shape.len()];
            for (inside, _) in pairs {
                unravel(*inside, &self.chunk_shape, &mut position);
                let axes = position.iter().zip(shape);
                *inside = axes.fold(0, |number, (&at, &extent)| number * extent + at);
            }
        }
        self.chunk_shape = shape.into();
        Ok(self)
    }

    /// The smallest box of the chunk that holds all wanted elements.
    pub fn bounds(&self) -> &Region {
        &self.bounds
    }

    /// Whether the whole chunk is wanted, padding included, in its own order.
    pub fn is_whole_chunk(&self) -> bool {
        match &self.pattern {
            Pattern::Product(spans) => self.axes(spans).all(|(span, extent)| span.is_whole(extent)),
            Pattern::Points(_) => false,
        }
    }

    /// Whether each element of the chunk that lies in `shape`, from its origin on, is wanted.
    pub fn covers(&self, shape: &[u64]) -> bool {
        if shape.len() != self.chunk_shape.len() {
            return false;
        }
        match &self.pattern {
            Pattern::Product(spans) => {
                spans.iter().zip(shape).all(|(span, &extent)| span.covers(extent))
            }
            Pattern::Points(pairs) => {
                let distinct = pairs.chunk_by(|a, b| a.0 == b.0).count() as u64;
                distinct >= Region::whole(shape).num_elements()
            }
        }
    }

    /// Whether some element in a box of the chunk is wanted.
    pub fn wants(&self, place: &Region) -> bool {
        if self.bounds.intersect(place).is_none() {
            return false;
        }
        match &self.pattern {
            Pattern::Product(_) => self.stretches_within(place).is_some(),
            Pattern::Points(pairs) => self.points_within(pairs, place).next().is_some(),
        }
    }

    /// Plans to copy the wanted part of a box of the chunk to its place outside, in an array of
    /// `shape`; `None` if nothing in the box is wanted.
    pub(crate) fn plan(
        &self,
        place: &Region,
        shape: &[u64],
        item_size: usize,
    ) -> Result<Option<Plan>> {
        self.check_rank(place)?;
        match &self.pattern {
            Pattern::Product(_) => {
                let Some(stretches) = self.stretches_within(place) else { return Ok(None) };
                Plan::of(place.shape(), shape, item_size, &stretches).map(Some)
            }
            Pattern::Points(pairs) if *place == self.whole() => {
                self.plan_points(place, pairs, shape, item_size).map(Some)
            }
            Pattern::Points(pairs) => {
                // Its elements are numbered.
                place.num_bytes(item_size)?;
                let pairs: Vec<_> = self.points_within(pairs, place).collect();
                match pairs.is_empty() {
                    true => Ok(None),
                    false => self.plan_points(place, &pairs, shape, item_size).map(Some),
                }
            }
        }
    }

    /// Plans to set the wanted part of a box of the chunk at its place outside, in an array of
    /// `shape`. The source of this plan has no meaning.
    pub(crate) fn plan_filling(
        &self,
        place: &Region,
        shape: &[u64],
        item_size: usize,
    ) -> Result<Option<Plan>> {
        let Pattern::Product(_) = &self.pattern else { return self.plan(place, shape, item_size) };
        self.check_rank(place)?;
        let Some(mut stretches) = self.stretches_within(place) else { return Ok(None) };
        // As if the source were dense: runs are then as long as the target lets them be.
        let mut extents = place.shape().to_vec();
        for (stretch, extent) in stretches.iter_mut().zip(&mut extents) {
            if let Stretch::Even { source, step, count, .. } = stretch {
                (*source, *step, *extent) = (0, 1, *count);
            }
        }
        Plan::of(&extents, shape, item_size, &stretches).map(Some)
    }

    /// Copies elements of an array of `given_shape` from their places outside into the decoded
    /// chunk.
    pub fn scatter(
        &self,
        given: &[u8],
        given_shape: &[u64],
        chunk: &mut [u8],
        item_size: usize,
    ) -> Result<()> {
        check_len("elements", given.len(), given_shape, item_size)?;
        check_len("decoded chunk", chunk.len(), &self.chunk_shape, item_size)?;
        if let Some(plan) = self.plan(&self.whole(), given_shape, item_size)? {
            plan.reversed().copy(given, &mut SliceSink(chunk));
        }
        Ok(())
    }

    /// Sets all wanted elements of the decoded chunk to `element`.
    pub fn scatter_one(&self, element: &[u8], shape: &[u64], chunk: &mut [u8]) -> Result<()> {
        check_len("decoded chunk", chunk.len(), &self.chunk_shape, element.len())?;
        if let Some(plan) = self.plan(&self.whole(), shape, element.len())? {
            plan.reversed().fill(element, &mut SliceSink(chunk));
        }
        Ok(())
    }

    /// The whole chunk in elements of an array of `given_shape`, if it is contiguous there.
    pub fn whole_chunk<'a>(
        &self,
        given: &'a [u8],
        given_shape: &[u64],
        item_size: usize,
    ) -> Result<Option<&'a [u8]>> {
        check_len("elements", given.len(), given_shape, item_size)?;
        if !self.is_whole_chunk() {
            return Ok(None);
        }
        let plan = self.plan(&self.whole(), given_shape, item_size)?;
        let run = plan.and_then(|plan| plan.single_run());
        Ok(run.and_then(|(offset, len)| given.get(offset..)?.get(..len)))
    }

    fn whole(&self) -> Region {
        Region::whole(&self.chunk_shape)
    }

    fn plan_points(
        &self,
        place: &Region,
        pairs: &[(u64, u64)],
        shape: &[u64],
        item_size: usize,
    ) -> Result<Plan> {
        let volume = place.num_elements();
        Plan::of(&[volume], shape, item_size, &[Stretch::Listed { origin: 0, pairs }])
    }

    fn stretches_within(&self, place: &Region) -> Option<Vec<Stretch<'_>>> {
        let Pattern::Product(spans) = &self.pattern else { return None };
        let bounds = place.origin().iter().zip(place.shape());
        spans
            .iter()
            .zip(bounds)
            .map(|(span, (&start, &extent))| span.stretch(start, start + extent))
            .collect()
    }

    /// The points in a box, with their numbers in the box.
    fn points_within<'a>(
        &'a self,
        pairs: &'a [(u64, u64)],
        place: &'a Region,
    ) -> impl Iterator<Item = (u64, u64)> + 'a {
        // Numbers rise with the first coordinate: the box begins and ends somewhere among them.
        let row = self.chunk_shape.iter().skip(1).product::<u64>();
        let first = place.origin().first().copied().unwrap_or(0);
        let extent = place.shape().first().copied().unwrap_or(1);
        let limit = |at: u64| at.saturating_mul(row);
        let from = pairs.partition_point(|pair| pair.0 < limit(first));
        let until = pairs.partition_point(|pair| pair.0 < limit(first.saturating_add(extent)));
        let mut position = vec![0; self.chunk_shape.len()];
        pairs.get(from..until).unwrap_or_default().iter().filter_map(move |&(inside, outside)| {
            unravel(inside, &self.chunk_shape, &mut position);
            let mut number = 0;
            let axes = place.origin().iter().zip(place.shape());
            for (&at, (&start, &extent)) in position.iter().zip(axes) {
                let at = at.checked_sub(start).filter(|&at| at < extent)?;
                number = extent.checked_mul(number)?.checked_add(at)?;
            }
            Some((number, outside))
        })
    }

    fn axes<'a>(&'a self, spans: &'a [Span]) -> impl Iterator<Item = (&'a Span, u64)> {
        spans.iter().zip(self.chunk_shape.iter().copied())
    }

    fn check_rank(&self, place: &Region) -> Result<()> {
        if place.rank() == self.chunk_shape.len() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "box {place} has another rank than the chunk of shape {:?}",
            self.chunk_shape
        )))
    }
}

/// The position of element `number` of an array, in row-major order.
fn unravel(mut number: u64, shape: &[u64], position: &mut [u64]) {
    for (at, &extent) in position.iter_mut().zip(shape).rev() {
        let extent = extent.max(1);
        (*at, number) = (number % extent, number / extent);
    }
}
