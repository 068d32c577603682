//! The one step that makes a layer visible, and the one that replaces the base.
//!
//! Both are steps of [`chunkyard_store::atomic`]: the second writer gets a conflict and changes nothing.
//! A writer knows its layer by its identity.

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::atomic::{Content, Sight, Step, Witness};
use chunkyard_store::{Error, Result, Store, Version};

use super::draft::Finished;
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
    let witness = OurLayer { store, number, path: &path, id, before: None };
    let outcome = Step::new(store, &path, witness).create(finished.content, aside).await?;
    match outcome.known(|| format!("writing {path}"))? {
        Some(()) => Ok(()),
        None => Err(Error::Conflict {
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
    let witness = OurLayer { store, number: 0, path: &path, id, before: Some(expected) };
    let step = Step::new(store, &path, witness);
    if step.can_replace(&finished.content) {
        let outcome = step.replace(finished.content, expected, aside).await?;
        return match outcome.known(|| format!("replacing {path}"))? {
            Some(()) => Ok(()),
            None => Err(Error::Conflict {
                message: format!("another process compacted {path} meanwhile"),
                conflicts: Vec::new(),
            }),
        };
    }
    match finished.content {
        Content::Parts(parts) if alone => store.put(&path, parts).await,
        Content::Aside(temp) if alone => {
            let moved = copy(store, &temp, &path).await;
            discard(store, &temp).await;
            moved
        }
        content => {
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

/// Whether the object at a path is the layer with this identity.
pub(crate) async fn is_ours(store: &Store, number: u64, path: &str, id: Id) -> Result<bool> {
    let sight = OurLayer { store, number, path, id, before: None }.look().await?;
    Ok(matches!(sight, Sight::Ours(())))
}

/// Knows a layer by its identity.
struct OurLayer<'a> {
    store: &'a Store,
    number: u64,
    path: &'a str,
    id: Id,
    /// The base that is replaced; `None` if a layer is created.
    before: Option<&'a Version>,
}

#[async_trait]
impl Witness for OurLayer<'_> {
    type Proof = ();

    async fn look(&self) -> Result<Sight<()>> {
        let meta = match self.store.head(self.path).await {
            Err(Error::NotFound { .. }) if self.before.is_none() => return Ok(Sight::Before),
            Err(Error::NotFound { .. }) => return Ok(Sight::Another),
            other => other?,
        };
        if self.before.is_some_and(|before| before.etag == meta.etag) {
            return Ok(Sight::Before);
        }
        match Layer::open(self.store, self.number, &meta, &Windows::new(0, |_, _| 0)).await {
            Ok(layer) if layer.id() == self.id => Ok(Sight::Ours(())),
            Ok(_) | Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => Ok(Sight::Another),
            Err(error) => Err(error),
        }
    }

    fn acknowledged(&self, _: Version) {}
}
