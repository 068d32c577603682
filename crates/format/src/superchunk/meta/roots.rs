//! Where parts of a dataset are: `__rootdirs__` of a table, and the list of files elsewhere in `meta/sizes`, of
//! which `meta/shards` is a copy.

use std::collections::{BTreeMap, HashSet};

use chunkyard_store::Result;
use serde_json::Value;

use super::json::{self, list, object, quoted};
use super::object::Object;

/// The columns of a table of BLZ or bcolz, each a dataset in a directory beside this file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RootDirs {
    /// The columns, in order.
    pub names: Vec<String>,
    /// Where BLZ has put each: a path on the writer's machine, of which only the end is useful.
    pub dirs: Option<BTreeMap<String, String>>,
}

impl RootDirs {
    /// Reads the file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self> {
        let mut object = Object::parse(file, bytes)?;
        let names: Vec<String> = object.required("names", "a list of texts", |value| {
            value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        })?;
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(object.wrong("names", "each name once", twice));
        }
        let dirs = object.optional("dirs", "an object of texts", |value| {
            let dirs = value.as_object()?.iter();
            dirs.map(|(name, dir)| Some((name.clone(), dir.as_str()?.to_owned()))).collect()
        })?;
        let found = Self { names, dirs };
        match found.names.iter().find(|name| found.directory(name).is_none()) {
            Some(name) => Err(object.wrong("names", "names of directories", name)),
            None => Ok(found),
        }
    }

    /// The bytes of the file.
    pub fn render(&self) -> Vec<u8> {
        let mut members = vec![("names", list(self.names.iter().map(|name| quoted(name))))];
        if let Some(dirs) = &self.dirs {
            let dirs: Vec<_> =
                dirs.iter().map(|(name, dir)| (name.as_str(), quoted(dir))).collect();
            members.push(("dirs", object(&dirs)));
        }
        json::line(&members)
    }

    /// The directory of a column, beside this file; `None` for a name that leads elsewhere.
    pub fn directory<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let dir = self.dirs.as_ref().and_then(|dirs| dirs.get(name));
        let last = match dir {
            Some(dir) => dir.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?,
            None => name,
        };
        let elsewhere = last.contains(['/', '\\', '\0']) || matches!(last, "" | "." | "..");
        (!elsewhere).then_some(last)
    }
}

/// Which superchunk files are elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Shards {
    /// Files by their numbers, in ascending order and without overlap.
    pub ranges: Vec<ShardRange>,
}

/// Superchunk files that share a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRange {
    /// The first file's number, from 1.
    pub first: u64,
    /// The last file's number.
    pub last: u64,
    /// Where they are.
    pub base: String,
}

impl Shards {
    /// Reads the file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self> {
        Self::take(&mut Object::parse(file, bytes)?, "ranges")
    }

    /// Takes the list under a key out of an object.
    pub(super) fn take(object: &mut Object<'_>, key: &str) -> Result<Self> {
        let mut ranges: Vec<ShardRange> = Vec::new();
        for mut range in object.objects(key)? {
            let before = ranges.last().map_or(0, |range| range.last);
            let expected = format!("a number above {before}");
            let number = |value: &Value| value.as_u64().filter(|&number| number > before);
            let first = range.required("first", &expected, number)?;
            let last = range.required("last", &expected, number)?;
            if last < first {
                return Err(range.wrong("last", &format!("{first} or more"), last));
            }
            let base = range.required("base", "a place", |value| {
                value.as_str().filter(|base| !base.is_empty()).map(str::to_owned)
            })?;
            ranges.push(ShardRange { first, last, base });
        }
        Ok(Self { ranges })
    }

    /// The bytes of the file, with a checksum where the dataset's meta files have one.
    pub fn render(&self, sealed: bool) -> Vec<u8> {
        json::file(&[("ranges", self.render_list())], sealed)
    }

    /// The list without the object around it.
    pub(super) fn render_list(&self) -> String {
        list(self.ranges.iter().map(|range| {
            object(&[
                ("first", range.first.to_string()),
                ("last", range.last.to_string()),
                ("base", quoted(&range.base)),
            ])
        }))
    }

    /// The same list with one more file elsewhere. Neighbours at the same place share a range.
    pub fn with(mut self, number: u64, base: &str) -> Self {
        let at = self.ranges.partition_point(|range| range.last < number);
        let range = ShardRange { first: number, last: number, base: base.to_owned() };
        self.ranges.insert(at, range);
        self.ranges.dedup_by(|next, range| {
            let adjoins = next.base == range.base && range.last.checked_add(1) == Some(next.first);
            if adjoins {
                range.last = next.last;
            }
            adjoins
        });
        self
    }

    /// The place of the superchunk file with this number, if it is elsewhere.
    pub fn base_of(&self, number: u64) -> Option<&str> {
        let at = self.ranges.partition_point(|range| range.last < number);
        self.ranges.get(at).filter(|range| range.first <= number).map(|range| range.base.as_str())
    }
}
