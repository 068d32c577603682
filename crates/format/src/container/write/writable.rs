//! When a container cannot be changed, and why.

use chunkyard_store::{Error, Kind, Result};

use crate::container::handle::OpenContainer;

impl OpenContainer {
    /// Refuses changes if the container is read-only, see [`Self::refuse_read_only`], or if its state
    /// in the store is unknown.
    pub(crate) fn refuse_changes(&self) -> Result<()> {
        self.refuse_read_only()?;
        let (stack, unknown_layer) = {
            let state = self.state();
            (state.committed.stack.clone(), state.uncommitted.unknown_layer())
        };
        if let Some((number, _)) = unknown_layer {
            return Err(Error::Conflict {
                message: format!(
                    "whether {} was written is not known yet: flush again",
                    self.files.names.layer(number)
                ),
                conflicts: Vec::new(),
            });
        }
        stack.refuse_torn()
    }

    /// Refuses changes to a container that was opened as of an older layer, or that cannot be written.
    pub(crate) fn refuse_read_only(&self) -> Result<()> {
        if let Some(layer) = self.options.as_of {
            return Err(Error::invalid(format!(
                "{} was opened as of layer {layer}, so it cannot be changed",
                self.files.names.base()
            )));
        }
        let stack = self.committed().stack;
        if stack.layers.iter().any(|layer| layer.root.version != 4) {
            return Err(Error::unsupported(format!(
                "changing {}, which is of a version that we only read: convert it to a new one",
                self.files.names.base()
            )));
        }
        match self.files.store.kind() {
            Kind::ReadOnly => Err(Error::unsupported(format!(
                "writing to {}, a web server",
                self.files.store.url()
            ))),
            _ => Ok(()),
        }
    }
}
