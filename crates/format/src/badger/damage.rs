//! What could not be read, and what that hides.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use chunkyard_store::{Error, ErrorKind, Result};

/// Parts that are listed. A value log that is cut short may hide millions of values, which are counted.
const LISTED: usize = 10_000;

/// A part of the store that was left out because its bytes are damaged.
///
/// Besides keys that are now missing, older versions of keys that are elsewhere may show, and so may
/// keys whose deletion was recorded here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub file: String,
    /// Where in the file; `None` for all of it.
    pub bytes: Option<Range<u64>>,
    /// The first user key that may be concerned; `None` if that is not known.
    pub first_key: Option<Vec<u8>>,
    /// The first user key that is not concerned any more; `None` if that is not known.
    pub end_key: Option<Vec<u8>>,
    /// What is wrong.
    pub error: String,
}

/// Decides what becomes of damage, and remembers it.
#[derive(Debug, Default)]
pub(super) struct Damage {
    skip: bool,
    met: Mutex<Met>,
}

/// Damage that was met.
#[derive(Debug, Default)]
struct Met {
    /// By file and start, because scans meet the same damage again.
    listed: BTreeMap<(String, u64), Skipped>,
    /// Hashes of file and start of those that are counted only.
    more: HashSet<u64>,
    hasher: RandomState,
}

impl Damage {
    pub(super) fn new(skip: bool) -> Self {
        Self { skip, met: Mutex::default() }
    }

    pub(super) fn skips(&self) -> bool {
        self.skip
    }

    /// Skips a part, unless the caller wants errors or the bytes are not to blame.
    pub(super) fn meet(&self, error: Error, part: Skipped) -> Result<()> {
        if !self.skip || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let at = part.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (part.file.clone(), at);
        if met.listed.contains_key(&place) {
            return Ok(());
        }
        if met.listed.len() < LISTED {
            met.listed.insert(place, Skipped { error: error.to_string(), ..part });
        } else {
            let hash = met.hasher.hash_one(&place);
            met.more.insert(hash);
        }
        Ok(())
    }

    /// The parts that are listed, and how many more there are.
    pub(super) fn all(&self) -> (Vec<Skipped>, u64) {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        (met.listed.values().cloned().collect(), met.more.len() as u64)
    }
}

impl Skipped {
    /// All of a file, with unknown keys.
    pub(super) fn file(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            bytes: None,
            first_key: None,
            end_key: None,
            error: String::new(),
        }
    }
}
