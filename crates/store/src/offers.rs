//! What a store offers, by what a caller wants to do: so that callers need not know which stores there are.

use super::backend::{Kind, Lock};
use super::location::real_directory;
use super::{Error, Result, Store};

/// Bytes of the longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;
/// Bytes that a parser reads at once from a file, where reading more costs more than reading twice.
const LOCAL_BLOCK_BYTES: usize = 16 << 10;
/// The same where a request costs more than its bytes.
const REMOTE_BLOCK_BYTES: usize = 256 << 10;

impl Store {
    /// Whether bytes of a file can be changed where they are: `write_at`, `truncate` and
    /// [`Upload::patch`](super::Upload::patch). Elsewhere an object is written as a whole, once all of it is known.
    pub fn writes_in_place(&self) -> bool {
        self.is_directory()
    }

    /// Whether a file or a directory gets another name in one step, so that it can be written aside.
    pub fn renames(&self) -> bool {
        self.is_directory()
    }

    /// Whether a lock keeps other processes out. Elsewhere each put has a condition instead.
    pub fn locks(&self) -> bool {
        self.is_directory()
    }

    /// Keeps other processes out, where the store has locks.
    pub async fn keep_out(&self, path: &str) -> Result<Option<Lock>> {
        match self.locks() {
            true => self.lock(path).await.map(Some),
            false => Ok(None),
        }
    }

    /// How many of `most` puts are worth making at once: where each is a round trip, all of them.
    pub fn puts_at_once(&self, most: usize) -> usize {
        if self.is_directory() { 1 } else { most }
    }

    /// Bytes that a parser reads at once.
    pub fn block_bytes(&self) -> usize {
        if self.is_directory() { LOCAL_BLOCK_BYTES } else { REMOTE_BLOCK_BYTES }
    }

    /// Bytes of the longest name between two slashes, where there is a limit.
    pub fn name_bytes_max(&self) -> Option<usize> {
        self.is_directory().then_some(NAME_BYTES_MAX)
    }

    /// The directory that the URL of this store leads to, if it is a link to one.
    pub fn target(&self) -> Result<Option<String>> {
        match self.is_directory() {
            true => real_directory(self.url()),
            false => Ok(None),
        }
    }

    /// What is at a path instead of a file or a directory, if anything: only a file system has pipes and devices.
    pub async fn irregular(&self, path: &str) -> Option<String> {
        if !self.is_directory() {
            return None;
        }
        match self.head(path).await {
            Err(Error::Corrupt { found, .. }) => Some(found),
            _ => None,
        }
    }

    fn is_directory(&self) -> bool {
        self.kind() == Kind::Local
    }
}
