//! What survives a power cut: file contents, and the chain of directory entries that leads to them.
//!
//! A file can be found after a power cut if its content was synced, its entry in its directory was,
//! and the entry of every directory above it was too. The entries above are synced once per
//! directory and process, not once per file: [`Directories`] remembers which ones are settled. That
//! includes directories made by others, because another process may have died before it synced the
//! entry.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::try_join_all;
use rustix::fs::OFlags;

use super::beneath::{Root, split};
use super::{File, blocking, elsewhere};
use crate::error::{Error, Result};

/// How many threads wait for the disk at a time. File systems commit together what is synced at the
/// same time; beyond this number nothing is gained.
const SYNC_THREADS: usize = 16;
/// How often work is tried whose directories another process deletes.
const ATTEMPTS: usize = 1000;

/// The directories of a store, and which of their entries are known to be durable.
#[derive(Debug)]
pub(super) struct Directories {
    root: Arc<Path>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Directories whose entry in the directory above is durable.
    settled: HashSet<PathBuf>,
    /// The root and directories above it that this process created.
    created_above: BTreeSet<PathBuf>,
}

impl Directories {
    pub(super) fn new(root: Arc<Path>) -> Self {
        Self { root, state: Mutex::default() }
    }

    /// Creates the directories above a file.
    pub(super) fn create_parents(&self, file: &File) -> io::Result<()> {
        let mut missing: Vec<PathBuf> = Vec::new();
        let root = match Root::open(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let above = self.root.ancestors().take_while(|directory| !directory.exists());
                missing.extend(above.map(Path::to_owned));
                fs::create_dir_all(&self.root)?;
                Root::open(&self.root)?
            }
            other => other?,
        };
        let (folder, _) = split(&file.name);
        missing.extend(root.create_directory(folder)?.into_iter().map(|name| self.root.join(name)));
        let mut state = self.state();
        for directory in missing {
            state.settled.remove(&directory);
            if self.root.starts_with(&directory) {
                state.created_above.insert(directory);
            }
        }
        Ok(())
    }

    /// Does work that needs the directories above a file, and creates them where they are missing. Another
    /// process may delete them right after: a finished conversion clears its folder while a second one still
    /// writes there. So this tries several times.
    pub(super) fn with_parents<T>(
        &self,
        file: &File,
        work: impl Fn() -> io::Result<T>,
    ) -> io::Result<T> {
        for _ in 1..ATTEMPTS {
            match work() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
            match self.create_parents(file) {
                // A directory was there or was just made, and is gone again.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) => {}
                other => other?,
            }
        }
        work()
    }

    /// Forgets what is durable at or below a path that was deleted or now names another directory.
    pub(super) fn forget(&self, path: &Path) {
        self.state().settled.retain(|directory| !directory.starts_with(path));
    }

    /// Syncs directories, and before them the entries of directories above that are not known to be
    /// durable.
    pub(super) fn sync(&self, directories: &[PathBuf]) -> Result<()> {
        let mut wanted: BTreeSet<PathBuf> = directories.iter().cloned().collect();
        let mut settling = BTreeSet::new();
        {
            let state = self.state();
            for directory in directories {
                for below in directory.ancestors() {
                    let ours = below.starts_with(&self.root) || state.created_above.contains(below);
                    let Some(above) = below.parent().filter(|_| ours) else { break };
                    if state.settled.contains(below) || !settling.insert(below.to_owned()) {
                        break;
                    }
                    wanted.insert(above.to_owned());
                }
            }
        }
        for directory in &wanted {
            match self.open(directory).and_then(|open| open.sync_all()) {
                Ok(()) => {}
                // The root existed before, in a directory that we may not even read.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && !directory.starts_with(&self.root)
                        && !self.state().created_above.contains(&*self.root) => {}
                Err(error) => {
                    let linked = self.below_root(directory).and_then(|file| file.blocked(&error));
                    let failed = || Error::store("sync", directory.display().to_string(), error);
                    return Err(linked.unwrap_or_else(failed));
                }
            }
        }
        self.state().settled.extend(settling);
        Ok(())
    }

    /// Opens a directory: by its path above the root, and without following a link below it.
    fn open(&self, directory: &Path) -> io::Result<fs::File> {
        match self.below_root(directory) {
            Some(below) => {
                Root::open(&self.root)?.open_at(&below.name, OFlags::DIRECTORY).map(fs::File::from)
            }
            None => fs::File::open(directory),
        }
    }

    fn below_root(&self, directory: &Path) -> Option<File> {
        let name = directory.strip_prefix(&self.root).ok()?.to_str()?;
        (!name.is_empty()).then(|| File::new(&self.root, name))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Single calls change the sets, so a panic leaves no broken state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Syncs files and their directories, all at the same time: nothing refers to these files yet, so a
/// power cut in between may leave any of them, in part or not at all.
pub(super) async fn sync(files: Vec<File>, directories: Arc<Directories>) -> Result<()> {
    let parents: BTreeSet<PathBuf> =
        files.iter().filter_map(|file| file.path.parent().map(Path::to_owned)).collect();
    if parents.is_empty() {
        return Ok(());
    }
    let each = files.len().div_ceil(SYNC_THREADS);
    let files = files.chunks(each).map(<[File]>::to_vec);
    let each = parents.len().div_ceil(SYNC_THREADS);
    let parents: Vec<PathBuf> = parents.into_iter().collect();
    let parents = parents.chunks(each).map(<[PathBuf]>::to_vec);
    let files = files.map(|part| blocking("sync", move || sync_files(&part)).boxed());
    let parents = parents.map(|part| {
        let directories = directories.clone();
        blocking("sync", move || directories.sync(&part)).boxed()
    });
    try_join_all(files.chain(parents)).await?;
    Ok(())
}

/// Syncs files and not their directories, all at the same time.
pub(super) async fn sync_contents(files: Vec<File>) -> Result<()> {
    let each = files.len().div_ceil(SYNC_THREADS).max(1);
    let mut parts: Vec<Vec<File>> = files.chunks(each).map(<[File]>::to_vec).collect();
    let Some(own) = parts.pop() else { return Ok(()) };
    // Started before our own part, which may block this thread.
    let others: Vec<_> =
        parts.into_iter().map(|part| elsewhere("sync", move || sync_files(&part))).collect();
    let synced = blocking("sync", move || sync_files(&own)).await;
    for other in others {
        other.await?;
    }
    synced
}

fn sync_files(files: &[File]) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let root = Root::open(&first.root).map_err(|error| first.error("sync", error))?;
    for file in files {
        root.open_at(&file.name, OFlags::NONBLOCK)
            .and_then(|open| fs::File::from(open).sync_data())
            .map_err(|error| file.error("sync", error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories() -> (tempfile::TempDir, Directories) {
        let temp = tempfile::tempdir().unwrap();
        let root: Arc<Path> = temp.path().join("new/root").into();
        (temp, Directories::new(root))
    }

    #[test]
    fn directories_that_vanish_at_once_are_made_again() {
        let (_temp, directories) = directories();
        let file = File::new(&directories.root, "a/b/file");
        let left = std::cell::Cell::new(5);
        let outcome = directories.with_parents(&file, || {
            if left.get() > 0 {
                left.set(left.get() - 1);
                fs::remove_dir_all(directories.root.join("a")).ok();
            }
            fs::write(&file.path, "here")
        });
        outcome.unwrap();
        assert_eq!(fs::read(&file.path).unwrap(), b"here");
    }

    #[test]
    fn a_sync_settles_every_entry_up_to_what_was_there_before() {
        let (temp, directories) = directories();
        let root = directories.root.clone();
        directories.create_parents(&File::new(&root, "a/b/file")).unwrap();
        directories.sync(&[root.join("a/b")]).unwrap();
        let settled = directories.state().settled.clone();
        let all = [root.join("a/b"), root.join("a"), root.to_path_buf(), temp.path().join("new")];
        assert_eq!(settled, all.into_iter().collect());
    }

    #[test]
    fn a_directory_that_is_created_again_is_not_settled() {
        let (_temp, directories) = directories();
        let directory = directories.root.join("a");
        let file = File::new(&directories.root, "a/file");
        directories.create_parents(&file).unwrap();
        directories.sync(std::slice::from_ref(&directory)).unwrap();
        assert!(directories.state().settled.contains(&directory));
        fs::remove_dir(&directory).unwrap();
        directories.create_parents(&file).unwrap();
        assert!(!directories.state().settled.contains(&directory));
    }

    #[test]
    fn a_directory_that_got_another_name_is_not_settled() {
        let (_temp, directories) = directories();
        let directory = directories.root.join("a/b");
        directories.create_parents(&File::new(&directories.root, "a/b/file")).unwrap();
        directories.sync(std::slice::from_ref(&directory)).unwrap();
        directories.forget(&directories.root.join("a"));
        let state = directories.state();
        assert!(!state.settled.contains(&directory) && state.settled.contains(&*directories.root));
    }

    #[test]
    fn a_directory_created_by_another_process_is_settled_too() {
        let (_temp, directories) = directories();
        let directory = directories.root.join("a");
        fs::create_dir_all(&directory).unwrap();
        directories.sync(std::slice::from_ref(&directory)).unwrap();
        let state = directories.state();
        assert!(state.settled.contains(&directory) && state.settled.contains(&*directories.root));
    }

    #[tokio::test]
    async fn contents_are_synced_without_directories_and_none_is_passed_over() {
        let (temp, directories) = directories();
        let root: Arc<Path> = temp.path().into();
        let files: Vec<File> =
            (0..40).map(|number| File::new(&root, &number.to_string())).collect();
        files.iter().for_each(|file| fs::write(&file.path, "x").unwrap());
        sync_contents(files.clone()).await.unwrap();
        sync_contents(Vec::new()).await.unwrap();
        assert!(directories.state().settled.is_empty());
        for missing in [&files[0], &files[39]] {
            fs::remove_file(&missing.path).unwrap();
            assert!(sync_contents(files.clone()).await.is_err());
            fs::write(&missing.path, "x").unwrap();
        }
    }

    #[test]
    fn syncing_a_missing_directory_fails() {
        let (_temp, directories) = directories();
        assert!(directories.sync(&[directories.root.join("nowhere")]).is_err());
    }
}
