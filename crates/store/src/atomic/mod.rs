//! The one atomic step: an object appears, or replaces another, for one writer of several.
//!
//! ```text
//!             directory                               object store
//!  create     aside, sync, link, sync the folder      put, if absent (or copy, if absent)
//!  replace    aside, sync, rename, sync the folder    put, if unchanged
//!             (the caller holds a lock)
//!  publish    link                                    copy, if absent
//! ```
//!
//! The answer of a store does not always tell how a step ended. A client repeats requests, so "it
//! exists" may mean that our own first request created it and its reply was lost. And a request that
//! timed out may still be on its way: as long as its condition holds, it may take effect. So after any
//! answer but success, a step looks at the object. If it holds our bytes, the step is done. If it has
//! moved on without us, the step is lost, and the condition of a request on its way fails. If nothing
//! has changed, the same bytes are sent again, which settles it one way or the other; if even that
//! fails, the outcome is [unknown](Outcome::Unknown). "It did not happen" is never concluded from
//! looking. `docs/design/014-atomic-step.md` has the argument.
//!
//! Only the writer can tell its own bytes from others: that is its [`Witness`].

mod witness;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::witness::{AnyObject, SameBytes};
use super::Store;
use super::backend::{Created, Kind, Linked, Replaced, Version};
use super::object::is_refusal;
use crate::error::{Error, Result};

/// How often the same bytes are sent while nothing lands.
const ATTEMPTS: u32 = 5;

/// How a step ended. An error instead means that nothing happened, and nothing will.
#[derive(Debug)]
pub enum Outcome<T> {
    /// Our bytes are there, or were there until a successor replaced them.
    Done(T),
    /// Another writer was first. Nothing of ours is visible, and nothing will be.
    Lost,
    /// It may have happened, or may yet happen: only trying the same step again, or looking later, can
    /// tell. The error says what went wrong.
    Unknown(Error),
}

impl<T> Outcome<T> {
    /// The proof, or `None` if the step was lost; an unknown outcome is an error that names `what`.
    pub fn known(self, what: impl FnOnce() -> String) -> Result<Option<T>> {
        match self {
            Self::Done(proof) => Ok(Some(proof)),
            Self::Lost => Ok(None),
            Self::Unknown(error) => {
                Err(Error::OutcomeUnknown { what: what(), source: Box::new(error) })
            }
        }
    }
}

/// What a writer finds where its step was to happen.
#[derive(Debug)]
pub enum Sight<T> {
    /// The state that the step starts from: a request may still be on its way.
    Before,
    /// Our bytes, or a state that came after them.
    Ours(T),
    /// The bytes of another writer. The condition of our requests holds no more.
    Another,
}

/// How a writer knows its own bytes.
#[async_trait]
pub trait Witness: Send + Sync {
    /// What the writer has once its step is done.
    type Proof: Send;

    /// Looks at the object.
    async fn look(&self) -> Result<Sight<Self::Proof>>;

    /// The proof where the store itself says that the step is done. The version is empty where the
    /// store tells none.
    fn acknowledged(&self, version: Version) -> Self::Proof;
}

/// The bytes of a step.
#[derive(Debug)]
pub enum Content {
    /// In memory.
    Parts(Vec<Bytes>),
    /// In the store, under this name, which goes with the step.
    Aside(String),
}

/// A step to be made at a path.
#[derive(Debug)]
pub struct Step<'a, W> {
    store: &'a Store,
    path: &'a str,
    witness: W,
}

impl<'a, W: Witness> Step<'a, W> {
    /// A step at a path of a store.
    pub fn new(store: &'a Store, path: &'a str, witness: W) -> Self {
        Self { store, path, witness }
    }

    /// Creates the object, unless there is one; durable when it is done. A directory needs the name
    /// `aside` on the way.
    pub async fn create(&self, content: Content, aside: &str) -> Result<Outcome<W::Proof>> {
        let parts = match content {
            Content::Parts(parts) if !self.is_local() => parts,
            content => {
                let temp = self.settle(content, aside).await?;
                let outcome = self.name(&temp).await;
                discard(self.store, &temp).await;
                return outcome;
            }
        };
        let bytes: Bytes = parts.concat().into();
        self.send(|| async {
            Ok(match self.store.create(self.path, bytes.clone()).await? {
                Created::Done(version) => Some(version),
                Created::Exists => None,
            })
        })
        .await
    }

    /// Replaces the object, if it is still in the `expected` state; durable when it is done. In a
    /// directory a lock of the caller takes the place of the condition, and the name `aside` is needed
    /// on the way. A large object, which is not in memory, can be replaced in a directory only.
    pub async fn replace(
        &self,
        content: Content,
        expected: &Version,
        aside: &str,
    ) -> Result<Outcome<W::Proof>> {
        let bytes: Bytes = match content {
            content if self.is_local() => return self.rename(content, aside).await,
            Content::Parts(parts) => parts.concat().into(),
            Content::Aside(temp) => {
                discard(self.store, &temp).await;
                let what = "conditional replace of a large object";
                return Err(Error::unsupported(format!("{what}, {}", self.path)));
            }
        };
        self.send(|| async {
            Ok(match self.store.replace(self.path, bytes.clone(), expected).await? {
                Replaced::Done(version) => Some(version),
                Replaced::Lost => None,
            })
        })
        .await
    }

    /// Whether the store can replace an object by this content in one step.
    pub fn can_replace(&self, content: &Content) -> bool {
        match self.store.kind() {
            Kind::Local => true,
            Kind::Object { conditional_put } => {
                conditional_put && matches!(content, Content::Parts(_))
            }
            Kind::ReadOnly => false,
        }
    }

    /// Gives the object `from`, which is complete and durable, the name of the step, unless that is
    /// taken. In a directory the name is durable once its folder is synced.
    pub async fn publish(&self, from: &str) -> Result<Outcome<W::Proof>> {
        self.send(|| async {
            Ok(match self.store.link(from, self.path).await? {
                Linked::Done => Some(Version { etag: None, version: None }),
                Linked::Exists => None,
            })
        })
        .await
    }

    /// Publishes durably.
    async fn name(&self, temp: &str) -> Result<Outcome<W::Proof>> {
        let outcome = self.publish(temp).await?;
        match outcome {
            Outcome::Done(proof) if self.is_local() => self.sync_name(proof).await,
            outcome => Ok(outcome),
        }
    }

    /// Replaces a file of a directory.
    async fn rename(&self, content: Content, aside: &str) -> Result<Outcome<W::Proof>> {
        let temp = self.settle(content, aside).await?;
        if let Err(error) = self.store.rename(&temp, self.path).await {
            discard(self.store, &temp).await;
            return Err(error);
        }
        self.sync_name(self.witness.acknowledged(Version { etag: None, version: None })).await
    }

    /// Makes a name durable that is visible already: if that fails, a crash may take it back.
    async fn sync_name(&self, proof: W::Proof) -> Result<Outcome<W::Proof>> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Ok(match self.store.sync_dir(folder).await {
            Ok(()) => Outcome::Done(proof),
            Err(error) => Outcome::Unknown(error),
        })
    }

    /// Puts the content aside and makes it durable.
    async fn settle(&self, content: Content, aside: &str) -> Result<String> {
        let temp = match content {
            Content::Aside(temp) => temp,
            Content::Parts(parts) => {
                self.store.put(aside, parts).await?;
                aside.to_owned()
            }
        };
        self.store.sync(std::slice::from_ref(&temp)).await?;
        Ok(temp)
    }

    /// Sends a conditional request until it is known how it ended. `None` is an answer that the
    /// condition failed.
    async fn send<F>(&self, request: impl Fn() -> F + Send + Sync) -> Result<Outcome<W::Proof>>
    where
        F: Future<Output = Result<Option<Version>>> + Send,
    {
        // A request that failed without an answer, so that it may still be on its way.
        let mut open = None;
        for attempt in 0..ATTEMPTS {
            let failure = match request().await {
                Ok(Some(version)) => return Ok(Outcome::Done(self.witness.acknowledged(version))),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            match (self.witness.look().await, failure) {
                (Ok(Sight::Ours(proof)), _) => return Ok(Outcome::Done(proof)),
                (Ok(Sight::Another), _) => return Ok(Outcome::Lost),
                // A file system does what it says.
                (Ok(Sight::Before), Some(error)) if self.is_local() => return Err(error),
                (Ok(Sight::Before), Some(error)) if is_refusal(&error) => match open {
                    None => return Err(error),
                    Some(open) => return Ok(Outcome::Unknown(open)),
                },
                (Ok(Sight::Before), failure) => open = failure.or(open),
                (Err(error), failure) => return Ok(Outcome::Unknown(failure.unwrap_or(error))),
            }
            back_off(attempt).await;
        }
        Ok(Outcome::Unknown(open.unwrap_or_else(|| {
            Error::store("write", self.path, "the store says that it has changed, and it has not")
        })))
    }

    fn is_local(&self) -> bool {
        self.store.kind() == Kind::Local
    }
}

/// Deletes a file that is no longer needed. If that fails, rubbish stays that no reader looks at.
async fn discard(store: &Store, path: &str) {
    store.delete(&[path.to_owned()]).await.ok();
}

/// Pauses before the same request is made again: full jitter, doubling from 20 ms to 5 s.
pub async fn back_off(attempt: u32) {
    let ceiling_ms = 20u64.saturating_mul(1 << attempt.min(8)).min(5_000);
    let mut random = [0; 8];
    // Without random numbers the full pause is taken, which is only slower.
    let share = match getrandom::fill(&mut random) {
        Ok(()) => u64::from_le_bytes(random) % (ceiling_ms + 1),
        Err(_) => ceiling_ms,
    };
    tokio::time::sleep(std::time::Duration::from_millis(share)).await;
}
