//! A session as the keys of a Zarr v3 hierarchy, for users of Zarr's store interface: zarr-python,
//! and servers of a version over HTTP.
//!
//! ```text
//!  zarr.json        the document of the root group
//!  a/zarr.json      the document of a node: its specification and its attributes, as one
//!  a/c/0/1          an encoded chunk, by the chunk key encoding of its array
//! ```
//!
//! It behaves like a map from keys to bytes, with these differences:
//!
//! - A document is rendered from the node. It has the members that were written, but not their
//!   order or white space. `consolidated_metadata` is not kept: it would be stale after the next
//!   change, and a session has all metadata at hand anyway.
//! - Keys may come in any order. A key that fits nothing yet waits in the memory of the session,
//!   and can be read and listed like all others; a commit fails while any key waits.
//! - A document that contradicts the hierarchy is refused at once: one that does not parse in place
//!   of one that does, another data type while there are chunks, an array in place of a group that
//!   holds nodes.
//! - Deleting the document of an array deletes the array, its chunks included. A smaller shape deletes
//!   the chunks outside it.
//! - A commit gives every group above a node a document.
//!
//! What keys look like and how values are fetched is [`chunkyard_format::keys`], which views of other sources share.
//! `target` tells what a key names here, `document` renders and parses, `read`, `write` and `list` are the operations.

mod document;
mod list;
mod read;
mod target;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub use self::list::Listing;
pub use chunkyard_format::keys::ByteRange;

use chunkyard_format::keys::DOCUMENT;
use chunkyard_store::Uid;

use self::target::ChunkNaming;
use super::session::Session;

/// A session as keys and values. All views of one session show the same. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Keys {
    session: Arc<Session>,
    /// How chunks are named, for the arrays used so far.
    namings: Arc<Mutex<HashMap<Uid, Arc<ChunkNaming>>>>,
}

impl Keys {
    /// The keys of a session.
    pub fn new(session: Arc<Session>) -> Self {
        Self { session, namings: Arc::default() }
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

/// A prefix as a folder prefix: empty, or ending in `/`.
fn folder(prefix: &str) -> String {
    match prefix.trim_end_matches('/') {
        "" => String::new(),
        name => format!("{name}/"),
    }
}

/// The path of the node at a folder.
fn path_of(folder: &str) -> String {
    format!("/{}", folder.trim_end_matches('/'))
}

/// What all keys of a node begin with.
fn folder_of(path: &str) -> String {
    folder(path.trim_start_matches('/'))
}
