//! The one step that makes a layer visible, and the one that replaces the base.
//!
//! A file system gives a complete and durable file its name, unless that is taken; an object store
//! creates the object, unless it exists. The second writer gets a conflict and changes nothing.

use bytes::Bytes;
use chunkyard_store::{Created, Error, Kind, Linked, Replaced, Result, Store, Version};

use super::draft::{Content, Finished};
use crate::container::layers::file_names::Names;
use crate::container::layers::footer_reader::Windows;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::Id;

/// Makes a layer visible under its number, which must be free; durable when this returns.
pub(crate) async fn create(
    store: &Store,
    names: &Names,
    number: u64,
    id: Id,
    finished: Finished,
    aside: &str,
) -> Result<()> {
    let path = names.layer(number);
    let lost = match (store.kind(), finished.content) {
        (Kind::Local, content) => {
            let temp = settle(store, content, aside).await?;
            let lost = match store.link(&temp, &path).await {
                Ok(linked) => Ok(linked == Linked::Exists),
                Err(error) => ask(store, number, &path, id, error).await,
            };
            let synced = match lost {
                Ok(false) => store.sync_dir("").await,
                _ => Ok(()),
            };
            discard(store, &temp).await;
            // It exists now, but may not survive a crash.
            synced.map_err(|source| Error::OutcomeUnknown {
                what: format!("making {path} durable"),
                source: Box::new(source),
            })?;
            lost?
        }
        (_, Content::Parts(parts)) => match store.create(&path, parts.concat().into()).await {
            Ok(Created::Done(_)) => false,
            // Ours, if only the reply was lost; the object itself tells.
            Ok(Created::Exists) => !is_ours(store, number, &path, id).await?,
            Err(error) => ask(store, number, &path, id, error).await?,
        },
        (_, Content::Aside(temp)) => {
            let linked = store.link(&temp, &path).await;
            let lost = match linked {
                Ok(Linked::Done) => false,
                Ok(Linked::Exists) => !is_ours(store, number, &path, id).await?,
                Err(error) => ask(store, number, &path, id, error).await?,
            };
            discard(store, &temp).await;
            lost
        }
    };
    match lost {
        false => Ok(()),
        true => Err(Error::Conflict {
            message: format!("another writer made {path} since this container was opened"),
            conflicts: Vec::new(),
        }),
    }
}

/// Replaces the base, if it is still the one that was read; durable when this returns. The caller
/// holds the lock where there is one.
pub(crate) async fn replace_base(
    store: &Store,
    names: &Names,
    expected: &Version,
    id: Id,
    finished: Finished,
    aside: &str,
    alone: bool,
) -> Result<()> {
    let path = names.base();
    match (store.kind(), finished.content) {
        (Kind::Local, content) => {
            let temp = settle(store, content, aside).await?;
            if let Err(error) = store.rename(&temp, &path).await {
                discard(store, &temp).await;
                return Err(error);
            }
            store.sync_dir("").await
        }
        (Kind::Object { conditional_put: true }, Content::Parts(parts)) => {
            let lost = match store.replace(&path, parts.concat().into(), expected).await {
                Ok(Replaced::Done(_)) => false,
                Ok(Replaced::Lost) => !is_ours(store, 0, &path, id).await?,
                Err(error) => ask(store, 0, &path, id, error).await?,
            };
            match lost {
                false => Ok(()),
                true => Err(Error::Conflict {
                    message: format!("another process compacted {path} meanwhile"),
                    conflicts: Vec::new(),
                }),
            }
        }
        (_, content) if alone => match content {
            Content::Parts(parts) => store.put(&path, parts).await,
            Content::Aside(temp) => {
                let moved = copy(store, &temp, &path).await;
                discard(store, &temp).await;
                moved
            }
        },
        (_, content) => {
            if let Content::Aside(temp) = content {
                discard(store, &temp).await;
            }
            Err(Error::unsupported(format!(
                "compacting {path} here while others may write: this store cannot replace an object \
                 of {} bytes only if it is unchanged; confirm that there is no other writer",
                finished.size
            )))
        }
    }
}

/// Puts a layer aside and makes it durable.
async fn settle(store: &Store, content: Content, aside: &str) -> Result<String> {
    let temp = match content {
        Content::Aside(temp) => temp,
        Content::Parts(parts) => {
            store.put(aside, parts).await?;
            aside.to_owned()
        }
    };
    store.sync(std::slice::from_ref(&temp)).await?;
    Ok(temp)
}

/// Copies an object piece by piece, replacing the target.
async fn copy(store: &Store, from: &str, to: &str) -> Result<()> {
    const PIECE: u64 = 16 << 20;
    let size = store.head(from).await?.size;
    let mut upload = store.begin(to).await?;
    let mut at = 0;
    while at < size {
        let end = (at + PIECE).min(size);
        let piece: Bytes = store.get_range(from, at..end).await?;
        upload.write(vec![piece]).await?;
        at = end;
    }
    upload.finish().await
}

/// Deletes a file that is no longer needed. If that fails, rubbish stays in the folder of work in
/// progress.
pub(crate) async fn discard(store: &Store, path: &str) {
    store.delete(&[path.to_owned()]).await.ok();
}

/// Whether a failed write happened all the same, and if so whether another one won.
async fn ask(store: &Store, number: u64, path: &str, id: Id, error: Error) -> Result<bool> {
    if chunkyard_store::is_refusal(&error) {
        return Err(error);
    }
    match is_ours(store, number, path, id).await {
        Ok(true) => Ok(false),
        // The path is empty or still holds something else: as far as we can see, the write did not
        // happen.
        Ok(false) => Err(error),
        Err(source) => Err(Error::OutcomeUnknown {
            what: format!("writing {path} ({error})"),
            source: Box::new(source),
        }),
    }
}

/// Whether the object at a path is the layer with this identity.
pub(crate) async fn is_ours(store: &Store, number: u64, path: &str, id: Id) -> Result<bool> {
    let meta = match store.head(path).await {
        Err(Error::NotFound { .. }) => return Ok(false),
        other => other?,
    };
    match Layer::open(store, number, &meta, &Windows::new(0, |_, _| 0)).await {
        Ok(layer) => Ok(layer.id() == id),
        Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
