//! How a dataset is reached. Nothing here changes while it is open, but for the puts that may still land.
//!
//! Reads and writes single files; what they mean is decided by [`Committed`](super::committed::Committed) and
//! [`Writing`](super::write::Writing).

use chunkyard_store::{Error, Fetcher, Kind, Result, Store, Version};

use super::model::Style;
use super::protocol::Protocol;
use super::write::claim::Unsettled;

/// The store of a dataset, and how its files are laid out there.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) store: Store,
    pub(super) protocol: Protocol,
    pub(super) style: Style,
    pub(super) table: bool,
    /// Whether existing rows may be changed.
    pub(super) mutable: bool,
    pub(super) fetcher: Fetcher,
    /// Puts of this handle that may still land, on an object store.
    pub(super) unsettled: Unsettled,
}

impl Access {
    /// Whether chunks are added to a file and changed in it where it is. Any other file is written anew.
    pub(super) fn changes_in_place(&self) -> bool {
        self.store.writes_in_place() && self.style == Style::Superchunk
    }

    /// The version of an object as of now, which later puts must find.
    pub(super) async fn version_now(&self, path: &str) -> Result<Option<Version>> {
        match self.protocol {
            Protocol::Locked => Ok(None),
            Protocol::Claimed => Ok(self.protocol.version(&self.store.head(path).await?)),
        }
    }

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
