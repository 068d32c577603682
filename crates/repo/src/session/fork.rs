//! Distributed writers: a session is handed out, each worker returns its references, the session
//! merges them and commits once.

use std::collections::BTreeSet;
use std::sync::Arc;

use chunkyard_format::Version;
use chunkyard_store::{Conflict, ConflictKind, Error, Result, Uid};
use serde::{Deserialize, Serialize};

use super::conflict::chunk_conflict;
use super::edit::record;
use super::tables::TableChanges;
use super::{Access, Change, Chunks, Phase, Session, lock};
use crate::Repository;
use crate::coord::Coord;
use crate::manifest::Payload;
use crate::node::{Inventory, Node};

/// A session as it is sent to a worker: serialisable, and enough to open a fork anywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fork {
    session_id: String,
    branch: String,
    base: String,
    gc_epoch: u64,
    number: u32,
    /// The hierarchy as the session has it, where it differs from the base.
    nodes: Option<Vec<Node>>,
    /// Its groups without a document.
    implied: BTreeSet<String>,
    chunks: Vec<(Uid, Vec<(Coord, Payload)>)>,
    /// The runs of tables that the session wrote so far.
    #[serde(default)]
    tables: Vec<(Uid, Vec<Inventory>)>,
}

/// What a worker sends back: references and the files they point into; no chunk bytes except inline
/// ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeSet {
    session_id: String,
    number: u32,
    chunks: Vec<(Uid, Vec<(Coord, Payload)>)>,
    files: Vec<String>,
    bytes_written: u64,
}

impl Fork {
    /// The same without the chunks written so far, for a worker that does not need them.
    pub(crate) fn without_chunks(self) -> Self {
        Self { chunks: Vec::new(), ..self }
    }
}

impl Session {
    /// Hands the session out. The fork sees everything written so far; it can write chunks, and its
    /// changes come back through [`Session::merge`].
    pub async fn fork(&self) -> Result<Fork> {
        let Access::Writable { branch } = &self.access else {
            return Err(Error::Invalid { what: "only a writable session can be forked".into() });
        };
        let _busy = self.hold()?;
        self.work().aside.refuse("fork this session")?;
        self.flush_chunks().await?;
        self.store_tables().await?;
        let mut work = self.work();
        work.forks += 1;
        let edited = !Arc::ptr_eq(&work.tree, &work.base_tree);
        let nodes = edited.then(|| work.tree.nodes().map(|node| (**node).clone()).collect());
        Ok(Fork {
            session_id: self.session_id.clone(),
            branch: branch.clone(),
            base: work.base.snapshot_id.clone(),
            gc_epoch: self.gc_epoch,
            number: work.forks,
            nodes,
            implied: work.implied.clone(),
            chunks: export(&work.chunks, 0),
            tables: work.tables.iter().map(|(uid, own)| (*uid, own.stored.clone())).collect(),
        })
    }

    /// Closes a fork: stores what is in memory, makes it durable, and returns its references.
    pub async fn into_changes(&self) -> Result<ChangeSet> {
        let changes = self.changes_so_far().await?;
        self.work().phase = Phase::Closed;
        Ok(changes)
    }

    /// What a fork has written until now, durable; it stays open.
    pub async fn changes_so_far(&self) -> Result<ChangeSet> {
        if !matches!(self.access, Access::Fork { .. }) {
            return Err(Error::Invalid { what: "only a fork returns a change set".into() });
        }
        let _busy = self.hold()?;
        self.flush_chunks().await?;
        let files: Vec<String> = self.work().files.iter().cloned().collect();
        self.repo.store().backend().sync(&files).await?;
        let work = self.work();
        Ok(ChangeSet {
            session_id: self.session_id.clone(),
            number: work.forks,
            chunks: export(&work.chunks, work.forks),
            files,
            bytes_written: work.bytes_written,
        })
    }

    /// Takes over the references of a fork. A chunk that was written twice with different content,
    /// by two forks or by a fork and this session after the fork, is a conflict; the same change
    /// set may come twice.
    pub fn merge(&self, changes: ChangeSet) -> Result<()> {
        if changes.session_id != self.session_id {
            return Err(Error::Invalid {
                what: "this change set comes from a fork of another session".into(),
            });
        }
        let mut work = self.require_writable()?;
        let mut conflicts = Vec::new();
        for (uid, refs) in &changes.chunks {
            let Some(node) = work.tree.by_uid(uid) else {
                conflicts.push(Conflict::of_node(&uid.to_string(), ConflictKind::NodeRemoved));
                continue;
            };
            let Some(own) = work.chunks.get(uid) else { continue };
            let twice: Vec<&Coord> = refs
                .iter()
                .filter(|(coord, payload)| {
                    own.refs.get(coord).is_some_and(|change| {
                        change.after_forks >= changes.number
                            && !same_content(&change.payload, payload)
                    })
                })
                .map(|(coord, _)| coord)
                .collect();
            if !twice.is_empty() {
                conflicts.push(chunk_conflict(node, ConflictKind::Chunk, &twice, Vec::new()));
            }
        }
        if !conflicts.is_empty() {
            let message = "two writers of one session wrote the same chunks".into();
            return Err(Error::Conflict { message, conflicts });
        }
        // Merged references count as written after every fork handed out so far.
        for (uid, refs) in changes.chunks {
            for (coord, payload) in refs {
                record(&mut work, uid, coord, payload);
            }
        }
        work.files.extend(changes.files);
        work.bytes_written += changes.bytes_written;
        Ok(())
    }
}

impl Repository {
    /// Opens a fork that was handed out by [`Session::fork`], perhaps on another machine.
    pub async fn open_fork(&self, fork: Fork) -> Result<Arc<Session>> {
        let state = self.state().await?;
        let base = match state.resolve(&Version::Snapshot(fork.base.clone())) {
            Ok(base) => base.clone(),
            Err(_) => return Err(Error::BaseExpired { id: fork.base }),
        };
        let tree = self.tree(&base).await?;
        let access = Access::Fork { branch: fork.branch };
        let mut session = Session::new(self.clone(), access, &state, fork.session_id, base, tree);
        session.gc_epoch = fork.gc_epoch;
        {
            let mut work = lock(&session.work);
            if let Some(nodes) = fork.nodes {
                let mut tree = crate::tree::Tree::default();
                nodes.into_iter().for_each(|node| tree.put(Arc::new(node)));
                work.tree = Arc::new(tree);
            }
            work.implied = fork.implied;
            for (uid, refs) in fork.chunks {
                let changes = Arc::make_mut(work.chunks.entry(uid).or_default());
                for (coord, payload) in refs {
                    changes.refs.insert(coord, Change { payload, after_forks: 0 });
                }
            }
            for (uid, stored) in fork.tables {
                work.tables.insert(uid, TableChanges::of_runs(stored));
            }
            // Chunks that the fork itself writes carry its number; inherited ones carry a lower
            // one.
            work.forks = fork.number;
        }
        Ok(Arc::new(session))
    }
}

/// References written after at least `after_forks` forks.
fn export(chunks: &Chunks, after_forks: u32) -> Vec<(Uid, Vec<(Coord, Payload)>)> {
    let mut exported: Vec<_> = chunks
        .iter()
        .map(|(uid, changes)| {
            let refs = changes.refs.iter().filter(|(_, change)| change.after_forks >= after_forks);
            (*uid, refs.map(|(coord, change)| (coord.clone(), change.payload.clone())).collect())
        })
        .filter(|(_, refs): &(Uid, Vec<_>)| !refs.is_empty())
        .collect();
    exported.sort_by_key(|(uid, _)| *uid);
    exported
}

/// Whether two references seem to lead to the same bytes: a repeated task writes the same chunk to
/// another place.
fn same_content(a: &Payload, b: &Payload) -> bool {
    match (a, b) {
        (Payload::Native(a), Payload::Native(b)) => {
            a == b || (a.length == b.length && a.crc32c.is_some() && a.crc32c == b.crc32c)
        }
        _ => a == b,
    }
}
