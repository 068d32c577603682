//! Puts objects so that a reader sees the old one or the new one, never a part. Of several writers the last
//! one wins; for one winner of several, see [`atomic`](crate::atomic).

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use crate::{Result, Store, TEMP_PREFIX, Uid};

/// Objects that are put at once in an object store, where each is a round trip.
const PUTS: usize = 8;

/// Puts objects, each in one step; durable when this returns.
pub async fn publish(store: &Store, objects: Vec<(String, Bytes)>) -> Result<()> {
    if !store.renames() {
        return stream::iter(objects)
            .map(|(path, bytes)| async move { store.put(&path, vec![bytes]).await })
            .buffer_unordered(store.puts_at_once(PUTS))
            .try_collect()
            .await;
    }
    // A file under its own name could be seen in part, or be left in part by a power cut: it gets
    // the name when it is complete and durable.
    let mut aside = Vec::with_capacity(objects.len());
    let moved = move_in(store, objects, &mut aside).await;
    if moved.is_err() && store.delete(&aside).await.is_err() {
        // Report the first failure; the names of the rest say that they may be deleted.
    }
    moved
}

async fn move_in(
    store: &Store,
    objects: Vec<(String, Bytes)>,
    aside: &mut Vec<String>,
) -> Result<()> {
    let mut names = Vec::with_capacity(objects.len());
    for (path, bytes) in objects {
        let temp = format!("{}{TEMP_PREFIX}{}", folder(&path), Uid::fresh()?);
        aside.push(temp.clone());
        store.put(&temp, vec![bytes]).await?;
        names.push(path);
    }
    store.sync(aside).await?;
    for (temp, path) in aside.iter().zip(&names) {
        store.rename(temp, path).await?;
    }
    sync_folders(store, &names).await
}

/// Deletes objects; durable when this returns. Missing ones are fine.
pub async fn withdraw(store: &Store, paths: &[String]) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    store.delete(paths).await?;
    let mut there = Vec::new();
    for folder in paths.iter().map(|path| folder(path)).collect::<BTreeSet<_>>() {
        let found = store.list_dir(folder).await?;
        if !found.dirs.is_empty() || !found.objects.is_empty() {
            there.push(folder.to_owned());
        }
    }
    sync_folders(store, &there).await
}

/// Makes the names in the folders of objects durable. Nothing to do on object stores.
pub async fn sync_folders(store: &Store, paths: &[String]) -> Result<()> {
    if !store.renames() {
        return Ok(());
    }
    for folder in paths.iter().map(|path| folder(path)).collect::<BTreeSet<_>>() {
        store.sync_dir(folder).await?;
    }
    Ok(())
}

/// The folder of an object, with the slash.
fn folder(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("")
}
