//! Ranges sorted by the store that they are in.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Guard, Request, Store};
use crate::error::Error;

/// The parts of an answer that one call to a store gives, each with its place in the answer.
pub(super) type Shares = Vec<(usize, Option<Bytes>)>;

/// Ranges in one store.
pub(super) struct Group {
    pub(super) store: Store,
    /// Whether the store is not the fetcher's own, so that errors must name it.
    pub(super) elsewhere: bool,
    pub(super) requests: Vec<Request>,
    /// The place of each request in the answer.
    places: Vec<usize>,
}

impl Group {
    pub(super) fn new(store: Store, elsewhere: bool) -> Self {
        Self { store, elsewhere, requests: Vec::new(), places: Vec::new() }
    }

    pub(super) fn is_in(&self, store: &Store) -> bool {
        Arc::ptr_eq(self.store.backend(), store.backend())
    }

    pub(super) fn push(
        &mut self,
        at: usize,
        path: &Arc<str>,
        range: &Range<u64>,
        guard: &Option<Guard>,
    ) {
        let (path, range, guard) = (path.clone(), range.clone(), guard.clone());
        self.requests.push(Request { path, range, guard });
        self.places.push(at);
    }

    pub(super) fn shares(&self, bytes: Vec<(usize, Bytes)>) -> Shares {
        let place = |(request, bytes)| Some((*self.places.get::<usize>(request)?, Some(bytes)));
        bytes.into_iter().filter_map(place).collect()
    }

    /// Adds the place of an object elsewhere to an error that does not name it.
    pub(super) fn explain(&self, error: Error) -> Error {
        let full = |path: String| {
            if path.starts_with('/') { path } else { format!("{}/{path}", self.store.url()) }
        };
        match error {
            _ if !self.elsewhere => error,
            Error::NotFound { what, name } => Error::NotFound { what, name: full(name) },
            Error::Corrupt { file, what, expected, found } => {
                Error::Corrupt { file: full(file), what, expected, found }
            }
            Error::VirtualSourceChanged { url, expected, found } => {
                Error::VirtualSourceChanged { url: full(url), expected, found }
            }
            Error::Store { op, path, source } => Error::Store { op, path: full(path), source },
            other => other,
        }
    }
}
