//! Finds out whether a layer that was written exists, and whether it counts.
//!
//! A reply may be lost, and the base may have been replaced meanwhile. A flush is acknowledged only
//! when every reader sees its layer, and its changes wait until that is known.

use chunkyard_store::{Error, Result, Version};

use super::flush::Flushed;
use crate::container::handle::OpenContainer;
use crate::container::layers::files::Files;
use crate::container::layers::stack::{Id, Search};
use crate::container::read::committed::Committed;

/// Why a layer was not written; and which layer, if it may exist all the same.
#[derive(Debug)]
pub(crate) struct FlushFailure {
    pub(crate) error: Error,
    pub(crate) layer: Option<(u64, Id)>,
}

impl From<Error> for FlushFailure {
    fn from(error: Error) -> Self {
        Self { error, layer: None }
    }
}

impl Committed {
    /// What is committed, with one more layer that was just written, if it counts. A name is free again
    /// once its layer was merged. So the new layer does not count if the base was replaced meanwhile by
    /// one that holds another layer of this number, or by the base of another container. Then the new
    /// layer is deleted, which no reader notices.
    pub(crate) async fn confirm_layer(&self, number: u64, id: Id, search: Search) -> Result<Self> {
        let (stack, Files { store, names, .. }) = (&self.stack, &*self.files);
        let path = names.layer(number);
        if Version::from(&store.head(&names.base()).await?) == stack.base {
            match self.files.open_layer(number).await {
                Ok(layer) => return Ok(self.with(layer)),
                // It was merged since.
                Err(Error::NotFound { .. } | Error::VirtualSourceChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let now = Self::open(&self.files, search).await?;
        let same = stack.container().is_none_or(|id| now.stack.container() == Some(id));
        if same && (now.stack.known_ids().contains(&id) || self.files.is_missing(&path).await?) {
            // The compaction that merged it deleted it.
            return Ok(now);
        }
        store.delete(std::slice::from_ref(&path)).await?;
        Err(Error::Conflict {
            message: format!(
                "{} was compacted or replaced since this container was opened",
                names.base()
            ),
            conflicts: Vec::new(),
        })
    }
}

impl OpenContainer {
    /// Finds out whether a layer exists when the last flush could not tell. If it does, the changes
    /// are flushed. If not, it may still land, so the same layer is written again.
    pub(crate) async fn resolve_outcome(&self) -> Result<Outcome> {
        let unknown_layer = self.state().uncommitted.unknown_layer();
        let Some((number, id)) = unknown_layer else { return Ok(Outcome::Known) };
        let committed = Committed::open(&self.files, self.search()).await?;
        if !committed.stack.known_ids().contains(&id) {
            return Ok(Outcome::Unknown((number, id)));
        }
        let layer = committed.stack.layers.iter().find(|layer| layer.id() == id);
        let bytes = layer.map_or(0, |layer| layer.size);
        let flushed = {
            let mut state = self.state();
            state.committed = committed;
            state.uncommitted.flushed()
        };
        self.files.forget_spilled(&flushed).await;
        Ok(Outcome::Flushed(Flushed { layer: number, bytes, note: None }))
    }
}

/// What is known of the last flush.
pub(crate) enum Outcome {
    /// Everything.
    Known,
    /// Its layer exists.
    Flushed(Flushed),
    /// Its layer, with this number and identity, does not exist yet.
    Unknown((u64, Id)),
}
