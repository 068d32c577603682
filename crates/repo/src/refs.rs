//! Branches and tags: creating, deleting, moving and resolving them.

use std::sync::Arc;

use chunkyard_store::{Error, Noun, Result, clock};

use super::state::{self, Reference, ReferenceKind, Snapshot, State};
use super::swap::Swap;
use super::{Mode, Repository, Version, read_only};

impl State {
    /// Whether this state can resolve a version without the rest of its history.
    pub(super) fn finds(&self, version: &Version) -> bool {
        let listed = |name: &str| match self.refs.get(name) {
            Some(reference) => self.snapshot(&reference.snapshot_id).is_some(),
            None => false,
        };
        self.is_complete()
            || match version {
                Version::Branch(name) | Version::Tag(name) | Version::Named(name) => listed(name),
                Version::Default => listed(&self.default_branch),
                // An id prefix may also match an older snapshot, and an older one may be meant.
                Version::Snapshot(_) | Version::AsOf { .. } => false,
            }
    }

    /// The snapshot that a version names.
    pub fn resolve(&self, version: &Version) -> Result<&Arc<Snapshot>> {
        match version {
            Version::Branch(name) => self.tip(name),
            Version::Default => self.tip(&self.default_branch),
            Version::Tag(name) => {
                let reference = self.reference(ReferenceKind::Tag, name)?;
                self.require_snapshot(&reference.snapshot_id)
            }
            Version::Snapshot(id) => by_prefix(self, id),
            Version::Named(name) => match self.refs.get(name) {
                Some(reference) => self.require_snapshot(&reference.snapshot_id),
                None => by_prefix(self, name).map_err(|error| match error {
                    Error::NotFound { .. } => {
                        Error::NotFound { what: Noun::Version, name: name.clone() }
                    }
                    other => other,
                }),
            },
            Version::AsOf { branch, time_ms } => {
                let tip = self.tip(branch)?;
                self.ancestry(&tip.snapshot_id)
                    .find(|snapshot| snapshot.timestamp_ms <= *time_ms)
                    .ok_or_else(|| Error::NotFound {
                        what: Noun::Snapshot,
                        name: format!("on {branch} at or before {}", clock::text(*time_ms)),
                    })
            }
        }
    }
}

/// Shorter prefixes of a snapshot id are not looked up.
const PREFIX_MIN: usize = 4;

fn by_prefix<'a>(state: &'a State, id: &str) -> Result<&'a Arc<Snapshot>> {
    if let Some(snapshot) = state.snapshot(id) {
        return Ok(snapshot);
    }
    let mut matching = state.snapshots.iter().filter(|s| s.snapshot_id.starts_with(id));
    match (matching.next(), matching.next()) {
        (Some(snapshot), None) if id.len() >= PREFIX_MIN => Ok(snapshot),
        (Some(_), Some(_)) if id.len() >= PREFIX_MIN => Err(Error::Invalid {
            what: format!("{id:?} is the beginning of several snapshot ids; give more of it"),
        }),
        _ => Err(Error::NotFound { what: Noun::Snapshot, name: id.to_owned() }),
    }
}

impl Repository {
    /// Creates a branch at a version.
    pub async fn create_branch(&self, name: &str, at: &Version) -> Result<Arc<Snapshot>> {
        self.create_reference(ReferenceKind::Branch, name, at, false).await
    }

    /// Creates a tag at a version. A tag never moves, and the name of a deleted one is never used
    /// again, unless `reuse` is given.
    pub async fn create_tag(&self, name: &str, at: &Version, reuse: bool) -> Result<Arc<Snapshot>> {
        self.create_reference(ReferenceKind::Tag, name, at, reuse).await
    }

    async fn create_reference(
        &self,
        kind: ReferenceKind,
        name: &str,
        at: &Version,
        reuse: bool,
    ) -> Result<Arc<Snapshot>> {
        state::check_reference_name(name)?;
        self.update(|next| {
            let snapshot = next.resolve(at)?.clone();
            if let Some(existing) = next.refs.get(name) {
                let what = existing.kind.noun();
                return Err(Error::AlreadyExists { what, name: name.to_owned() });
            }
            if kind == ReferenceKind::Tag && next.deleted_tags.iter().any(|tag| tag == name) {
                if !reuse {
                    return Err(Error::AlreadyExists {
                        what: Noun::DeletedTag,
                        name: name.to_owned(),
                    });
                }
                next.deleted_tags.retain(|tag| tag != name);
            }
            let snapshot_id = snapshot.snapshot_id.clone();
            let reference = Reference { name: name.to_owned(), snapshot_id, kind };
            next.refs.insert(name.to_owned(), reference);
            Ok(snapshot)
        })
        .await
    }

    /// Deletes a branch; not the default one. Its snapshots live on until they expire.
    pub async fn delete_branch(&self, name: &str) -> Result<()> {
        self.update(|next| {
            next.reference(ReferenceKind::Branch, name)?;
            if next.default_branch == name {
                return Err(Error::Invalid {
                    what: format!("{name:?} is the default branch and cannot be deleted"),
                });
            }
            next.refs.remove(name);
            Ok(())
        })
        .await
    }

    /// Deletes a tag and retires its name.
    pub async fn delete_tag(&self, name: &str) -> Result<()> {
        self.update(|next| {
            next.reference(ReferenceKind::Tag, name)?;
            next.refs.remove(name);
            next.deleted_tags.push(name.to_owned());
            Ok(())
        })
        .await
    }

    /// Points a branch at another version. With `expected`, only if it points there now.
    pub async fn reset_branch(
        &self,
        name: &str,
        to: &Version,
        expected: Option<&str>,
    ) -> Result<Arc<Snapshot>> {
        self.update(|next| {
            let current = next.reference(ReferenceKind::Branch, name)?.snapshot_id.clone();
            if let Some(expected) = expected.filter(|expected| **expected != current) {
                return Err(Error::Conflict {
                    message: format!("branch {name:?} is at {current}, expected {expected}"),
                    conflicts: Vec::new(),
                });
            }
            let snapshot = next.resolve(to)?.clone();
            if let Some(reference) = next.refs.get_mut(name) {
                reference.snapshot_id = snapshot.snapshot_id.clone();
            }
            Ok(snapshot)
        })
        .await
    }

    /// Stops or resumes accepting commits.
    pub async fn set_mode(&self, mode: Mode, reason: Option<String>) -> Result<()> {
        self.update_whatever_mode(|next| {
            next.status = state::Status { mode, reason: reason.clone() };
            Ok(())
        })
        .await
    }

    /// Changes persisted defaults.
    pub async fn update_config(&self, change: impl Fn(&mut super::Config)) -> Result<()> {
        self.update(|next| {
            change(&mut next.config);
            Ok(())
        })
        .await
    }

    /// Swaps in a changed state, again and again until no race is lost. `change` runs on each fresh
    /// state and checks its preconditions there.
    pub(super) async fn update<T>(&self, change: impl Fn(&mut State) -> Result<T>) -> Result<T> {
        self.update_whatever_mode(|next| {
            if next.status.mode == Mode::ReadOnly {
                return Err(read_only(next));
            }
            change(next)
        })
        .await
    }

    async fn update_whatever_mode<T>(&self, change: impl Fn(&mut State) -> Result<T>) -> Result<T> {
        let mut line = self.inner.state_file.line_up();
        loop {
            let _turn = line.turn().await;
            let current = self.load().await?;
            let mut next = current.state.successor(clock::now_ms())?;
            let answer = change(&mut next)?;
            match self.inner.state_file.swap(&current, next, &[]).await {
                Ok(Swap::Won(_)) => return Ok(answer),
                Ok(Swap::Lost) => {}
                // A collection that spares nothing may take the temporary file of a swap.
                Err(error) => self.overtaken(&current, error).await?,
            }
        }
    }
}
