//! `NNNNN.mem`: what was written last and is in no table yet.
//!
//! A server that is closed writes its memtables to tables and deletes their logs; one that runs, or
//! died, has logs. Entries of a transaction count once its end is there.
//!
//! A log is written into a file of zeros, and a server that finds a torn one cuts it between transactions. So
//! zeros follow where a server died, and a file that ends within an entry or a transaction was cut by others.

use std::cmp::Ordering;

use bytes::Bytes;
use chunkyard_store::{Error, Result, Store};

use super::damage::{Damage, Skipped};
use super::key;
use super::log::{self, HEAD_BYTES, LogEntry, Parsed};
use super::record::{Record, TRANSACTION, TRANSACTION_END};
use super::tear::{Behind, Look};
use super::wire::corrupt;

/// How much of a log is read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// A version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemoryEntry {
    pub(super) user: Vec<u8>,
    pub(super) version: u64,
    pub(super) record: Record,
}

impl MemoryEntry {
    /// By key, newer versions first.
    fn order(&self, other: &Self) -> Ordering {
        self.user.cmp(&other.user).then(other.version.cmp(&self.version))
    }
}

/// What a log says, sorted.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    pub(super) entries: Vec<MemoryEntry>,
    /// Why reading ended before the log did, and where.
    pub(super) torn: Option<(u64, &'static str)>,
}

/// Reads a log. `is_plain` says that the store has no keys to encrypt with.
pub(super) async fn open(
    store: &Store,
    file: &str,
    size: u64,
    is_plain: bool,
    damage: &Damage,
) -> Result<Replay> {
    let mut replay = Replay::new(file);
    let head = store.get_range(file, 0..size.min(HEAD_BYTES)).await?;
    match is_plain {
        true => log::check_plain_head(file, &head).or_else(|error| {
            damage.meet(error, Skipped { bytes: Some(0..HEAD_BYTES), ..Skipped::file(file) })
        })?,
        false => log::check_head(file, &head)?,
    }
    let (mut at, mut window) = (size.min(HEAD_BYTES), Vec::new());
    while !replay.is_done() {
        // A large entry is read in few steps.
        let more = PIECE_BYTES.max(window.len() as u64).min(size - at);
        window.extend_from_slice(&store.get_range(file, at..at + more).await?);
        at += more;
        let used = replay.feed(&window, at == size);
        window.drain(..used);
    }
    Ok(replay)
}

/// Reads a log step by step.
#[derive(Debug)]
pub(super) struct Replay {
    file: String,
    /// Where the next entry begins.
    at: u64,
    /// The transaction that has begun, and its entries.
    transaction: Option<(u64, Vec<MemoryEntry>)>,
    /// Where that transaction begins.
    began_at: u64,
    entries: Vec<MemoryEntry>,
    torn: Option<(u64, &'static str)>,
    /// The look behind the last entry that counts.
    look: Option<Look>,
    /// Bytes before what it looks at.
    skip: u64,
    damaged: Option<Error>,
    done: bool,
}

impl Replay {
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            at: HEAD_BYTES,
            transaction: None,
            began_at: HEAD_BYTES,
            entries: Vec::new(),
            torn: None,
            look: None,
            skip: 0,
            damaged: None,
            done: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Where the entry begins that was not taken.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Takes the entries at the start of `window`, which is the rest of the log if `is_last`, and says
    /// how many bytes it needs no longer.
    pub(super) fn feed(&mut self, window: &[u8], is_last: bool) -> usize {
        let mut used = 0;
        while !self.done {
            let rest = window.get(used..).unwrap_or_default();
            if let Some(look) = &mut self.look {
                let skipped = rest.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
                self.skip -= skipped as u64;
                used += skipped;
                let rest = rest.get(skipped..).unwrap_or_default();
                let (looked, found) = look.feed(rest, is_last);
                used += looked;
                match found {
                    None => break,
                    Some(found) => self.found_behind(found),
                }
                continue;
            }
            match log::entry(rest) {
                Parsed::Short if !is_last => break,
                Parsed::Short if rest.is_empty() && self.transaction.is_none() => self.done = true,
                Parsed::Short => self.cut(rest.len()),
                Parsed::Bad => self.stop("there is no entry", 1),
                Parsed::End => self.end(),
                Parsed::Entry(entry) if !entry.is_intact => {
                    self.stop("an entry has a wrong checksum", 1);
                }
                Parsed::Entry(entry) => {
                    match self.take(&entry) {
                        Ok(()) => {
                            used += entry.len;
                            self.at += entry.len as u64;
                        }
                        // Badger ends a log before such an entry.
                        Err(why) => self.stop(why, entry.len as u64),
                    }
                }
            }
        }
        used
    }

    /// The entry counts, or the log ends before it.
    fn take(&mut self, entry: &LogEntry<'_>) -> Result<(), &'static str> {
        let Some((user, version)) = key::split(entry.key) else {
            return Err("a key has no time");
        };
        let record = Record {
            meta: entry.meta,
            expires_at: entry.expires_at,
            value: Bytes::copy_from_slice(entry.value),
        };
        let kept = MemoryEntry { user: user.to_vec(), version, record };
        if entry.meta & TRANSACTION != 0 {
            match &mut self.transaction {
                None => {
                    self.began_at = self.at;
                    self.transaction = Some((version, vec![kept]));
                }
                Some((time, entries)) if *time == version => entries.push(kept),
                Some(_) => return Err("a transaction begins within another"),
            }
        } else if entry.meta & TRANSACTION_END != 0 {
            let time = std::str::from_utf8(entry.value).ok().and_then(|text| text.parse().ok());
            match self.transaction.take() {
                Some((began, entries)) if time == Some(began) => self.entries.extend(entries),
                other => {
                    self.transaction = other;
                    return Err("a transaction ends that did not begin");
                }
            }
        } else if self.transaction.is_some() {
            return Err("a transaction has no end");
        } else {
            self.entries.push(kept);
        }
        Ok(())
    }

    /// The file ends where no server ends it, so many bytes behind the last whole entry.
    fn cut(&mut self, more: usize) {
        let (what, expected) = match more {
            0 => ("the transaction", "its end"),
            _ => ("the entry", "all of it"),
        };
        let from = if more == 0 { self.began_at } else { self.at };
        let found = format!("the end of the file at {}", self.at.saturating_add(more as u64));
        self.damaged =
            Some(corrupt(&self.file, format!("{what} at offset {from}"), expected, found));
        self.done = true;
    }

    /// The end of what was written, before zeros.
    fn end(&mut self) {
        match self.transaction {
            Some(_) => self.stop("a transaction has no end", 0),
            None => self.look = Some(Look::from(self.at)),
        }
    }

    /// The log is torn, unless entries follow behind so many bytes.
    fn stop(&mut self, why: &'static str, behind: u64) {
        // Nothing of a transaction counts without its end.
        let at = if self.transaction.is_some() { self.began_at } else { self.at };
        self.torn = Some((at, why));
        self.skip = behind;
        self.look = Some(Look::from(self.at.saturating_add(behind)));
    }

    fn found_behind(&mut self, found: Behind) {
        let why = self.torn.map(|(_, why)| why);
        match (found, why) {
            (Behind::Entry(next), why) => {
                let what = format!("the log at offset {}", self.at);
                let expected = format!("an entry, as one follows at offset {next}");
                let found = why.unwrap_or("zeros").to_owned();
                self.torn = None;
                self.damaged = Some(corrupt(&self.file, what, expected, found));
            }
            (Behind::Other, None) => {
                self.torn = Some((self.at, "zeros are followed by other bytes"));
            }
            _ => {}
        }
        self.done = true;
    }

    /// What was read. The error is about an entry that is damaged though others follow it.
    pub(super) fn finish(self) -> (Memtable, Option<Error>) {
        let mut entries = self.entries;
        // Of two entries with the same key and time the later one counts.
        entries.reverse();
        entries.sort_by(MemoryEntry::order);
        entries.dedup_by(|later, first| later.order(first).is_eq());
        (Memtable { entries, torn: self.torn }, self.damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(meta: u8, user: &str, version: u64, value: &str) -> Vec<u8> {
        let stored = [user.as_bytes(), &(!version).to_be_bytes()].concat();
        let head = log::known_head(&stored, value.len() as u64, 0);
        let mut entry = [&[meta, 0], &head[..], value.as_bytes()].concat();
        let crc = crc32c::crc32c(&entry);
        entry.extend(crc.to_be_bytes());
        entry
    }

    fn end(version: u64) -> Vec<u8> {
        entry(TRANSACTION_END, "!badger!txn", version, &version.to_string())
    }

    /// What a log says, read at once and byte by byte: `key@version=value`, and where it is torn.
    fn replayed(parts: &[Vec<u8>]) -> (Vec<String>, Option<u64>) {
        let bytes = parts.concat();
        let read = |piece: usize| {
            let (entries, torn) = crate::badger::hostile::replay("a.mem", &bytes, piece).unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let one = |(user, version, value): (Vec<u8>, u64, Bytes)| {
                format!("{}@{version}={}", text(&user), text(&value))
            };
            (entries.into_iter().map(one).collect::<Vec<_>>(), torn)
        };
        let read = [read(usize::MAX), read(1)];
        assert_eq!(read[0], read[1]);
        read.into_iter().next().unwrap()
    }

    fn length(parts: &[Vec<u8>]) -> u64 {
        HEAD_BYTES + parts.concat().len() as u64
    }

    #[test]
    fn a_transaction_counts_once_its_end_is_there() {
        let parts = [
            entry(0, "b", 3, "one"),
            entry(TRANSACTION, "a", 5, "two"),
            entry(TRANSACTION, "b", 5, "three"),
            end(5),
            entry(TRANSACTION, "c", 6, "four"),
        ];
        let all = ["a@5=two", "b@5=three", "b@3=one"];
        assert_eq!(replayed(&parts[..4]), (all.map(str::to_owned).to_vec(), None));
        // The last transaction did not end, whether zeros follow or nothing.
        let torn = Some(length(&parts[..4]));
        let zeros = || vec![0; 64];
        let unfinished = [&parts[..], &[zeros()]].concat();
        assert_eq!(replayed(&unfinished), (all.map(str::to_owned).to_vec(), torn));
        let unfinished = [&parts[..3], &[zeros()]].concat();
        assert_eq!(replayed(&unfinished), (vec!["b@3=one".to_owned()], Some(length(&parts[..1]))));
        assert_eq!(replayed(&[&parts[..4], &[vec![0; 64]]].concat()).1, None);
    }

    #[test]
    fn a_file_that_ends_within_an_entry_or_a_transaction_was_cut() {
        let parts = [
            entry(0, "a", 1, "one"),
            entry(TRANSACTION, "b", 2, "two"),
            entry(TRANSACTION, "c", 2, "three"),
            end(2),
        ];
        let all = parts.concat();
        let (first, rest) = (parts[0].len(), all.len() - parts[3].len());
        for len in 0..=all.len() {
            for piece in [1, usize::MAX] {
                let read = crate::badger::hostile::replay("a.mem", &all[..len], piece);
                if [0, first, all.len()].contains(&len) {
                    assert_eq!(read.unwrap().1, None, "{len}");
                    continue;
                }
                let text = read.unwrap_err().to_string();
                let at = match len {
                    _ if len < first => 0,
                    // Whole entries of a transaction without its end.
                    _ if len == rest || len == first + parts[1].len() => first,
                    _ if len < first + parts[1].len() => first,
                    _ if len < rest => first + parts[1].len(),
                    _ => rest,
                };
                let at = HEAD_BYTES + at as u64;
                let end = HEAD_BYTES + len as u64;
                assert!(text.contains(&format!("at offset {at}:")), "{len}: {text}");
                assert!(text.contains(&format!("the end of the file at {end}")), "{len}: {text}");
            }
        }
    }

    #[test]
    fn transactions_that_do_not_fit_end_the_log() {
        let begun = entry(TRANSACTION, "a", 5, "x");
        for other in [entry(TRANSACTION, "b", 6, "y"), end(6), entry(0, "b", 5, "z")] {
            assert_eq!(replayed(&[begun.clone(), other]), (vec![], Some(HEAD_BYTES)));
        }
        assert_eq!(replayed(&[end(6)]), (vec![], Some(HEAD_BYTES)));
    }

    #[test]
    fn of_the_same_key_and_time_the_later_counts() {
        let parts = [entry(0, "a", 1, "first"), entry(0, "a", 1, "second")];
        assert_eq!(replayed(&parts), (vec!["a@1=second".to_owned()], None));
    }

    #[test]
    fn an_entry_that_is_bent_is_torn_at_the_end_and_damaged_before_others() {
        let parts =
            [entry(0, "a", 1, "first"), entry(0, "b", 1, "second"), entry(0, "c", 1, "third")];
        let bent = |at: usize| {
            let mut parts = parts.to_vec();
            let last = parts[at].len() - 6;
            parts[at][last] ^= 1;
            parts
        };
        let expected = vec!["a@1=first".to_owned(), "b@1=second".to_owned()];
        assert_eq!(replayed(&bent(2)), (expected, Some(length(&parts[..2]))));
        let bytes = bent(1).concat();
        let error = crate::badger::hostile::replay("a.mem", &bytes, 7).unwrap_err().to_string();
        let at = length(&parts[..1]);
        assert!(error.contains("a.mem") && error.contains(&format!("at offset {at}")), "{error}");
    }
}
