//! The route through a plan: array by array, the packs that are worth a visit.
//!
//! All arrays are scanned for stored chunks before the first pack moves, so that the amount of work
//! is known. The memory for it is bounded: an array with too many notes to keep is scanned again,
//! slice by slice, when its turn comes.

use std::sync::Arc;

use chunkyard_store::{Limits, Result};
use futures::{Stream, stream};

use super::occupied::{Scan, Side, Slice, Visit, notes_max};
use super::plan::{ArrayPlan, Plan};

/// The packs of one array.
#[derive(Debug)]
pub(super) struct Leg {
    plan: Arc<ArrayPlan>,
    scan: Scan,
    /// The first slice, unless there was no room to keep it.
    first: Option<Slice>,
    /// Packs of the first slice, and bytes of their elements.
    extent: (u64, u64),
}

/// Finds the packs of a plan that are worth a visit: a stored chunk on one of the array's sides
/// reaches into them.
pub(super) async fn survey(
    plan: &Plan,
    sides: impl Fn(&ArrayPlan) -> Vec<Side>,
    limits: &Limits,
) -> Result<Vec<Leg>> {
    let room = notes_max(limits);
    let (mut legs, mut kept) = (Vec::with_capacity(plan.arrays.len()), 0);
    for array in &plan.arrays {
        let plan = Arc::new(array.clone());
        let begin = Scan::new(&plan, sides(array), room);
        let mut scan = begin.clone();
        let first = scan.next().await?;
        let extent = first.as_ref().map_or((0, 0), Slice::extent);
        let weight = first.as_ref().map_or(0, Slice::weight);
        let keeps = kept + weight <= room;
        kept += if keeps { weight } else { 0 };
        let (scan, first) = if keeps { (scan, first) } else { (begin, None) };
        legs.push(Leg { plan, scan, first, extent });
    }
    Ok(legs)
}

impl Leg {
    /// The plan of the array.
    pub(super) fn plan(&self) -> &Arc<ArrayPlan> {
        &self.plan
    }

    /// Packs known to lie ahead, and the bytes of their elements.
    pub(super) fn extent(&self) -> (u64, u64) {
        self.extent
    }

    /// All packs, if they are known together.
    pub(super) fn into_slice(self) -> Option<Slice> {
        self.first.filter(|_| !self.scan.goes_on())
    }

    /// The packs one by one. `more` is called for packs that were not known to lie ahead.
    pub(super) fn visits(
        self,
        more: impl Fn((u64, u64)) + Send,
    ) -> impl Stream<Item = Result<Visit>> + Send {
        self.scan.visits_after(self.first, more)
    }
}

impl Scan {
    /// All packs one by one, slice by slice.
    pub(super) fn visits(self) -> impl Stream<Item = Result<Visit>> + Send {
        self.visits_after(None, |_| {})
    }

    /// The packs of a known slice, then the others. `more` is called for slices that were not
    /// counted before.
    fn visits_after(
        self,
        first: Option<Slice>,
        more: impl Fn((u64, u64)) + Send,
    ) -> impl Stream<Item = Result<Visit>> + Send {
        type Visits = Box<dyn Iterator<Item = Visit> + Send>;
        // A first slice that was not kept has been counted already.
        let told = first.is_none();
        let current = first.map(|slice| Box::new(slice.visits()) as Visits);
        let state = (self, current, told, more);
        stream::try_unfold(state, |(mut scan, mut current, mut told, more)| async move {
            loop {
                if let Some(visit) = current.as_mut().and_then(Iterator::next) {
                    return Ok(Some((visit, (scan, current, told, more))));
                }
                let Some(slice) = scan.next().await? else { return Ok(None) };
                if !std::mem::take(&mut told) {
                    more(slice.extent());
                }
                current = Some(Box::new(slice.visits()) as Visits);
            }
        })
    }
}
