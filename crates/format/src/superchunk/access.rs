//! How a dataset is reached. Nothing here changes while it is open, but for the puts that may still land.
//!
//! Reads and writes single files; what they mean is decided by [`Committed`](super::committed::Committed) and
//! [`Writing`](super::write::Writing).

use chunkyard_store::{Error, Fetcher, Kind, Result, Store};

use super::model::Style;
use super::write::claim::Unsettled;

/// The store of a dataset, and how its files are laid out there.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) store: Store,
    pub(super) style: Style,
    pub(super) table: bool,
    /// Whether existing rows may be changed.
    pub(super) mutable: bool,
    pub(super) fetcher: Fetcher,
    /// Puts of this handle that may still land, on an object store.
    pub(super) unsettled: Unsettled,
}

impl Access {
    /// Refuses to write where nothing can be written.
    pub(super) fn refuse_read_only(&self) -> Result<()> {
        match self.store.kind() {
            Kind::ReadOnly => {
                Err(Error::unsupported(format!("writing to {}, a web server", self.store.url())))
            }
            Kind::Object { conditional_put: false } => Err(Error::unsupported(format!(
                "changing {} here: this store cannot replace an object only if it is unchanged, so two \
                 writers could undo each other; write elsewhere and copy",
                self.store.url()
            ))),
            // Each column has its own `sizes`, and they cannot all be replaced in one step.
            Kind::Object { .. } if self.table && self.style == Style::Bcolz => {
                Err(Error::unsupported(format!(
                    "changing {}, a table in the style of bcolz, in an object store",
                    self.store.url()
                )))
            }
            _ => Ok(()),
        }
    }
}
