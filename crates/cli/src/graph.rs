//! History as a graph of characters: one lane per line of descent, newest first.

use std::sync::Arc;

use chunkyard_engine::repo::Snapshot;

/// One printed row: the lanes, and its snapshot if it has one.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The lanes, such as `| * `.
    pub(crate) lanes: String,
    /// The snapshot of this row; none for rows that only join lanes.
    pub(crate) snapshot: Option<&'a Arc<Snapshot>>,
}

/// Draws snapshots. Each must come before its parent; a parent that is not in the list is left out.
pub(crate) fn draw(snapshots: &[Arc<Snapshot>]) -> Vec<Row<'_>> {
    // The snapshot that each lane waits for.
    let mut lanes: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for snapshot in snapshots {
        let id = snapshot.snapshot_id.as_str();
        let own = match lanes.iter().position(|lane| *lane == id) {
            Some(own) => own,
            None => {
                lanes.push(id);
                lanes.len() - 1
            }
        };
        // Further lanes that wait for the same snapshot end here.
        while let Some(other) = lanes.iter().rposition(|lane| *lane == id).filter(|at| *at != own) {
            rows.push(Row { lanes: join(own, other, lanes.len()), snapshot: None });
            lanes.remove(other);
        }
        let marks = (0..lanes.len()).map(|lane| if lane == own { "* " } else { "| " });
        rows.push(Row { lanes: marks.collect(), snapshot: Some(snapshot) });
        match snapshot.parent_snapshot_id.as_deref() {
            Some(parent) if snapshots.iter().any(|other| other.snapshot_id == parent) => {
                if let Some(lane) = lanes.get_mut(own) {
                    *lane = parent;
                }
            }
            _ => {
                lanes.remove(own);
            }
        }
    }
    rows
}

/// The lane `other` bends to the left, into the lane `own`, above all lanes between them.
fn join(own: usize, other: usize, count: usize) -> String {
    let mut row = String::new();
    for lane in 0..count {
        row.push(if lane == other { ' ' } else { '|' });
        row.push(match lane {
            _ if lane + 1 == other => '/',
            _ if (own..other).contains(&lane) => '_',
            _ => ' ',
        });
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history(parents: &[(&str, Option<&str>)]) -> Vec<Arc<Snapshot>> {
        let snapshot = |(id, parent): &(&str, Option<&str>)| {
            let document = json!({
                "snapshot-id": id, "parent-snapshot-id": parent,
                "timestamp-ms": 0, "structure-file": "x",
            });
            Arc::new(serde_json::from_value(document).unwrap())
        };
        parents.iter().map(snapshot).collect()
    }

    fn drawn(parents: &[(&str, Option<&str>)]) -> Vec<String> {
        let history = history(parents);
        let text = |row: &Row<'_>| match row.snapshot {
            Some(snapshot) => format!("{}{}", row.lanes, snapshot.snapshot_id),
            None => row.lanes.trim_end().to_owned(),
        };
        draw(&history).iter().map(text).collect()
    }

    #[test]
    fn a_line_is_one_lane() {
        assert_eq!(
            drawn(&[("c", Some("b")), ("b", Some("a")), ("a", None)]),
            ["* c", "* b", "* a"]
        );
    }

    #[test]
    fn two_branches_meet_where_they_parted() {
        let parents = [("d", Some("b")), ("c", Some("a")), ("b", Some("a")), ("a", None)];
        assert_eq!(drawn(&parents), ["* d", "| * c", "* | b", "|/", "* a"]);
    }

    #[test]
    fn three_branches_and_a_lane_between() {
        let parents =
            [("e", Some("a")), ("d", Some("b")), ("c", Some("a")), ("b", None), ("a", None)];
        assert_eq!(drawn(&parents), ["* e", "| * d", "| | * c", "| * | b", "|/", "* a"]);
    }

    #[test]
    fn a_history_that_is_cut_off_just_ends() {
        assert_eq!(drawn(&[("c", Some("b")), ("b", Some("a"))]), ["* c", "* b"]);
    }
}
