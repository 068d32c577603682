//! `meta/journal`: new chunks that are about to be written over old ones.
//!
//! ```text
//!  {"entries": [{"column", "chunk", "file", "position", "encoded", "bytes"}, …]} \n
//!  the bytes of each entry, one after the other: a chunk and its digest
//!  SHA-256 of all that, 32 bytes
//! ```
//!
//! The journal is the commit: once it is complete and durable, the chunks in it count. The next writer
//! puts them where they belong, as often as it takes; a reader takes them from the journal.
//! A journal without entries only says that a file is being replaced by another.

use bytes::Bytes;
use chunkyard_store::{Digest, Error, Result, Store};
use serde_json::{Value, json};

use crate::publish::{publish, withdraw};
use crate::superchunk::access::Access;
use crate::superchunk::read::directory::get;

pub(crate) const JOURNAL: &str = "meta/journal";

/// The content of `meta/journal`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Journal {
    pub(crate) entries: Vec<Entry>,
}

/// A chunk that is written over an old one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Path of its column.
    pub(crate) column: String,
    pub(crate) chunk: u64,
    /// The file, and where in it.
    pub(crate) file: String,
    pub(crate) position: u64,
    /// Bytes of the chunk without its digest.
    pub(crate) encoded: u64,
    /// The chunk and its digest.
    pub(crate) bytes: Bytes,
}

impl Journal {
    /// The bytes of the file.
    pub(crate) fn render(&self) -> Vec<u8> {
        let entries = self.entries.iter().map(|entry| {
            json!({
                "column": entry.column,
                "chunk": entry.chunk,
                "file": entry.file,
                "position": entry.position,
                "encoded": entry.encoded,
                "bytes": entry.bytes.len(),
            })
        });
        let head = json!({ "entries": entries.collect::<Vec<Value>>() });
        let mut out = head.to_string().into_bytes();
        out.push(b'\n');
        self.entries.iter().for_each(|entry| out.extend_from_slice(&entry.bytes));
        let digest = Digest::Sha256.of(&out);
        out.extend(digest);
        out
    }

    /// Reads the file; `None` if it is torn: then none of its chunks count.
    pub(crate) fn parse(file: &Bytes) -> Option<Self> {
        let end = file.len().checked_sub(Digest::Sha256.bytes())?;
        let (said, digest) = (file.get(..end)?, file.get(end..)?);
        if Digest::Sha256.of(said)[..] != *digest {
            return None;
        }
        let line = said.iter().position(|byte| *byte == b'\n')?;
        let head: Value = serde_json::from_slice(said.get(..line)?).ok()?;
        let mut at = line.checked_add(1)?;
        let mut entries = Vec::new();
        for entry in head.get("entries")?.as_array()? {
            let text = |key: &str| Some(entry.get(key)?.as_str()?.to_owned());
            let number = |key: &str| entry.get(key)?.as_u64();
            let next = at.checked_add(usize::try_from(number("bytes")?).ok()?)?;
            said.get(at..next)?;
            let encoded = number("encoded").filter(|encoded| *encoded <= (next - at) as u64)?;
            entries.push(Entry {
                column: text("column")?,
                chunk: number("chunk")?,
                file: text("file")?,
                position: number("position")?,
                encoded,
                bytes: file.slice(at..next),
            });
            at = next;
        }
        (at == end).then_some(Self { entries })
    }
}

impl Entry {
    /// The chunk without its digest.
    pub(crate) fn encoded(&self) -> Bytes {
        self.bytes.slice(..usize::try_from(self.encoded).unwrap_or(0).min(self.bytes.len()))
    }
}

/// The journal of a dataset, if it has a complete one.
pub(crate) async fn read(store: &Store) -> Result<Option<Journal>> {
    // Without writes in place there is no need for a journal.
    if !store.writes_in_place() {
        return Ok(None);
    }
    Ok(get(store, JOURNAL).await?.and_then(|object| Journal::parse(&object.bytes)))
}

impl Access {
    /// Writes a journal; from then on it counts.
    pub(crate) async fn publish_journal(&self, journal: &Journal) -> Result<()> {
        publish(&self.store, vec![(JOURNAL.to_owned(), journal.render().into())]).await
    }

    /// Writes the chunks of a journal over the old ones; durable when this returns.
    pub(crate) async fn replay(&self, journal: &Journal) -> Result<()> {
        let mut files: Vec<String> = Vec::new();
        for entry in &journal.entries {
            let size = self.store.head(&entry.file).await?.size;
            let end = entry.position.checked_add(entry.bytes.len() as u64);
            if end.is_none_or(|end| end > size) {
                return Err(Error::Corrupt {
                    file: entry.file.clone(),
                    what: format!("chunk {} of {}, in {JOURNAL}", entry.chunk, entry.column),
                    expected: format!("{} bytes at {}", entry.bytes.len(), entry.position),
                    found: format!("{size} bytes in all"),
                });
            }
            self.store.write_at(&entry.file, entry.position, vec![entry.bytes.clone()]).await?;
            files.push(entry.file.clone());
        }
        files.sort_unstable();
        files.dedup();
        match files.is_empty() {
            true => Ok(()),
            false => self.store.sync(&files).await,
        }
    }

    /// Finishes the changes of a writer that died; whether there were any.
    pub(crate) async fn finish_changes(&self) -> Result<bool> {
        let Some(object) = get(&self.store, JOURNAL).await? else { return Ok(false) };
        if let Some(journal) = Journal::parse(&object.bytes) {
            self.replay(&journal).await?;
        }
        Ok(true)
    }

    /// Removes the journal; durable when this returns.
    pub(crate) async fn withdraw_journal(&self) -> Result<()> {
        withdraw(&self.store, &[JOURNAL.to_owned()]).await
    }

    /// Whether a writer is changing chunks, or died while it did.
    pub(crate) async fn is_changing(&self) -> bool {
        self.store.head(JOURNAL).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let entry = |chunk: u64, bytes: &'static [u8]| Entry {
            column: "/x".into(),
            chunk,
            file: "data/x/__1__.bin".into(),
            position: 7 * chunk,
            encoded: bytes.len() as u64 - 1,
            bytes: Bytes::from_static(bytes),
        };
        Journal { entries: vec![entry(3, b"abc"), entry(4, b"\n\n")] }
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        for journal in [journal(), Journal::default()] {
            assert_eq!(Journal::parse(&journal.render().into()), Some(journal));
        }
    }

    #[test]
    fn a_torn_journal_does_not_count() {
        let whole = journal().render();
        for len in 0..whole.len() {
            assert_eq!(Journal::parse(&Bytes::copy_from_slice(&whole[..len])), None);
            let mut other = whole.clone();
            other[len] ^= 1;
            assert_eq!(Journal::parse(&other.into()), None);
        }
    }
}
