//! Making the edits of a session visible while others edit too.
//!
//! The repository puts rows and blocks of a session on top of what others committed, unless both changed the same one.
//! If that is the row of a body, people have to look at it. Else it is a block, which two bodies share at some scale:
//! then the edits are done anew on the new tip, with the ids that they have.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use chunkyard_repo::{CommitOptions, Rebase, Repository, Snapshot};
use chunkyard_store::{Conflict, ConflictKind, Error, Result};

use super::changes::Changes;
use super::{Author, Edit};
use crate::labelmap::below;
use crate::rows::{self, Mutation};
use crate::{Labelmap, layout};

/// How often edits are done anew.
const ATTEMPTS: usize = 20;

/// An edit of a session, with all ids that were chosen for it.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    edit: Edit,
    author: Author,
    mutation: Mutation,
}

impl Labelmap {
    /// Writes an edit to the session, and remembers it; `at` is its id and its time.
    pub(super) async fn write_logged(
        &self,
        edit: &Edit,
        mut changes: Changes,
        author: &Author,
        (id, time_ms): (u64, i64),
    ) -> Result<Mutation> {
        let mutation = changes.log(id, author, time_ms);
        let edit = with_ids(edit, &changes, mutation.other);
        self.write(changes, &mutation).await?;
        if let Some(done) = &mut *self.done.lock().unwrap_or_else(PoisonError::into_inner) {
            done.push(Done { edit, author: author.clone(), mutation: mutation.clone() });
        }
        Ok(mutation)
    }

    /// Commits the edits of the session. Edits of other bodies that were committed meanwhile are kept; if
    /// one of the same bodies was edited, this is a conflict that names the bodies. If they share blocks with bodies
    /// that others edited, they are done anew in another session and keep their ids, and this one is of no further
    /// use; unless this one has changes besides edits of this labelmap, which is a conflict as well.
    pub async fn commit(&self, message: &str) -> Result<Arc<Snapshot>> {
        self.refuse_torn()?;
        let error = match self.commit_session(message).await {
            Ok(snapshot) => return Ok(snapshot),
            Err(error) => error,
        };
        if !self.can_be_done_anew(&error) {
            return Err(self.explain_conflict(error));
        }
        let Some(done) = self.only_edits().await? else { return Err(error) };
        let base = self.at_version(&self.session.snapshot()).await?;
        let Some((base, branch)) = base.zip(self.session.branch()) else { return Err(error) };
        let mut attempt = 1;
        loop {
            let session = self.session.repository().writable_session(branch).await?;
            let map = Self::open(&session, &self.path).await?;
            map.refuse_changed_bodies(&base, &done).await?;
            for done in &done {
                map.apply_again(done).await?;
            }
            match map.commit_session(message).await {
                Ok(snapshot) => {
                    self.spent.store(true, Ordering::Relaxed);
                    return Ok(snapshot);
                }
                Err(error) if attempt < ATTEMPTS && map.can_be_done_anew(&error) => attempt += 1,
                Err(error) => return Err(map.explain_conflict(error)),
            }
        }
    }

    async fn commit_session(&self, message: &str) -> Result<Arc<Snapshot>> {
        let options = CommitOptions::message(message).with_rebase(Rebase::default());
        self.session.commit(options).await
    }

    /// Whether it is a conflict, and not about a body.
    fn can_be_done_anew(&self, error: &Error) -> bool {
        let Error::Conflict { conflicts, .. } = error else { return false };
        !conflicts.is_empty() && self.bodies_in_conflict(conflicts).is_empty()
    }

    /// The edits of the session, if it has no other changes.
    async fn only_edits(&self) -> Result<Option<Vec<Done>>> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(done) = done.filter(|done| !done.is_empty()) else { return Ok(None) };
        let changes = self.session.status().await?;
        let nodes = [
            &changes.added,
            &changes.removed,
            &changes.moved,
            &changes.metadata,
            &changes.attributes,
        ];
        let inside = |path: &str| {
            path.strip_prefix(self.path.trim_end_matches('/'))
                .is_some_and(|rest| rest.starts_with('/'))
        };
        // Each edit adds a row to the log, whoever's it is.
        let log = below(&self.path, layout::MUTATIONS);
        let logged = changes.rows.iter().find(|rows| rows.path == log).map_or(0, |rows| rows.added);
        let only = nodes.iter().all(|nodes| nodes.is_empty())
            && changes.chunks.iter().all(|chunks| inside(&chunks.path))
            && changes.rows.iter().all(|rows| inside(&rows.path))
            && logged == done.len() as u64;
        Ok(only.then_some(done))
    }

    /// Refuses if a body of the edits is not as it was when they were made.
    async fn refuse_changed_bodies(&self, base: &Self, done: &[Done]) -> Result<()> {
        let bodies: BTreeSet<u64> =
            done.iter().flat_map(|done| done.mutation.bodies.iter().copied()).collect();
        let bodies: Vec<u64> = bodies.into_iter().collect();
        let (before, now) = (base.find_bodies(&bodies).await?, self.find_bodies(&bodies).await?);
        let changed = bodies.iter().zip(before.iter().zip(&now)).filter(|(_, (a, b))| a != b);
        let keys: Vec<String> = changed.map(|(body, _)| body.to_string()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let conflict = Conflict {
            chunk_count: keys.len() as u64,
            keys,
            ..Conflict::of_node(&below(&self.path, layout::BODIES), ConflictKind::Row)
        };
        Err(self.explain_conflict(Error::Conflict {
            message: String::new(),
            conflicts: vec![conflict],
        }))
    }

    async fn apply_again(&self, Done { edit, author, mutation }: &Done) -> Result<()> {
        let id = mutation.mutation;
        let taken: Vec<Option<Mutation>> = rows::get(&self.mutations, &[id]).await?;
        if taken.iter().any(Option::is_some) {
            return Err(Error::Conflict {
                message: format!("another mutation got the id {id} meanwhile; edit again"),
                conflicts: Vec::new(),
            });
        }
        let changes = self.work_out(edit).await?;
        self.write_logged(edit, changes, author, (id, mutation.time_ms)).await?;
        Ok(())
    }

    /// Puts the bodies first in a conflict: people edit bodies, not rows.
    fn explain_conflict(&self, error: Error) -> Error {
        let Error::Conflict { conflicts, .. } = &error else { return error };
        let bodies = self.bodies_in_conflict(conflicts);
        if bodies.is_empty() {
            return error;
        }
        let listed: Vec<String> = bodies.iter().take(10).map(|body| body.to_string()).collect();
        let more = if bodies.len() > 10 { ", …" } else { "" };
        Error::Conflict {
            message: format!(
                "body {}{more} was edited meanwhile; look at it and edit again",
                listed.join(", ")
            ),
            conflicts: conflicts.clone(),
        }
    }

    fn bodies_in_conflict(&self, conflicts: &[Conflict]) -> Vec<String> {
        let path = below(&self.path, layout::BODIES);
        let of_bodies =
            |conflict: &&Conflict| conflict.kind == ConflictKind::Row && conflict.path == path;
        conflicts.iter().filter(of_bodies).flat_map(|conflict| conflict.keys.clone()).collect()
    }
}

/// Applies edits to the tip of a branch as one commit, and says what was logged. See [`Labelmap::commit`] for what
/// happens if another writer is faster.
pub async fn commit_edits(
    repo: &Repository,
    branch: &str,
    path: &str,
    edits: &[Edit],
    author: &Author,
    message: &str,
) -> Result<(Vec<Mutation>, Arc<Snapshot>)> {
    if edits.is_empty() {
        return Err(Error::invalid("no edits to commit"));
    }
    let session = repo.writable_session(branch).await?;
    let map = Labelmap::open(&session, path).await?;
    let mut mutations = Vec::with_capacity(edits.len());
    for edit in edits {
        mutations.push(map.apply(edit, author).await?);
    }
    Ok((mutations, map.commit(message).await?))
}

/// An edit that was worked out, with the ids that were chosen.
fn with_ids(edit: &Edit, changes: &Changes, other: u64) -> Edit {
    let mut edit = edit.clone();
    match &mut edit {
        Edit::Cleave { new_body, .. } => *new_body = Some(other),
        Edit::SplitSupervoxel { part, rest, .. } => {
            *part = Some(other);
            let mut made = changes.history.iter().filter(|(_, moved)| moved.origin != 0);
            *rest = made.find(|(id, _)| **id != other).map(|(id, _)| *id);
        }
        Edit::SplitBody { new_body, halves, .. } => {
            *new_body = Some(other);
            let made = || changes.history.iter().filter(|(_, moved)| moved.origin != 0);
            let parts = made().filter(|(_, moved)| moved.after == other);
            let rest = |origin: u64| {
                made().find(|(_, moved)| moved.origin == origin && moved.after != other)
            };
            *halves = parts
                .filter_map(|(part, moved)| Some((moved.origin, *part, *rest(moved.origin)?.0)))
                .collect();
        }
        Edit::Merge { .. } | Edit::Renumber { .. } | Edit::Map { .. } | Edit::Revert { .. } => {}
    }
    edit
}
