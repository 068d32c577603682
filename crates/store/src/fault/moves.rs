//! Moves of names with everything below them, and how a power cut undoes them.

use std::collections::BTreeSet;

use super::power::directory;
use crate::backend::Backend;
use crate::error::Result;

/// A rename of a directory, or an exchange of two names, that is not durable yet. After a power cut
/// a file system has all of it or none of it.
#[derive(Debug)]
pub(super) struct Move {
    from: String,
    to: String,
    exchange: bool,
    /// The directories whose names must still be synced.
    unsynced: BTreeSet<String>,
}

impl Move {
    pub(super) fn rename(from: &str, to: &str) -> Self {
        Self::new(from, to, false)
    }

    pub(super) fn exchange(a: &str, b: &str) -> Self {
        Self::new(a, b, true)
    }

    fn new(from: &str, to: &str, exchange: bool) -> Self {
        let unsynced = [from, to].map(|path| directory(path).to_owned()).into();
        Self { from: from.to_owned(), to: to.to_owned(), exchange, unsynced }
    }

    /// What a path is called after this move.
    pub(super) fn after(&self, path: &str) -> Option<String> {
        let back = || self.exchange.then(|| moved(path, &self.to, &self.from))?;
        moved(path, &self.from, &self.to).or_else(back)
    }

    /// What a path was called before this move.
    pub(super) fn before(&self, path: &str) -> Option<String> {
        let forth = || self.exchange.then(|| moved(path, &self.from, &self.to))?;
        moved(path, &self.to, &self.from).or_else(forth)
    }

    /// Notes that a directory was synced; true if that makes the move durable.
    pub(super) fn synced(&mut self, directory: &str) -> bool {
        self.unsynced.remove(directory);
        self.unsynced.is_empty()
    }

    /// Restores the old names. Deletions are durable at once, so either name may be gone.
    pub(super) async fn undo(&self, inner: &dyn Backend) -> Result<()> {
        let (from, to) = (&*self.from, &*self.to);
        match (exists(inner, from).await?, exists(inner, to).await?) {
            (true, true) if self.exchange => inner.exchange(from, to).await,
            (true, false) if self.exchange => inner.rename(from, to).await,
            (_, true) => inner.rename(to, from).await,
            (_, false) => Ok(()),
        }
    }
}

/// The new name of `path` when `from`, which is `path` or a directory above it, becomes `to`.
fn moved(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
}

async fn exists(inner: &dyn Backend, path: &str) -> Result<bool> {
    Ok(is_dir(inner, path).await? || inner.head(path).await.is_ok())
}

/// Whether a directory has this name.
pub(super) async fn is_dir(inner: &dyn Backend, path: &str) -> Result<bool> {
    Ok(inner.list_dir(directory(path)).await?.dirs.iter().any(|name| name == path))
}
