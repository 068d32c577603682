//! Repair: sets a torn newest layer aside, and removes what a compaction left behind.

use super::handle::{Container, ContainerOptions, Inner};
use super::layer::Layer;
use super::stack::{Ignored, Reason, Search, Stack};
use crate::error::{Error, Result};
use crate::format::Place;
use crate::store::{Kind, Linked};

/// Something that a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that was in the way.
    pub file: Ignored,
    /// What it is called now; `None` if it was deleted.
    pub renamed: Option<String>,
}

impl Container {
    /// Makes a container writable again. A newest layer that cannot be read is renamed, so that
    /// nothing of it is lost; layers that the base holds already are deleted. Empty if nothing is wrong.
    ///
    /// A layer that is whole and of a version that we do not know is left as it is.
    pub async fn repair(place: &Place) -> Result<Vec<Repaired>> {
        let container = Self::open(place, ContainerOptions::default()).await?;
        let inner: &Inner = &container.inner;
        inner.refuse_read_only()?;
        let _lock = match inner.store.kind() {
            Kind::Local => Some(inner.store.lock(&format!("{}/lock", inner.names.work())).await?),
            _ => None,
        };
        // Only what is so now, while nobody compacts, counts.
        let search = Search::default();
        let stack = Stack::open(&inner.store, &inner.names, search, &inner.windows).await?;
        let mut repaired = Vec::new();
        for file in &stack.ignored {
            let renamed = match file.reason {
                Reason::Foreign => continue,
                Reason::Merged => {
                    inner.delete_in_order(std::slice::from_ref(&file.path)).await?;
                    None
                }
                Reason::Torn => Some(inner.set_aside(file).await?),
            };
            repaired.push(Repaired { file: file.clone(), renamed });
        }
        Ok(repaired)
    }
}

impl Inner {
    /// Renames a torn layer; what has the new name already stays.
    async fn set_aside(&self, file: &Ignored) -> Result<String> {
        let meta = self.store.head(&file.path).await?;
        match Layer::open(&self.store, file.number, &meta, &self.windows).await {
            Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(error),
            Ok(_) => {
                return Err(Error::Conflict {
                    message: format!("{} became whole meanwhile", file.path),
                    conflicts: Vec::new(),
                });
            }
        }
        let torn = self.names.torn(file.number);
        if self.store.link(&file.path, &torn).await? == Linked::Exists {
            let name = self.store.object_url(&torn);
            return Err(Error::AlreadyExists { what: "torn layer", name });
        }
        if self.store.kind() == Kind::Local {
            self.store.sync_dir("").await?;
        }
        self.delete_in_order(std::slice::from_ref(&file.path)).await?;
        Ok(torn)
    }
}
