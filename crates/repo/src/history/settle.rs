//! Whether a change is in history, however long ago it was attempted.

use chunkyard_store::Result;

use crate::state::State;
use crate::swap::StateFile;

impl StateFile {
    /// Whether the state `ours` is an ancestor of `latest`, or `latest` itself. Each generation has
    /// one write id, and `latest` or its history remembers it: neither expiry nor a reset nor a
    /// collection takes it away. `None` if neither remembers it, because a program that keeps no
    /// history wrote in between.
    pub(crate) async fn landed(&self, latest: &State, ours: &State) -> Result<Option<bool>> {
        let recent = &latest.recent_write_ids;
        if latest.write_id == ours.write_id || recent.contains(&ours.write_id) {
            return Ok(Some(true));
        }
        let forgotten = latest.generation.saturating_sub(recent.len() as u64);
        if ours.generation > forgotten {
            return Ok(Some(false));
        }
        let Some(history) = &latest.history else { return Ok(None) };
        let index = self.index(&latest.id, history).await?;
        if let Some(id) = index.newest_writes.id_of(ours.generation) {
            return Ok(Some(id == ours.write_id));
        }
        let holds = |first: u64, count: u64| {
            ours.generation.checked_sub(first).is_some_and(|offset| offset < count)
        };
        let Some(run) = index.writes.iter().find(|run| holds(run.first, run.count)) else {
            return Ok(None);
        };
        let writes = self.write_run(&latest.id, run).await?;
        Ok(writes.id_of(ours.generation).map(|id| id == ours.write_id))
    }
}
