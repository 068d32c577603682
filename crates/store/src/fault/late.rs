//! Requests that take effect after their client has given up waiting.

use bytes::Bytes;

use super::{Fault, Step};
use crate::backend::{Backend, Version};
use crate::error::{Error, Result};

/// A request that is still on its way.
#[derive(Debug)]
pub(super) enum Late {
    Put { path: String, bytes: Vec<Bytes> },
    Create { path: String, bytes: Bytes },
    Replace { path: String, bytes: Bytes, expected: Version },
    Link { from: String, to: String },
}

impl Late {
    async fn land(self, store: &dyn Backend) -> Result<()> {
        match self {
            Self::Put { path, bytes } => store.put(&path, bytes).await,
            Self::Create { path, bytes } => store.create(&path, bytes).await.map(drop),
            Self::Replace { path, bytes, expected } => {
                store.replace(&path, bytes, &expected).await.map(drop)
            }
            Self::Link { from, to } => store.link(&from, &to).await.map(drop),
        }
    }
}

impl Fault {
    /// Keeps a request for later. Its client hears of a time-out.
    pub(super) fn put_off(&self, step: &Step, late: Late) -> Error {
        self.state().late = Some(late);
        step.injected("timed out")
    }

    /// Lets a late request take effect. The store decides about its condition now; its client has
    /// gone and hears nothing, not even of an error.
    pub(super) async fn land_late(&self) {
        let late = self.state().late.take();
        if let Some(late) = late {
            late.land(&*self.inner).await.ok();
        }
    }
}
