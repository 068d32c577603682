//! Finds out whether a layer that was written exists, and whether it counts.
//!
//! A reply may be lost, and the base may have been replaced meanwhile. A flush is acknowledged only
//! when every reader sees its layer, and its changes wait until that is known.

use std::collections::HashSet;
use std::sync::Arc;

use chunkyard_store::{Error, Result, Version};

use super::flush::Flushed;
use crate::container::bytes::seal::Seal;
use crate::container::handle::Inner;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::{Id, Stack};

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

impl Stack {
    /// The identities of all layers, including those merged into the base.
    pub(crate) fn known_ids(&self) -> HashSet<Id> {
        let absorbed = self.layers.iter().filter_map(|layer| layer.seal.as_ref());
        let absorbed = absorbed.flat_map(|seal| seal.absorbed.iter().map(|(_, id)| *id));
        self.layers.iter().map(|layer| layer.id()).chain(absorbed).collect()
    }

    /// Whether a base with this seal holds only layers that are in this stack. Older bases hold only
    /// layers, too.
    pub(crate) fn holds_all_of(&self, seal: &Seal) -> bool {
        let known = self.known_ids();
        let mut layers = seal.absorbed.iter().filter(|(number, _)| *number > 0);
        seal.sequence < self.next && layers.all(|(_, id)| known.contains(id))
    }
}

impl Inner {
    /// The layers with one more that was just written, if it counts. A name is free again once its
    /// layer was merged. So the new layer does not count if the base was replaced meanwhile by one
    /// that holds another layer of this number, or by the base of another container. Then the new
    /// layer is deleted, which no reader notices.
    pub(crate) async fn confirm_layer(&self, stack: &Stack, number: u64, id: Id) -> Result<Stack> {
        let path = self.names.layer(number);
        if Version::from(&self.store.head(&self.names.base()).await?) == stack.base {
            match self.open_layer(number).await {
                Ok(layer) => return Ok(stack.with(layer)),
                // It was merged since.
                Err(Error::NotFound { .. } | Error::VirtualSourceChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let now = Stack::open(&self.store, &self.names, self.search(), &self.windows).await?;
        let same = stack.container().is_none_or(|id| now.container() == Some(id));
        if same && (now.known_ids().contains(&id) || self.is_gone(&path).await?) {
            // The compaction that merged it deleted it.
            return Ok(now);
        }
        self.store.delete(std::slice::from_ref(&path)).await?;
        Err(Error::Conflict {
            message: format!(
                "{} was compacted or replaced since this container was opened",
                self.names.base()
            ),
            conflicts: Vec::new(),
        })
    }

    async fn open_layer(&self, number: u64) -> Result<Layer> {
        let meta = self.store.head(&self.names.layer(number)).await?;
        Layer::open(&self.store, number, &meta, &self.windows).await
    }

    async fn is_gone(&self, path: &str) -> Result<bool> {
        match self.store.head(path).await {
            Ok(_) => Ok(false),
            Err(Error::NotFound { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Finds out whether a layer exists when the last flush could not tell. If it does, the changes
    /// are flushed; if not, they wait again.
    pub(crate) async fn resolve_outcome(&self) -> Result<Option<Flushed>> {
        let Some((number, id)) = self.state().unknown_layer else { return Ok(None) };
        let stack = Stack::open(&self.store, &self.names, self.search(), &self.windows).await?;
        let there = stack.known_ids().contains(&id);
        let layer = stack.layers.iter().find(|layer| layer.id() == id);
        let bytes = layer.map_or(0, |layer| layer.size);
        let flushed = {
            let mut state = self.state();
            let frozen = state.frozen.take().unwrap_or_default();
            state.unknown_layer = None;
            match there {
                true => {
                    state.stack = Arc::new(stack);
                    frozen
                }
                false => {
                    state.pending = (*frozen).clone();
                    return Ok(None);
                }
            }
        };
        self.forget_spilled(&flushed).await;
        Ok(Some(Flushed { layer: number, bytes, note: None }))
    }
}
