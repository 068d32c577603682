//! Listing a directory tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::read::describe;
use crate::error::{Error, Result};
use crate::store::backend::{Dir, Meta};

/// How far the walk may run ahead of whoever reads the list.
const AHEAD: usize = 1024;

/// All files below `directory`, whose name in the store is `prefix`.
///
/// A symbolic link to a file is listed as that file. One to a directory is not followed: it may
/// lead out of the store, or round in circles.
pub(super) fn walk(directory: PathBuf, prefix: String) -> BoxStream<'static, Result<Meta>> {
    let (sender, receiver) = channel(AHEAD);
    // Detached: it ends with the tree, or when the list is dropped and nobody receives any more.
    tokio::task::spawn_blocking(move || run(directory, prefix, &sender));
    stream::unfold(receiver, |mut receiver: Receiver<_>| async {
        receiver.recv().await.map(|item| (item, receiver))
    })
    .boxed()
}

/// What is in `directory`, whose name in the store is `prefix`; by the same rules as [`walk`].
pub(super) fn children(directory: &Path, prefix: &str) -> Result<Dir> {
    let mut below = Vec::new();
    let mut objects = Vec::new();
    let mut keep = |item| {
        objects.push(item);
        true
    };
    match visit(directory, prefix, &mut below, &mut keep) {
        Ok(_) => {}
        Err(error) if gone(&error) => {}
        Err(error) => return Err(Error::store("list", directory.display().to_string(), error)),
    }
    let dirs = below.into_iter().map(|(_, name)| name).collect();
    Ok(Dir { dirs, objects }.sorted())
}

fn run(directory: PathBuf, prefix: String, sender: &Sender<Result<Meta>>) {
    let mut pending = vec![(directory, prefix)];
    while let Some((directory, prefix)) = pending.pop() {
        let send = |item| sender.blocking_send(item).is_ok();
        let walked = visit(&directory, &prefix, &mut pending, &mut |meta| send(Ok(meta)));
        let go_on = match walked {
            Ok(go_on) => go_on,
            Err(error) if gone(&error) => true,
            Err(error) => send(Err(Error::store("list", directory.display().to_string(), error))),
        };
        if !go_on {
            return;
        }
    }
}

/// Lists one directory. False if nobody wants the rest.
fn visit(
    directory: &Path,
    prefix: &str,
    pending: &mut Vec<(PathBuf, String)>,
    send: &mut impl FnMut(Meta) -> bool,
) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A name that is not Unicode is none of ours, and no path could say it.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            pending.push((entry.path(), name));
            continue;
        }
        let metadata = match fs::metadata(entry.path()) {
            Ok(metadata) => metadata,
            Err(error) if gone(&error) => continue,
            Err(error) => return Err(error),
        };
        if metadata.is_file() && !send(describe(name, &metadata)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether something went away, or was never there: a list is no snapshot.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
