//! The same work again and again, each time with the fault at the next operation.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Fault, Plan};
use crate::Store;

/// Attempts with the fault of a plan at operation 0, 1, 2, … The last one is the first whose fault
/// did not strike: then the work has no further operations.
///
/// The caller makes a store for each attempt and [wraps](Attempt::wrap) it. Operations between are
/// left out by [`Attempt::skip`].
pub fn at_every_operation(plan: Plan) -> Attempts {
    Attempts { plan: Plan { at: 0, ..plan }, last: Arc::new(Mutex::new(Last::Skipped)) }
}

/// What became of an attempt.
#[derive(Debug)]
enum Last {
    Unused,
    Skipped,
    Wrapped(Arc<Fault>),
}

/// The attempts of [`at_every_operation`].
#[derive(Debug)]
pub struct Attempts {
    plan: Plan,
    last: Arc<Mutex<Last>>,
}

impl Iterator for Attempts {
    type Item = Attempt;

    fn next(&mut self) -> Option<Attempt> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = match &*last {
            // An attempt without a store has no operations to go on with.
            Last::Unused => false,
            Last::Skipped => true,
            Last::Wrapped(fault) => fault.fired(),
        };
        *last = Last::Unused;
        let plan = self.plan;
        self.plan.at += 1;
        reached.then(|| Attempt { plan, last: self.last.clone() })
    }
}

/// One attempt, with the fault at one operation.
#[derive(Debug)]
pub struct Attempt {
    plan: Plan,
    last: Arc<Mutex<Last>>,
}

impl Attempt {
    /// When and how the store goes wrong.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// The operation that goes wrong.
    pub fn at(&self) -> usize {
        self.plan.at
    }

    /// A store that works as `store` does until the fault strikes, and the fault.
    pub fn wrap(&self, store: &Store) -> (Store, Arc<Fault>) {
        let (faulty, fault) = Fault::wrap(store, self.plan);
        self.set(Last::Wrapped(fault.clone()));
        (faulty, fault)
    }

    /// Goes on with the next operation without a fault at this one.
    pub fn skip(&self) {
        self.set(Last::Skipped);
    }

    fn set(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}
