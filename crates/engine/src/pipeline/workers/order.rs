//! What is sent between a coordinator and its workers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_format::Ticket;
use chunkyard_repo::Version;
use chunkyard_store::{Durability, Options};
use serde::{Deserialize, Serialize};

use crate::pipeline::wishes::Wishes;

/// The options of a store that may travel. All others may be secrets, and each worker has its own:
/// from its environment, or from the program that started it.
const PUBLIC: [&str; 16] = [
    "account_name",
    "allow_http",
    "checksum_algorithm",
    "conditional_put",
    "connect_timeout",
    "default_region",
    "endpoint",
    "endpoint_url",
    "region",
    "request_payer",
    "retries",
    "retry_timeout_ms",
    "skip_signature",
    "timeout",
    "unsigned_payload",
    "virtual_hosted_style_request",
];

/// Prefixes that object stores put before some names of options.
const PREFIXES: [&str; 3] = ["aws_", "google_", "azure_"];

/// A conversion as every worker needs to know it. Holds no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub(in crate::pipeline) source: Address,
    /// Which version of the source, exactly.
    pub(in crate::pipeline) version: Option<Version>,
    /// Where references in the source may lead to.
    pub(in crate::pipeline) allowed: Vec<String>,
    pub(in crate::pipeline) target: Address,
    pub(in crate::pipeline) wishes: Wishes,
    /// The name of an array that had none.
    pub(in crate::pipeline) name: String,
    /// Options of the stores that are no secrets.
    pub(super) storage: BTreeMap<String, String>,
    /// Whether `sync` reaches the disk.
    pub(super) durable: bool,
    /// Name of the plan that a worker must arrive at.
    pub(in crate::pipeline) plan: String,
    pub(super) ticket: Ticket,
}

/// A place and its format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::pipeline) struct Address {
    pub(in crate::pipeline) url: String,
    pub(in crate::pipeline) format: String,
}

/// Packs of an array that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRange {
    /// Path of the array in the target.
    pub array: Arc<str>,
    /// Their numbers.
    pub packs: Range<u64>,
    /// The parts of a pack for which the source stores anything, unless it is all of it: boxes of
    /// whole target chunks, by origin and shape. Then there is a single pack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<(Vec<u64>, Vec<u64>)>,
}

/// Work for one worker. Several workers may do it, at any time, and more than once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Which conversion it belongs to.
    pub order: Arc<Order>,
    /// The packs to write.
    pub packs: Vec<PackRange>,
}

/// What a worker has done: the receipts of its packs, which are durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Name of the plan that it is a part of.
    pub plan: String,
    /// Receipts, as the journal writes them down.
    pub receipts: Bytes,
}

/// The options that may travel.
pub(super) fn public(options: &Options) -> BTreeMap<String, String> {
    let is_public = |key: &str| {
        let key = key.to_ascii_lowercase();
        let bare = PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(&key);
        PUBLIC.contains(&bare)
    };
    let kept = options.values.iter().filter(|(key, _)| is_public(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Order {
    /// The name of its plan.
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// What the target's format needs to know to let a worker join.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// URLs of the source and the target.
    pub fn places(&self) -> (&str, &str) {
        (&self.source.url, &self.target.url)
    }

    /// The options of stores, together with the worker's own.
    pub(in crate::pipeline) fn store_options(&self, own: &Options) -> Options {
        let mut values = self.storage.clone();
        values.extend(own.values.clone());
        let durability = if self.durable { Durability::Full } else { Durability::None };
        Options { values, durability, limits: own.limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_travel() {
        let mut options = Options::default();
        for key in ["endpoint", "AWS_REGION", "secret_access_key", "token", "azure_account_key"] {
            options.values.insert(key.to_owned(), "value".to_owned());
        }
        let kept: Vec<_> = public(&options).into_keys().collect();
        assert_eq!(kept, ["AWS_REGION", "endpoint"]);
    }

    #[test]
    fn no_shards_are_not_shards_as_they_are() {
        for shards in [None, Some(None), Some(Some(vec![8, 8]))] {
            let wishes = Wishes { shards, ..Wishes::default() };
            let text = serde_json::to_string(&wishes).unwrap();
            assert_eq!(serde_json::from_str::<Wishes>(&text).unwrap(), wishes, "{text}");
        }
    }
}
