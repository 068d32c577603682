//! Converts a state of the early draft, which allows more, to our own form when it is read. Nothing
//! in the file is lost, and the next state is written in our form.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use chunkyard_store::Result;

use super::state::{Reference, ReferenceKind, Snapshot, State, corrupt};

/// The default branch where the state names none.
const MAIN: &str = "main";

impl State {
    /// Converts a parsed state to our form. `file` names it in errors.
    pub(super) fn conform(&mut self, file: &str) -> Result<()> {
        // «If blank, the store root is assumed to be in the same directory as the state file».
        self.store_root.take_if(|root| root.trim().is_empty());
        // Our own states have everything else. One that lacks it is damaged.
        if self.write_id.is_empty() {
            self.end_at_unlisted_parents();
            self.order_snapshots(file)?;
        }
        if self.default_branch.is_empty() {
            self.default_branch = self.likely_default_branch();
        }
        let has_branches = self.refs.values().any(|r| r.kind == ReferenceKind::Branch);
        if self.refs.is_empty() || (self.write_id.is_empty() && !has_branches) {
            self.add_default_branch();
        }
        Ok(())
    }

    /// History begins at a parent that is not listed, as after an expiry; `change-base` keeps its
    /// name then, too.
    fn end_at_unlisted_parents(&mut self) {
        let positions = self.positions();
        let unlisted = |snapshot: &&mut Arc<Snapshot>| {
            let parent = snapshot.parent_snapshot_id.as_ref();
            parent.is_some_and(|parent| !positions.contains_key(parent))
        };
        for snapshot in self.snapshots.iter_mut().filter(unlisted) {
            let snapshot = Arc::make_mut(snapshot);
            let parent = snapshot.parent_snapshot_id.take();
            snapshot.change_base = snapshot.change_base.take().or(parent);
        }
    }

    /// Puts parents before their children, and otherwise older snapshots before younger ones.
    fn order_snapshots(&mut self, file: &str) -> Result<()> {
        let positions = self.positions();
        let parents: Vec<Option<usize>> = self
            .snapshots
            .iter()
            .map(|snapshot| positions.get(snapshot.parent_snapshot_id.as_ref()?).copied())
            .collect();
        if parents.iter().enumerate().all(|(at, parent)| parent.is_none_or(|parent| parent < at)) {
            return Ok(());
        }
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut ready = BinaryHeap::new();
        let age = |at: usize| Reverse((self.snapshots.get(at).map(|s| s.timestamp_ms), at));
        for (at, parent) in parents.iter().enumerate() {
            match parent {
                Some(parent) => children.entry(*parent).or_default().push(at),
                None => ready.push(age(at)),
            }
        }
        let mut ordered = Vec::with_capacity(self.snapshots.len());
        while let Some(Reverse((_, at))) = ready.pop() {
            ordered.extend(self.snapshots.get(at).cloned());
            ready.extend(children.remove(&at).into_iter().flatten().map(age));
        }
        // A snapshot that never became ready descends from itself.
        if let Some(at) = children.into_values().flatten().min() {
            let id = self.snapshots.get(at).map_or("", |snapshot| &snapshot.snapshot_id);
            let found = format!("{id}, which descends from itself");
            return Err(corrupt(file, "snapshots", "a history that has a beginning", &found));
        }
        self.snapshots = ordered;
        Ok(())
    }

    fn positions(&self) -> HashMap<String, usize> {
        let ids = self.snapshots.iter().map(|snapshot| snapshot.snapshot_id.clone());
        ids.zip(0..).collect()
    }

    /// `main`, the only branch, or the branch with the newest tip. Without branches: a free name.
    fn likely_default_branch(&self) -> String {
        let is_branch = |r: &&Reference| r.kind == ReferenceKind::Branch;
        if self.refs.get(MAIN).as_ref().is_some_and(is_branch) {
            return MAIN.into();
        }
        let branches = self.refs.values().filter(is_branch);
        let order: HashMap<&str, (i64, usize)> = self
            .snapshots
            .iter()
            .enumerate()
            .map(|(at, s)| (s.snapshot_id.as_str(), (s.timestamp_ms, at)))
            .collect();
        // Among equals, the first by name.
        let newest =
            branches.rev().max_by_key(|branch| order.get(branch.snapshot_id.as_str()).copied());
        if let Some(newest) = newest {
            return newest.name.clone();
        }
        let further = (1..).map(|number: u64| format!("{MAIN}-{number}"));
        let mut names = std::iter::once(MAIN.to_owned()).chain(further);
        names.find(|name| !self.refs.contains_key(name)).unwrap_or_default()
    }

    /// The draft makes `refs` optional: without them, the newest snapshot is meant.
    fn add_default_branch(&mut self) {
        // Among equals the last, which is no parent of the others.
        let Some(newest) = self.snapshots.iter().max_by_key(|snapshot| snapshot.timestamp_ms)
        else {
            return;
        };
        let (name, snapshot_id) = (self.default_branch.clone(), newest.snapshot_id.clone());
        let kind = ReferenceKind::Branch;
        self.refs.entry(name.clone()).or_insert(Reference { name, snapshot_id, kind });
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_store::Error;
    use serde_json::{Value, json};

    use super::*;

    fn snapshot(id: &str, parent: Option<&str>, time: i64) -> Value {
        json!({
            "snapshot-id": id, "parent-snapshot-id": parent, "timestamp-ms": time,
            "structure-file": id,
        })
    }

    fn reference(name: &str, id: &str, kind: &str) -> Value {
        json!({"name": name, "snapshot-id": id, "type": kind})
    }

    fn document(snapshots: &[Value], references: &[Value]) -> Value {
        let mut document = json!({"id": "d", "generation": 3, "snapshots": snapshots});
        for reference in references {
            document["refs"][reference["name"].as_str().unwrap()] = reference.clone();
        }
        document
    }

    fn parse(document: &Value) -> Result<State> {
        State::parse(document.to_string().as_bytes(), "state.json")
    }

    fn ids(state: &State) -> Vec<&str> {
        state.snapshots.iter().map(|snapshot| snapshot.snapshot_id.as_str()).collect()
    }

    #[test]
    fn a_blank_store_root_is_none() {
        for blank in ["", " "] {
            let mut state = document(&[snapshot("a", None, 1)], &[]);
            state["store_root"] = json!(blank);
            let state = parse(&state).unwrap();
            assert_eq!(state.store_root, None);
            assert!(!String::from_utf8(state.render().unwrap()).unwrap().contains("store_root"));
        }
    }

    #[test]
    fn snapshots_may_come_in_any_order() {
        let newest_first =
            [snapshot("c", Some("b"), 3), snapshot("b", Some("a"), 2), snapshot("a", None, 1)];
        let state = parse(&document(&newest_first, &[])).unwrap();
        assert_eq!(ids(&state), ["a", "b", "c"]);
        assert_eq!(state.tip("main").unwrap().snapshot_id, "c");
        // The clocks disagree with the descent, and descent decides.
        let odd = [
            snapshot("d", Some("a"), 1),
            snapshot("a", None, 9),
            snapshot("x", None, 5),
            snapshot("b", Some("a"), 2),
        ];
        assert_eq!(ids(&parse(&document(&odd, &[])).unwrap()), ["x", "a", "d", "b"]);
        // What is in order stays as it is.
        let sound = [snapshot("z", None, 9), snapshot("y", None, 1), snapshot("w", Some("z"), 2)];
        assert_eq!(ids(&parse(&document(&sound, &[])).unwrap()), ["z", "y", "w"]);
    }

    #[test]
    fn history_begins_at_a_parent_that_is_not_listed() {
        let state =
            parse(&document(&[snapshot("b", Some("a"), 2), snapshot("gone", Some("b"), 3)], &[]));
        let state = state.unwrap();
        assert_eq!(state.snapshots[0].parent_snapshot_id, None);
        assert_eq!(state.snapshots[0].change_base.as_deref(), Some("a"), "its name is kept");
        assert_eq!(state.ancestry("gone").count(), 2);
    }

    #[test]
    fn cycles_are_refused() {
        for cycle in [
            vec![snapshot("a", Some("a"), 1)],
            vec![snapshot("a", Some("b"), 1), snapshot("b", Some("a"), 2)],
            vec![
                snapshot("r", None, 1),
                snapshot("a", Some("c"), 1),
                snapshot("b", Some("a"), 2),
                snapshot("c", Some("b"), 2),
            ],
        ] {
            let error = parse(&document(&cycle, &[])).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }

    #[test]
    fn a_state_of_ours_keeps_its_checks() {
        for snapshots in [
            vec![snapshot("b", Some("a"), 2), snapshot("a", None, 1)],
            vec![snapshot("b", Some("a"), 2)],
        ] {
            let mut document = document(&snapshots, &[]);
            document["write-id"] = json!("w");
            assert!(matches!(parse(&document).unwrap_err(), Error::Corrupt { .. }));
        }
        let mut document =
            document(&[snapshot("a", None, 1)], &[reference("trunk", "a", "branch")]);
        document["default-branch"] = json!("main");
        assert!(matches!(parse(&document).unwrap_err(), Error::Corrupt { .. }));
    }

    #[test]
    fn the_default_branch_is_main_or_the_only_one_or_the_newest() {
        let snapshots = [snapshot("a", None, 1), snapshot("b", Some("a"), 2)];
        let default = |references: &[Value]| {
            let state = parse(&document(&snapshots, references)).unwrap();
            let tip = state.tip(&state.default_branch).unwrap().snapshot_id.clone();
            (state.default_branch.clone(), tip)
        };
        let expect = |name: &str, tip: &str| (name.to_owned(), tip.to_owned());
        let branch = |name: &str, id: &str| reference(name, id, "branch");
        let tag = |name: &str, id: &str| reference(name, id, "tag");
        assert_eq!(default(&[]), expect("main", "b"));
        assert_eq!(default(&[branch("main", "a"), branch("z", "b")]), expect("main", "a"));
        assert_eq!(default(&[branch("trunk", "a"), tag("v1", "b")]), expect("trunk", "a"));
        assert_eq!(default(&[branch("old", "a"), branch("new", "b")]), expect("new", "b"));
        assert_eq!(default(&[branch("y", "b"), branch("x", "b")]), expect("x", "b"));
        assert_eq!(default(&[tag("v1", "a")]), expect("main", "b"));
        assert_eq!(default(&[tag("main", "a")]), expect("main-1", "b"));
    }
}
