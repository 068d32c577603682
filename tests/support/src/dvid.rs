//! What a real DVID answered, given again: `testdata/dvid/http`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::web::{Reply, Request};

/// Answers of a DVID about one labelmap at one version.
#[derive(Debug, Clone)]
pub struct Recorded {
    directory: PathBuf,
    /// The version.
    pub uuid: String,
    /// The name of the data.
    pub data: String,
}

impl Recorded {
    /// The answers in a folder of `testdata/dvid/http`.
    pub fn open(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid/http");
        let directory = directory.join(name);
        let text = fs::read_to_string(directory.join("version.json")).unwrap();
        let version: serde_json::Value = serde_json::from_str(&text).unwrap();
        let word = |key: &str| version[key].as_str().unwrap().to_owned();
        Self { uuid: word("uuid"), data: word("data"), directory }
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.join(name)).unwrap()
    }

    /// A document of the folder.
    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&self.file(name)).unwrap()
    }

    /// The records of a scale, by x, y and z of the block; none where the scale was not kept.
    pub fn records(&self, scale: u8) -> HashMap<[i32; 3], Vec<u8>> {
        let Ok(bytes) = fs::read(self.directory.join(format!("blocks_s{scale}.bin"))) else {
            return HashMap::new();
        };
        let (mut records, mut rest) = (HashMap::new(), &bytes[..]);
        while !rest.is_empty() {
            let number = |at: usize| i32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let end = 16 + number(12) as usize;
            records.insert([number(0), number(4), number(8)], rest[..end].to_vec());
            rest = &rest[end..];
        }
        records
    }

    /// The records that a request for blocks asks for, in the order of their coordinates.
    pub fn blocks(&self, target: &str) -> Vec<Vec<u8>> {
        let scale = parameter(target, "scale").unwrap().parse().unwrap();
        assert_eq!(parameter(target, "supervoxels").as_deref(), Some("true"));
        assert_eq!(parameter(target, "compression").as_deref(), Some("blocks"));
        let wanted: Wanted = match parameter(target, "blocks") {
            Some(list) => {
                let numbers: Vec<i32> = list.split(',').map(|n| n.parse().unwrap()).collect();
                Box::new(move |at| numbers.chunks(3).any(|block| block == at))
            }
            None => {
                let path = target.split('?').next().unwrap();
                let mut parts = path.rsplit('/').map(|part| -> Vec<i32> {
                    part.split('_').map(|n| n.parse::<i32>().unwrap() / 64).collect()
                });
                let (start, size) = (parts.next().unwrap(), parts.next().unwrap());
                Box::new(move |at| (0..3).all(|i| (start[i]..start[i] + size[i]).contains(&at[i])))
            }
        };
        let found = self.records(scale).into_iter().filter(|(at, _)| wanted(at));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|([x, y, z], _)| [*z, *y, *x]);
        found.into_iter().map(|(_, record)| record).collect()
    }

    /// The body of the right answer to a request; `None` if it was not recorded.
    pub fn body(&self, request: &Request) -> Option<Vec<u8>> {
        let (path, _) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let node = format!("/api/node/{}/{}/", self.uuid, self.data);
        if path == "/api/repos/info" {
            return Some(self.file("repos_info.json"));
        }
        if let Some(repo) = path.strip_prefix("/api/repo/") {
            let (version, what) = repo.split_once('/')?;
            let known = self.uuid.starts_with(version);
            let repos = self.json("repos_info.json");
            let found = repos.as_object().unwrap().values().next().unwrap();
            return (known && what == "info").then(|| found.to_string().into_bytes());
        }
        let labels = || -> Vec<u64> { serde_json::from_slice(&request.body).unwrap() };
        match path.strip_prefix(&node)? {
            "info" => Some(self.file("info.json")),
            "mappings" => Some(self.file("mappings.bin")),
            "indices-compressed" => {
                let all = self.indices();
                let record = |label: u64| {
                    all.get(&label).cloned().unwrap_or([[0; 8], label.to_le_bytes()].concat())
                };
                Some(labels().into_iter().flat_map(record).collect())
            }
            "sizes" => {
                let known: HashMap<u64, u64> = self.labels().into_iter().collect();
                let sizes: Vec<u64> =
                    labels().iter().map(|label| known.get(label).copied().unwrap_or(0)).collect();
                Some(serde_json::to_vec(&sizes).unwrap())
            }
            "listlabels" => {
                let number =
                    |key: &str| -> Option<u64> { parameter(&request.target, key)?.parse().ok() };
                let sizes = parameter(&request.target, "sizes").as_deref() == Some("true");
                let from = number("start").unwrap_or(0);
                let listed = self.labels().into_iter().filter(|(label, _)| *label >= from);
                let listed = listed.take(number("number").unwrap_or(u64::MAX) as usize);
                let bytes = |(label, voxels): (u64, u64)| match sizes {
                    true => [label.to_le_bytes(), voxels.to_le_bytes()].concat(),
                    false => label.to_le_bytes().to_vec(),
                };
                Some(listed.flat_map(bytes).collect())
            }
            other if other == "specificblocks" || other.starts_with("blocks/") => {
                Some(self.blocks(&request.target).concat())
            }
            _ => None,
        }
    }

    /// The right answer, as DVID sends it: in chunks.
    pub fn reply(&self, request: &Request) -> Reply {
        match self.body(request) {
            Some(body) => Reply::chunked(&body),
            None => Reply::whole("400 Bad Request", b"Bad API call"),
        }
    }

    /// All bodies and their voxels, ascending.
    pub fn labels(&self) -> Vec<(u64, u64)> {
        serde_json::from_slice(&self.file("listlabels.json")).unwrap()
    }

    /// The records of label indices, by label.
    pub fn indices(&self) -> HashMap<u64, Vec<u8>> {
        let bytes = self.file("indices.bin");
        let (mut records, mut rest) = (HashMap::new(), &bytes[..]);
        while !rest.is_empty() {
            let number = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().unwrap());
            let end = 16 + number(0) as usize;
            records.insert(number(8), rest[..end].to_vec());
            rest = &rest[end..];
        }
        records
    }
}

/// Whether a request asks for a block.
type Wanted = Box<dyn Fn(&[i32; 3]) -> bool>;

/// A parameter of a query.
fn parameter(target: &str, key: &str) -> Option<String> {
    let (_, query) = target.split_once('?')?;
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value.to_owned()).next()
}
