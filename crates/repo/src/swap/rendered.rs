//! The JSON of snapshots, kept from one state to the next.
//!
//! A state lists its whole history, and a commit adds one snapshot to it. Rendering all others
//! again would be the most expensive part of a commit after a thousand of them; here they are
//! copied.

use std::sync::Arc;

use chunkyard_store::{Error, Result};

use crate::state::{Snapshot, State};

/// The snapshots of the last state that was rendered, in its order.
///
/// They are identified by their address, which stays taken while they are held here; a changed
/// snapshot has another address, because a shared one is copied first.
#[derive(Debug, Default)]
pub(super) struct Rendered(Vec<(Arc<Snapshot>, Box<[u8]>)>);

impl Rendered {
    /// The bytes of a state: what [`State::render`] gives.
    pub(super) fn render(&mut self, state: &State) -> Result<Vec<u8>> {
        let frame = State { snapshots: Vec::new(), ..state.clone() }.render()?;
        // Only the keys that this version does not know come after the snapshots.
        let after = match state.unknown.is_empty() {
            true => b"}".to_vec(),
            false => [b",", to_json(&state.unknown)?.get(1..).unwrap_or_default()].concat(),
        };
        let after = [b"]", &after[..]].concat();
        let Some(before) = frame.strip_suffix(&after[..]) else { return state.render() };

        self.update(state.own_snapshots())?;
        let snapshots: usize = self.0.iter().map(|(_, json)| json.len() + 1).sum();
        let mut bytes = Vec::with_capacity(frame.len() + snapshots);
        bytes.extend_from_slice(before);
        for (at, (_, json)) in self.0.iter().enumerate() {
            if at > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(json);
        }
        bytes.extend_from_slice(&after);
        Ok(bytes)
    }

    /// Renders the snapshots that are new since the last time.
    fn update(&mut self, snapshots: &[Arc<Snapshot>]) -> Result<()> {
        self.0.truncate(snapshots.len());
        for (at, snapshot) in snapshots.iter().enumerate() {
            match self.0.get_mut(at) {
                Some((known, _)) if Arc::ptr_eq(known, snapshot) => {}
                Some(other) => *other = (snapshot.clone(), to_json(snapshot)?.into()),
                None => self.0.push((snapshot.clone(), to_json(snapshot)?.into())),
            }
        }
        Ok(())
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Invalid { what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::swap::tests::committed;

    #[test]
    fn a_state_is_rendered_as_if_nothing_were_kept() {
        let mut rendered = Rendered::default();
        let first = json!({
            "id": "d", "generation": 0, "snapshots": [
                {"snapshot-id": "first", "timestamp-ms": 1, "structure-file": "f"},
            ],
        });
        let mut state = State::parse(first.to_string().as_bytes(), "state.json").unwrap();
        for round in 0..20 {
            state = committed(&state, &format!("snapshot-{round}"));
            match round {
                5 => drop(state.unknown.insert("later".into(), json!({"snapshots": []}))),
                8 => drop(state.snapshots.remove(3)),
                11 => Arc::make_mut(&mut state.snapshots[2]).message = "changed".into(),
                13 => drop(state.properties.insert("p".into(), json!("\"snapshots\":[]}"))),
                15 => state.snapshots.truncate(4),
                _ => {}
            }
            assert_eq!(rendered.render(&state).unwrap(), state.render().unwrap(), "{round}");
        }
    }
}
