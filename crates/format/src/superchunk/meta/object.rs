//! A JSON object whose members are taken out one by one, with errors that name the file and the key.

use chunkyard_array::non_finite;
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value};

use super::seal::{self, SEAL};
use crate::superchunk::corrupt;

/// Bytes of the longest file that is read: no real meta file is longer.
const FILE_BYTES_MAX: usize = 64 << 20;

/// The members of an object that are not taken yet.
pub(super) struct Object<'a> {
    file: &'a str,
    /// The keys above it, each followed by a dot.
    above: String,
    map: Map<String, Value>,
    /// Whether the file ends with a valid checksum.
    sealed: bool,
}

impl<'a> Object<'a> {
    /// The one object of a file.
    pub(super) fn parse(file: &'a str, bytes: &[u8]) -> Result<Self> {
        let mut object = Self::read(file, bytes)?;
        if object.map.shift_remove(SEAL).is_some() {
            seal::check(file, bytes)?;
            object.sealed = true;
        }
        Ok(object)
    }

    /// The same, without a look at the checksum.
    pub(super) fn salvage(file: &'a str, bytes: &[u8]) -> Result<Self> {
        let mut object = Self::read(file, bytes)?;
        object.map.shift_remove(SEAL);
        Ok(object)
    }

    fn read(file: &'a str, bytes: &[u8]) -> Result<Self> {
        if bytes.len() > FILE_BYTES_MAX {
            let expected = format!("at most {FILE_BYTES_MAX} bytes");
            return Err(corrupt(file, "its length", expected, bytes.len()));
        }
        let value =
            non_finite::parse(bytes).map_err(|cause| corrupt(file, "its text", "JSON", cause))?;
        Self::new(file, String::new(), value)
    }

    /// Whether the file ends with a valid checksum.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed
    }

    fn new(file: &'a str, above: String, value: Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { file, above, map, sealed: false }),
            other => {
                let whole = above.trim_end_matches('.');
                let what = if whole.is_empty() { "its text" } else { whole };
                Err(corrupt(file, what, "an object", shown(&other)))
            }
        }
    }

    /// Whether a key has a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// Takes the value of a key; `null` counts as missing.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    /// A member that may be missing, converted by `read`.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(self.wrong(key, expected, shown(&value))),
        }
    }

    /// A member that must not be missing.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T> {
        self.optional(key, expected, read)?.ok_or_else(|| self.wrong(key, expected, "none"))
    }

    /// A number that may be missing.
    pub(super) fn optional_u64(&mut self, key: &str) -> Result<Option<u64>> {
        self.optional(key, "a whole number from 0 to 2^64 - 1", Value::as_u64)
    }

    /// A text that may be missing.
    pub(super) fn optional_text(&mut self, key: &str) -> Result<Option<String>> {
        self.optional(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// An object within this one.
    pub(super) fn object(&mut self, key: &str) -> Result<Option<Object<'a>>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        Self::new(self.file, format!("{}{key}.", self.above), value).map(Some)
    }

    /// The objects of a list within this one.
    pub(super) fn objects(&mut self, key: &str) -> Result<Vec<Object<'a>>> {
        let items = self.required(key, "a list", |value| value.as_array().cloned())?;
        let objects = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| Self::new(self.file, format!("{}{key}[{at}].", self.above), item));
        objects.collect()
    }

    /// An error about the value of a key.
    pub(super) fn wrong(&self, key: &str, expected: &str, found: impl ToString) -> Error {
        corrupt(self.file, &format!("{}{key}", self.above), expected, found)
    }

    /// The keys that are left, in order.
    pub(super) fn keys(&self) -> Vec<String> {
        self.map.keys().cloned().collect()
    }

    /// The members that are left.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.map
    }
}

/// The beginning of a value, for a message.
fn shown(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
