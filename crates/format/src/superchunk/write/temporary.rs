//! Temporary files that dead writers left beside `meta/sizes`.
//!
//! In the data folders a writer removes them when it begins. Here the lock of that writer proves nothing: attributes
//! are written to a temporary file without a lock. It is renamed a moment later, so only old files go.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use chunkyard_store::Result;

use super::Writing;
use crate::superchunk::names;

/// A temporary file that is older than this was abandoned.
const ABANDONED_MS: i64 = 60 * 60 * 1000;

impl Writing {
    /// Deletes abandoned files. The caller must hold the lock.
    pub(super) async fn delete_abandoned(&self) -> Result<()> {
        let (store, paths) = (&self.access.store, self.committed().sizes_paths());
        let folders: BTreeSet<&str> =
            paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let mut abandoned = Vec::new();
        for folder in folders {
            for meta in store.list_dir(folder).await?.objects {
                let name = meta.path.rsplit('/').next().unwrap_or_default();
                let old = now_ms.saturating_sub(meta.modified_ms) > ABANDONED_MS;
                // A store may not know when a file was written.
                if name.starts_with(names::TEMP) && old && meta.modified_ms > 0 {
                    abandoned.push(meta.path);
                }
            }
        }
        match abandoned.is_empty() {
            true => Ok(()),
            false => store.delete(&abandoned).await,
        }
    }
}
