//! Random work against a session's keys and against a map, compared after each step.
//!
//! The map does not predict refusals of documents: if the session refuses, nothing may have
//! changed; if it accepts, the result must match the map. It does predict which keys wait, and so
//! whether a commit is refused.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use chunkyard_repo::{Keys, Repository};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{array, array_with, commit, group, list, writing};
use crate::repo::support::{create, memory, noise, reopen, repetitions, sound, tiny};
use chunkyard_test_support::cases;

/// Folders that may hold nodes; each lies in the one before it, or in the root.
const FOLDERS: [&str; 5] = ["", "a/", "a/b/", "a/b/c/", "g/"];

#[derive(Debug, Clone)]
enum Step {
    Set { key: String, value: Bytes },
    SetIfNotExists { key: String, value: Bytes },
    Delete { key: String },
    DeleteDir { folder: usize, inside: bool },
    Commit,
}

/// A map from keys to values, and their meaning in Zarr.
#[derive(Debug, Clone, Default)]
struct Model(BTreeMap<String, Bytes>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Group,
    /// With this many chunks.
    Array(u64),
}

fn parse(bytes: &[u8]) -> Option<(Kind, Value)> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    match document.get("node_type")?.as_str()? {
        "group" => Some((Kind::Group, document)),
        _ => Some((Kind::Array(document["shape"][0].as_u64()?.div_ceil(2)), document)),
    }
}

impl Model {
    /// The nodes with a document that parses and does not lie in an array.
    fn nodes(&self) -> BTreeMap<&'static str, Kind> {
        let mut nodes: BTreeMap<&'static str, Kind> = BTreeMap::new();
        for folder in FOLDERS {
            let Some(bytes) = self.0.get(&format!("{folder}zarr.json")) else { continue };
            let Some((kind, _)) = parse(bytes) else { continue };
            let in_array = nodes
                .iter()
                .any(|(above, kind)| folder.starts_with(above) && matches!(kind, Kind::Array(_)));
            if !in_array {
                nodes.insert(folder, kind);
            }
        }
        nodes
    }

    /// The chunk of an array that a key names.
    fn chunk(&self, key: &str) -> bool {
        self.nodes().iter().any(|(folder, kind)| match kind {
            Kind::Array(count) => (0..*count).any(|n| key == format!("{folder}c/{n}")),
            Kind::Group => false,
        })
    }

    fn waits(&self, key: &str, value: &Bytes) -> bool {
        let is_document = self.nodes().keys().any(|folder| key == format!("{folder}zarr.json"));
        !is_document && (!self.chunk(key) || value.is_empty())
    }

    fn set(&mut self, key: &str, value: &Bytes) {
        let before = self.nodes();
        self.0.insert(key.to_owned(), value.clone());
        let after = self.nodes();
        for (folder, old) in before {
            if let (Kind::Array(old), Some(Kind::Array(new))) = (old, after.get(folder)) {
                self.drop_chunks(folder, *new, old);
            }
        }
    }

    /// A chunk that waits because it has no bytes does not count as a chunk of the array.
    fn drop_chunks(&mut self, folder: &str, from: u64, to: u64) {
        for n in from..to {
            let key = format!("{folder}c/{n}");
            if self.0.get(&key).is_some_and(|value| !value.is_empty()) {
                self.0.remove(&key);
            }
        }
    }

    fn delete(&mut self, key: &str) {
        for (folder, kind) in self.nodes() {
            if let Kind::Array(count) = kind
                && key == format!("{folder}zarr.json")
            {
                self.drop_chunks(folder, 0, count);
            }
        }
        self.0.remove(key);
    }

    /// Every group above a node gets a document.
    fn commit(&mut self) {
        let mut missing: BTreeSet<&str> = BTreeSet::from([""]);
        for node in self.nodes().into_keys() {
            missing.extend(FOLDERS.iter().filter(|above| node.starts_with(*above)));
        }
        for folder in missing {
            let key = format!("{folder}zarr.json");
            self.0.entry(key).or_insert_with(|| group(&json!({})));
        }
    }
}

struct Runner {
    repo: Repository,
    keys: Keys,
    model: Model,
    /// As far as it is committed.
    committed: Model,
}

impl Runner {
    async fn new() -> Self {
        let repo = create(&memory(), tiny()).await;
        let keys = writing(&repo).await;
        Self { repo, keys, model: Model::default(), committed: Model::default() }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Set { key, value } => {
                if self.keys.set(key, value.clone()).await.is_ok() {
                    self.model.set(key, value);
                } else {
                    assert!(key.ends_with("zarr.json"), "{key} was refused");
                }
            }
            Step::SetIfNotExists { key, value } => {
                match self.keys.set_if_not_exists(key, value.clone()).await {
                    Ok(true) => {
                        assert!(!self.model.0.contains_key(key), "{key} was there");
                        self.model.set(key, value);
                    }
                    Ok(false) => assert!(self.model.0.contains_key(key), "{key} was not there"),
                    Err(error) => assert!(key.ends_with("zarr.json"), "{key}: {error}"),
                }
            }
            Step::Delete { key } => {
                self.keys.delete(key).await.unwrap();
                self.model.delete(key);
            }
            Step::DeleteDir { folder, inside } => {
                let folder = format!("{}{}", FOLDERS[*folder], if *inside { "c" } else { "" });
                self.keys.delete_dir(&folder).await.unwrap();
                let folder = match folder.trim_end_matches('/') {
                    "" => String::new(),
                    name => format!("{name}/"),
                };
                self.model.0.retain(|key, _| !key.starts_with(&folder));
            }
            Step::Commit => self.commit().await,
        }
        self.compare().await;
    }

    async fn commit(&mut self) {
        let waits = self.model.0.iter().any(|(key, value)| self.model.waits(key, value));
        match commit(&self.keys).await {
            Ok(()) => {
                assert!(!waits, "a commit went through while keys waited");
                self.model.commit();
                self.committed = self.model.clone();
            }
            Err(error) if error.to_string().contains("nothing to commit") => {
                // The documents that a commit adds exist already, if anything was ever committed.
                let mut full = self.model.clone();
                full.commit();
                assert!(!waits && (full.0 == self.committed.0 || self.model.0.is_empty()));
                return;
            }
            Err(error) => {
                assert!(waits, "{error}");
                return;
            }
        }
        self.repo = reopen(self.repo.store()).await;
        self.keys = writing(&self.repo).await;
    }

    async fn compare(&self) {
        let expected: Vec<_> = self.model.0.keys().cloned().collect();
        assert_eq!(list(&self.keys, "").await, expected);
        let wanted: Vec<_> = expected.iter().map(|key| (key, None)).collect();
        let values = self.keys.get_many(&wanted).await.unwrap();
        for ((key, expected), found) in self.model.0.iter().zip(values) {
            let found = found.unwrap();
            match parse(expected).filter(|_| !self.model.waits(key, expected)) {
                Some((_, document)) => {
                    let mut found: Value = serde_json::from_slice(&found).unwrap();
                    if document.get("attributes").is_none() {
                        assert_eq!(found["attributes"], json!({}));
                        found.as_object_mut().unwrap().remove("attributes");
                    }
                    assert_eq!(found, document, "{key}");
                }
                None => {
                    assert_eq!(found, expected, "{key}");
                    assert_eq!(self.keys.size(key).await.unwrap(), Some(found.len() as u64));
                }
            }
            assert!(self.keys.exists(key).await.unwrap(), "{key}");
        }
        for folder in
            FOLDERS.iter().flat_map(|folder| [(*folder).to_owned(), format!("{folder}c/")])
        {
            let inside = expected.iter().filter_map(|key| key.strip_prefix(&folder));
            let names: BTreeSet<_> = inside.map(|rest| rest.split('/').next().unwrap()).collect();
            let names: Vec<_> = names.into_iter().collect();
            assert_eq!(self.keys.list_dir(&folder).await.unwrap(), names, "{folder}");
            assert_eq!(self.keys.is_empty(&folder).await.unwrap(), names.is_empty(), "{folder}");
        }
    }
}

fn keys() -> impl Strategy<Value = String> {
    let folder = prop::sample::select(&FOLDERS[..]);
    let name = prop_oneof![
        6 => Just("zarr.json".to_owned()),
        8 => (0u64..5).prop_map(|n| format!("c/{n}")),
        1 => prop::sample::select(&[".zarray", "c", "odd", "c/0/0", "c/00"][..]).prop_map(str::to_owned),
    ];
    (folder, name).prop_map(|(folder, name)| format!("{folder}{name}"))
}

fn entries() -> impl Strategy<Value = (String, Bytes)> {
    keys().prop_flat_map(|key| {
        let document = prop_oneof![
            4 => (1u64..9).prop_map(|n| array(&[n])),
            1 => (1u64..9).prop_map(|n| array_with(&[n], &json!("uint16"))),
            4 => (0u64..3).prop_map(|n| group(&json!({ "n": n }))),
            1 => Just(Bytes::from_static(b"{}")),
        ];
        let chunk = prop_oneof![
            8 => (1usize..300, any::<u64>()).prop_map(|(len, seed)| noise(len, seed).into()),
            1 => Just(Bytes::new()),
        ];
        let value = match key.ends_with("zarr.json") {
            true => document.boxed(),
            false => chunk.boxed(),
        };
        (Just(key), value)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => entries().prop_map(|(key, value)| Step::Set { key, value }),
        2 => entries().prop_map(|(key, value)| Step::SetIfNotExists { key, value }),
        4 => keys().prop_map(|key| Step::Delete { key }),
        1 => (0..FOLDERS.len(), any::<bool>())
            .prop_map(|(folder, inside)| Step::DeleteDir { folder, inside }),
        3 => Just(Step::Commit),
    ];
    prop::collection::vec(step, 1..50)
}

proptest! {
    #![proptest_config(cases(repetitions(150, 20)))]

    #[test]
    fn keys_behave_like_a_map(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut runner = Runner::new().await;
            for step in &steps {
                runner.take(step).await;
            }
            sound(&runner.repo).await;
        });
    }
}
