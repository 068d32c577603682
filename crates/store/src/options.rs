//! How a store is opened.

use std::collections::BTreeMap;
use std::fmt;

use super::limits::Limits;

/// Whether [`sync`](super::Backend::sync) reaches the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// It does.
    #[default]
    Full,
    /// It does not: for tests and scratch data that may vanish with the power.
    None,
}

/// How a store is opened.
///
/// `values` are keys as object stores name them: `endpoint`, `region`, `access_key_id`,
/// `secret_access_key`, `allow_http`, `skip_signature`, `timeout`, `connect_timeout`. They override
/// the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`). Three keys are ours:
///
/// - `conditional_put=false`: the store can create but not replace conditionally;
/// - `retries` (default 10): how often a request is repeated;
/// - `retry_timeout_ms` (default 180000): how long it is repeated at most.
///
/// A connection must succeed within 5 seconds, a request must end within 120 (`connect_timeout`,
/// `timeout`). An address that has never answered is given up soon. A table of all this, with
/// reasons, is at the top of `store/object/client.rs`.
#[derive(Clone, Default)]
pub struct Options {
    /// Settings of the object store.
    pub values: BTreeMap<String, String>,
    /// Whether `sync` reaches the disk.
    pub durability: Durability,
    /// How much may be under way at once.
    pub limits: Limits,
}

impl fmt::Debug for Options {
    /// Names the keys and hides the values, some of which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("values", &self.values.keys())
            .field("durability", &self.durability)
            .field("limits", &self.limits)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let mut options = Options::default();
        options.values.insert("secret_access_key".into(), "hunter2".into());
        let printed = format!("{options:?}");
        assert!(printed.contains("secret_access_key") && !printed.contains("hunter2"));
    }
}
