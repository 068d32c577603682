//! One lock per array and process, however often the array is opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chunkyard_store::Store;

use crate::Writers;

/// The locks in use, by the URL that they guard.
static WRITERS: Mutex<BTreeMap<String, Weak<Writers>>> = Mutex::new(BTreeMap::new());

/// The lock that keeps writers of the array at a path apart.
pub(super) fn of_array(store: &Store, path: &str) -> Arc<Writers> {
    named(format!("{}{path}", store.url()))
}

/// The lock that keeps writers of a hierarchy's documents apart.
pub(super) fn of_documents(store: &Store) -> Arc<Writers> {
    // No path of a node has an empty segment.
    named(format!("{}//documents", store.url()))
}

fn named(name: String) -> Arc<Writers> {
    let mut known = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(writers) = known.get(&name).and_then(Weak::upgrade) {
        return writers;
    }
    known.retain(|_, writers| writers.strong_count() > 0);
    let writers = Arc::new(Writers::default());
    known.insert(name, Arc::downgrade(&writers));
    writers
}
