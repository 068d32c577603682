//! Repair: sets an unreadable newest layer aside, and deletes leftovers of a compaction.

mod inspect;

use chunkyard_store::{Error, Kind, Linked, Noun, Result};

use super::handle::Container;
use crate::Place;
use crate::container::layers::files::Files;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::{Ignored, Reason, Search};
use crate::container::read::committed::Committed;
use crate::publish::sync_folders;

/// One action of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that was in the way.
    pub file: Ignored,
    /// Its new name; `None` if it was deleted.
    pub renamed: Option<String>,
}

impl Container {
    /// Makes a container writable again. A newest layer that cannot be read is renamed, so that
    /// nothing of it is lost; layers that the base holds already are deleted. Empty if nothing is wrong.
    ///
    /// A layer that is whole but of an unknown version is left as it is.
    pub async fn repair(place: &Place) -> Result<Vec<Repaired>> {
        let files = Files::at(place)?;
        let search = Search { past_damage: true, ..Search::default() };
        Committed::open(&files, search).await?;
        if files.store.kind() == Kind::ReadOnly {
            return Err(Error::unsupported(format!("writing to {}, a web server", place.url())));
        }
        let lock = files.lock_upkeep().await?;
        // Looks again under the lock, while no compaction can run.
        let repaired = Committed::open(&files, search).await?.repair().await?;
        files.unlock_upkeep(lock).await?;
        Ok(repaired)
    }
}

impl Committed {
    /// Renames or deletes the files that do not count.
    async fn repair(&self) -> Result<Vec<Repaired>> {
        let mut repaired = Vec::new();
        for file in &self.stack.ignored {
            let renamed = match file.reason {
                Reason::Foreign => continue,
                Reason::Merged => {
                    self.files.delete_in_order(std::slice::from_ref(&file.path)).await?;
                    None
                }
                Reason::Torn | Reason::Damaged => Some(self.files.rename_unreadable(file).await?),
            };
            repaired.push(Repaired { file: file.clone(), renamed });
        }
        Ok(repaired)
    }
}

impl Files {
    /// Renames a layer that cannot be read. A file that already has the new name stays.
    async fn rename_unreadable(&self, file: &Ignored) -> Result<String> {
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
        let torn = self.names.set_aside(file.number, file.reason.word());
        let taken = self.store.link(&file.path, &torn).await? == Linked::Exists;
        // Unless that file is there because a repair was interrupted before it deleted the old name.
        if taken && !self.are_equal(&file.path, &torn).await? {
            let name = self.store.object_url(&torn);
            return Err(Error::AlreadyExists { what: Noun::TornLayer, name });
        }
        sync_folders(&self.store, std::slice::from_ref(&torn)).await?;
        self.delete_in_order(std::slice::from_ref(&file.path)).await?;
        Ok(torn)
    }

    /// Whether two files hold the same bytes.
    async fn are_equal(&self, a: &str, b: &str) -> Result<bool> {
        const PIECE: u64 = 8 << 20;
        let size = self.store.head(a).await?.size;
        if self.store.head(b).await?.size != size {
            return Ok(false);
        }
        let mut at = 0;
        while at < size {
            let piece = at..(at + PIECE).min(size);
            let theirs = self.store.get_range(b, piece.clone()).await?;
            if self.store.get_range(a, piece.clone()).await? != theirs {
                return Ok(false);
            }
            at = piece.end;
        }
        Ok(true)
    }
}
