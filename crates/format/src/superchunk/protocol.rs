//! How the writers of a dataset stay out of each other's way: chosen once, when it is opened.

use chunkyard_store::{Meta, Store, Version};

/// What keeps two writers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A writer holds a lock. Files grow, are replaced by renaming, and are deleted.
    Locked,
    /// A writer names itself in `meta/sizes`, and each of its puts has the condition that the object is as it was.
    /// An object is not deleted but made empty, because no store deletes one only if it is unchanged.
    Claimed,
}

impl Protocol {
    /// The protocol that a store allows.
    pub(super) fn of(store: &Store) -> Self {
        if store.locks() { Self::Locked } else { Self::Claimed }
    }

    /// The version that later puts of an object must find. Under a lock they need no condition.
    pub(super) fn version(self, meta: &Meta) -> Option<Version> {
        (self == Self::Claimed).then(|| Version::from(meta))
    }

    /// Whether this is what a removal left of an object.
    pub(super) fn is_removed(self, meta: &Meta) -> bool {
        self == Self::Claimed && meta.size == 0
    }
}
