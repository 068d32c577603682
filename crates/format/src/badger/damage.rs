//! What could not be read, and what that hides.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use chunkyard_store::{Error, ErrorKind, Result};

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
    /// By file and start, because scans meet the same damage again.
    skipped: Mutex<BTreeMap<(String, u64), Skipped>>,
}

impl Damage {
    pub(super) fn new(skip: bool) -> Self {
        Self { skip, skipped: Mutex::default() }
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
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        let part = Skipped { error: error.to_string(), ..part };
        skipped.entry((part.file.clone(), at)).or_insert(part);
        Ok(())
    }

    pub(super) fn all(&self) -> Vec<Skipped> {
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.values().cloned().collect()
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
