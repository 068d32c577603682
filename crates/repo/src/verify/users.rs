//! Which snapshots a broken file affects.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::state::{Snapshot, State};

/// Snapshots, as ranges of positions in the state's list. History is mostly a line and a file is
/// needed for a stretch of it, so these are few, however long the history is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Range<usize>>);

impl Spans {
    /// Adds a position that is not before any that was added.
    fn push(&mut self, at: usize) {
        match self.0.last_mut() {
            Some(last) if at < last.end => {}
            Some(last) if at == last.end => last.end += 1,
            _ => self.0.push(at..at + 1),
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.0.iter().all(|range| self.0.contains(range)) {
            return;
        }
        let mut all = std::mem::take(&mut self.0);
        all.extend(other.0.iter().cloned());
        all.sort_by_key(|range| range.start);
        for range in all {
            match self.0.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => self.0.push(range),
            }
        }
    }
}

/// The snapshots that a finding affects.
#[derive(Clone, Copy)]
pub(super) struct Affected<'a> {
    snapshots: &'a [Arc<Snapshot>],
    spans: &'a [Range<usize>],
}

impl<'a> Affected<'a> {
    /// None in particular.
    pub(super) const NONE: Affected<'static> = Affected { snapshots: &[], spans: &[] };

    pub(super) fn new(state: &'a State, spans: &'a Spans) -> Self {
        Self { snapshots: &state.snapshots, spans: &spans.0 }
    }

    /// Their ids.
    pub(super) fn ids(&self) -> Vec<String> {
        let snapshots = self.spans.iter().filter_map(|range| self.snapshots.get(range.clone()));
        snapshots.flatten().map(|snapshot| snapshot.snapshot_id.clone()).collect()
    }
}

/// The snapshots that need each file.
#[derive(Debug, Default)]
pub(super) struct Users(HashMap<String, Spans>);

impl Users {
    /// Notes that the snapshot at a position needs a file. Snapshots come in order.
    pub(super) fn add(&mut self, path: String, snapshot: usize) {
        self.0.entry(path).or_default().push(snapshot);
    }

    /// Notes that every snapshot that needs one file needs the other too.
    pub(super) fn add_all(&mut self, path: String, spans: &Spans) {
        self.0.entry(path).or_default().merge(spans);
    }

    /// Whether any snapshot needs the file.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The snapshots that need the file.
    pub(super) fn of(&self, path: &str) -> Spans {
        self.0.get(path).cloned().unwrap_or_default()
    }
}

/// The snapshot at one position.
pub(super) fn only(snapshot: usize) -> Spans {
    let mut spans = Spans::default();
    spans.push(snapshot);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_history_is_one_span() {
        let mut spans = Spans::default();
        for at in [0, 1, 1, 2, 5, 6] {
            spans.push(at);
        }
        assert_eq!(spans.0, [0..3, 5..7]);
        spans.merge(&Spans(vec![2..5, 9..10]));
        assert_eq!(spans.0, [0..7, 9..10]);
        spans.merge(&only(4));
        assert_eq!(spans.0, [0..7, 9..10]);
    }
}
