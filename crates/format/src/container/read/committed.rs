//! What is committed.

use std::sync::Arc;

use chunkyard_store::{Error, Noun, Result};

use crate::container::layers::files::Files;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::{Search, Stack};
use crate::container::write::changes::Description;

/// What is committed: the layers of a container as they are in the store at one moment.
///
/// It never changes, so that readers share it without a lock. A flush, a refresh or a compaction makes
/// another one. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// Where the files are.
    pub(crate) files: Arc<Files>,
    /// The layers.
    pub(crate) stack: Arc<Stack>,
}

impl Committed {
    /// What is committed now.
    pub(crate) async fn open(files: &Arc<Files>, search: Search) -> Result<Self> {
        let stack = Stack::open(&files.store, &files.names, search, &files.windows).await?;
        Ok(Self { files: files.clone(), stack: Arc::new(stack) })
    }

    /// The same with one more layer.
    pub(crate) fn with(&self, layer: Layer) -> Self {
        Self { files: self.files.clone(), stack: Arc::new(self.stack.with(layer)) }
    }

    /// The description of an array, if it exists.
    pub(crate) async fn describe(&self, name: &str) -> Result<Option<Arc<Description>>> {
        Ok(self.stack.array(name).await?.map(|array| array.described.clone()))
    }
}

impl Files {
    /// An error of reading layers, for the caller: a file that is gone or changed was compacted or
    /// replaced.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match error {
            error @ (Error::VirtualSourceChanged { .. }
            | Error::NotFound { what: Noun::Object, .. }) => Error::Conflict {
                message: format!(
                    "{} was compacted or replaced since it was opened ({error}); open it again",
                    self.names.base()
                ),
                conflicts: Vec::new(),
            },
            error => error,
        }
    }
}
