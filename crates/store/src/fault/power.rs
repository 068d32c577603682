//! What a power cut would take: a ledger of names and contents that are not durable yet.
//!
//! A name is durable once its directory is synced, a content once one of its files is, a move of a
//! tree once the directories of both names are. A file that was changed in place keeps its name and
//! may lose any part of the changes since its last sync. Deletions count as durable at once:
//! nothing refers to a deleted file that comes back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::moves::Move;
use super::plan::Unsynced;
use super::unsynced::{Change, Content};
use crate::backend::Backend;
use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    at_risk: BTreeMap<String, Risk>,
    /// In the order in which they happened.
    moves: Vec<Move>,
    /// Contents that are not durable, by the number that all names of a file share.
    contents: BTreeMap<u64, Content>,
    numbers: u64,
}

/// What a power cut would do to a name.
#[derive(Debug)]
struct Risk {
    /// What the name stood for when it was last durable.
    previous: Option<Bytes>,
    /// Whether the name would go back to it.
    name: bool,
    /// The content that would be lost. Names of the same file share it.
    content: Option<u64>,
}

/// What a name stands for before it is changed.
pub(super) async fn before(inner: &dyn Backend, path: &str) -> Result<Option<Bytes>> {
    match inner.get(path).await {
        Ok(object) => Ok(Some(object.bytes)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Ledger {
    /// A file was written. A replaced one has its content synced by the store: only its name is at
    /// risk.
    pub(super) fn put(&self, path: &str, previous: Option<Bytes>) {
        let mut entries = self.entries();
        let content = previous.is_none().then(|| entries.number(Content::default()));
        entries.risk(path, previous, content);
    }

    /// A file was changed in place; `previous` is its old content.
    pub(super) fn changed(&self, path: &str, previous: Option<Bytes>, change: Change) {
        // Nothing is kept where no power is cut.
        let Some(previous) = previous else { return };
        let mut entries = self.entries();
        let number = entries.content(path).unwrap_or_else(|| {
            let number = entries.number(Content::new(previous.clone()));
            let durable = Risk { previous: Some(previous), name: false, content: None };
            entries.at_risk.entry(path.to_owned()).or_insert(durable).content = Some(number);
            number
        });
        entries.contents.entry(number).or_default().change(change);
    }

    /// `from` got the further name `to`.
    pub(super) fn linked(&self, from: &str, to: &str) {
        let mut entries = self.entries();
        let content = entries.content(from);
        entries.risk(to, None, content);
    }

    /// `from` was renamed to `to`; the contents are the old ones.
    pub(super) fn renamed(&self, from: (&str, Option<Bytes>), to: (&str, Option<Bytes>)) {
        let mut entries = self.entries();
        let content = entries.content(from.0);
        entries.risk(to.0, to.1, content);
        match entries.at_risk.get_mut(from.0) {
            // The old name goes back to what it was before the file got it.
            Some(risk) if risk.name => risk.content = None,
            _ => entries.risk(from.0, from.1, None),
        }
    }

    pub(super) fn deleted(&self, paths: &[String]) {
        let mut entries = self.entries();
        for path in paths {
            entries.at_risk.remove(path);
        }
    }

    /// A tree was deleted.
    pub(super) fn tree_deleted(&self, prefix: &str) {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let below = |path: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| prefix.is_empty() || rest.starts_with('/'))
        };
        self.entries().at_risk.retain(|path, _| !below(path));
    }

    /// Names changed with everything below them.
    pub(super) fn moved(&self, step: Move) {
        let mut entries = self.entries();
        entries.rename_each(|path| step.after(path));
        entries.moves.push(step);
    }

    /// Files were synced, and their directories with them.
    pub(super) fn synced(&self, paths: &[String]) {
        let mut entries = self.entries();
        for path in paths {
            entries.content_synced(path);
            entries.name_synced(directory(path));
        }
    }

    /// Files were synced without their directories.
    pub(super) fn content_synced(&self, paths: &[String]) {
        let mut entries = self.entries();
        paths.iter().for_each(|path| entries.content_synced(path));
    }

    /// A directory was synced.
    pub(super) fn directory_synced(&self, path: &str) {
        self.entries().name_synced(path.strip_suffix('/').unwrap_or(path));
    }

    /// Does to the store what a power cut does.
    pub(super) async fn lose(&self, inner: &dyn Backend, unsynced: Unsynced) -> Result<()> {
        let mut lost = std::mem::take(&mut *self.entries());
        if unsynced != Unsynced::Emptied {
            for step in std::mem::take(&mut lost.moves).iter().rev() {
                step.undo(inner).await?;
                lost.rename_each(|path| step.before(path));
            }
        }
        for (path, risk) in lost.at_risk {
            let content = risk.content.and_then(|number| lost.contents.get(&number));
            let stays = !risk.name || unsynced == Unsynced::Emptied;
            if let Some(content) = content.filter(|_| stays) {
                content.lose(inner, &path, unsynced).await?;
                continue;
            }
            // Deleted first, so that another name of the same file keeps its content.
            inner.delete(std::slice::from_ref(&path)).await?;
            if let Some(bytes) = risk.previous {
                inner.put(&path, vec![bytes]).await?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// A name was changed; if it was at risk already, what it goes back to stays the same.
    fn risk(&mut self, path: &str, previous: Option<Bytes>, content: Option<u64>) {
        let risk =
            self.at_risk.entry(path.to_owned()).or_insert(Risk { previous, name: true, content });
        risk.name = true;
        risk.content = content;
    }

    fn number(&mut self, content: Content) -> u64 {
        self.numbers += 1;
        self.contents.insert(self.numbers, content);
        self.numbers
    }

    fn rename_each(&mut self, name: impl Fn(&str) -> Option<String>) {
        let entries = std::mem::take(&mut self.at_risk).into_iter();
        self.at_risk = entries.map(|(path, risk)| (name(&path).unwrap_or(path), risk)).collect();
    }

    fn content(&self, path: &str) -> Option<u64> {
        self.at_risk.get(path)?.content
    }

    fn content_synced(&mut self, path: &str) {
        if let Some(durable) = self.content(path) {
            self.contents.remove(&durable);
            let same = |risk: &&mut Risk| risk.content == Some(durable);
            self.at_risk.values_mut().filter(same).for_each(|risk| risk.content = None);
            self.at_risk.retain(|_, risk| risk.name || risk.content.is_some());
        }
    }

    fn name_synced(&mut self, synced: &str) {
        for (path, risk) in &mut self.at_risk {
            if directory(path) == synced {
                risk.name = false;
                let content = risk.content.and_then(|number| self.contents.get(&number));
                if let Some(content) = content {
                    risk.previous = Some(content.durable.clone());
                }
            }
        }
        self.at_risk.retain(|_, risk| risk.name || risk.content.is_some());
        self.moves.retain_mut(|step| !step.synced(synced));
    }
}

pub(super) fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
