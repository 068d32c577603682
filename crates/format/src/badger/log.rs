//! Entries of value logs and of memtable logs.
//!
//! ```text
//!  u64 number of the encryption key │ 12 random bytes                                      head of a file
//!  u8 meta │ u8 meta of the user │ uvarint key length │ uvarint value length │ uvarint expires_at
//!          │ key with its time │ value │ u32 CRC-32C of everything before, big-endian       an entry
//! ```

use chunkyard_store::{Error, Result};

use super::wire::{byte, corrupt, push_uvarint, take, uvarint, uvarint_len};

/// Bytes before the first entry of a log.
pub(super) const HEAD_BYTES: u64 = 20;

/// Bytes of an entry before its lengths.
pub(super) const META_BYTES: u64 = 2;

/// Bytes of the checksum behind an entry.
pub(super) const CRC_BYTES: u64 = 4;

/// Badger takes a longer key for the end of a log.
const KEY_BYTES_MAX: u64 = 1 << 16;

/// Badger puts values of more than 1 MiB into value logs, whatever its settings are.
const VALUE_BYTES_MAX: u64 = 4 << 20;

/// Refuses a log that is encrypted.
pub(super) fn check_head(file: &str, head: &[u8]) -> Result<()> {
    match head.first_chunk::<8>().map(|id| u64::from_be_bytes(*id)) {
        None | Some(0) => Ok(()),
        Some(id) => {
            Err(Error::unsupported(format!("an encrypted Badger store ({file} has the key {id})")))
        }
    }
}

/// Refuses a log with a key in a store that has no keys.
pub(super) fn check_plain_head(file: &str, head: &[u8]) -> Result<()> {
    match head.first_chunk::<8>().map(|id| u64::from_be_bytes(*id)) {
        None | Some(0) => Ok(()),
        Some(id) => {
            let expected = "0, as the store has no keys";
            Err(corrupt(file, "the number of the encryption key", expected, id.to_string()))
        }
    }
}

/// An entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// What it is.
    pub meta: u8,
    /// When its value expires, in seconds since 1970; 0 for never.
    pub expires_at: u64,
    /// The key with its time.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Length of the whole entry, with its checksum.
    pub len: usize,
    /// Whether it has its checksum.
    pub is_intact: bool,
}

/// What the bytes at a place of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// An entry, which may be damaged.
    Entry(LogEntry<'a>),
    /// Zeros: nothing was written here.
    End,
    /// The start of an entry.
    Short,
    /// No entry.
    Bad,
}

/// The entry of a memtable log that bytes begin with.
pub fn entry(bytes: &[u8]) -> Parsed<'_> {
    match measure(bytes) {
        Parsed::Entry(entry) => {
            Parsed::Entry(LogEntry { is_intact: is_intact(bytes, entry.len), ..entry })
        }
        other => other,
    }
}

/// Whether bytes begin with an entry of this length that has its checksum.
pub(super) fn is_intact(bytes: &[u8], len: usize) -> bool {
    let entry = bytes.get(..len).and_then(|entry| entry.split_last_chunk::<4>());
    entry.is_some_and(|(head, crc)| crc32c::crc32c(head) == u32::from_be_bytes(*crc))
}

/// The same as [`entry`], by its lengths alone: nothing is intact.
pub(super) fn measure(bytes: &[u8]) -> Parsed<'_> {
    let mut rest = bytes;
    let head = |rest: &mut &[u8]| {
        let meta = byte(rest)?;
        byte(rest)?;
        Some((meta, uvarint(rest)?, uvarint(rest)?, uvarint(rest)?))
    };
    let Some((meta, key_len, value_len, expires_at)) = head(&mut rest) else {
        // The longest head has two bytes and three numbers.
        return if bytes.len() < 32 { Parsed::Short } else { Parsed::Bad };
    };
    if key_len == 0 {
        return Parsed::End;
    }
    if key_len > KEY_BYTES_MAX || value_len > VALUE_BYTES_MAX {
        return Parsed::Bad;
    }
    let body = |rest: &mut &'_ [u8]| -> Option<(usize, usize)> {
        let key = take(rest, usize::try_from(key_len).ok()?)?.len();
        Some((key, take(rest, usize::try_from(value_len).ok()?)?.len()))
    };
    let start = bytes.len() - rest.len();
    let Some((key, value)) = body(&mut rest) else { return Parsed::Short };
    let covered = start + key + value;
    let (Some(key), Some(value), Some(_)) = (
        bytes.get(start..start + key),
        bytes.get(start + key..covered),
        take(&mut rest, CRC_BYTES as usize),
    ) else {
        return Parsed::Short;
    };
    let len = bytes.len() - rest.len();
    Parsed::Entry(LogEntry { meta, expires_at, key, value, len, is_intact: false })
}

/// The bytes of an entry between its meta bytes and its value: lengths, expiry, key.
pub(super) fn known_head(key: &[u8], value_len: u64, expires_at: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(key.len() + 16);
    push_uvarint(&mut head, key.len() as u64);
    push_uvarint(&mut head, value_len);
    push_uvarint(&mut head, expires_at);
    head.extend_from_slice(key);
    head
}

/// The length of the value in an entry of this length; `None` if there is no such entry.
pub(super) fn value_len(entry_len: u64, key_len: u64, expires_at: u64) -> Option<u64> {
    let around = META_BYTES + uvarint_len(key_len) + uvarint_len(expires_at) + key_len + CRC_BYTES;
    let rest = entry_len.checked_sub(around)?;
    // The length itself takes one to five bytes.
    (1..=5).find_map(|bytes| rest.checked_sub(bytes).filter(|&len| uvarint_len(len) == bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry as Badger writes it.
    fn written(meta: u8, key: &[u8], value: &[u8], expires_at: u64) -> Vec<u8> {
        let head = known_head(key, value.len() as u64, expires_at);
        let mut entry = [&[meta, 0], &head[..], value].concat();
        let crc = crc32c::crc32c(&entry);
        entry.extend(crc.to_be_bytes());
        entry
    }

    #[test]
    fn the_length_of_a_value_follows_from_the_length_of_its_entry() {
        for len in [0, 1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 70_000] {
            for (key, expires_at) in [(&b"k"[..], 0), (&[7; 200], u64::MAX)] {
                let entry = written(0, key, &vec![1; len], expires_at);
                let found = value_len(entry.len() as u64, key.len() as u64, expires_at);
                assert_eq!(found, Some(len as u64));
            }
        }
        // 127 bytes need a length of one byte, 128 one of two: nothing has a length between.
        let between = written(0, b"k", &[0; 127], 0).len() as u64 + 1;
        assert_eq!(value_len(between, 1, 0), None);
        assert_eq!(value_len(3, 1, 0), None);
    }

    #[test]
    fn an_entry_is_read_as_it_is_written_and_damage_is_seen() {
        let bytes = written(0x42, b"a key", b"a value", 9);
        let Parsed::Entry(read) = entry(&bytes) else { panic!("no entry") };
        assert_eq!((read.meta, read.expires_at, read.len), (0x42, 9, bytes.len()));
        assert_eq!((read.key, read.value, read.is_intact), (&b"a key"[..], &b"a value"[..], true));
        for at in 0..bytes.len() {
            assert_eq!(entry(&bytes[..at]), Parsed::Short, "{at}");
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            let intact = matches!(entry(&bent), Parsed::Entry(LogEntry { is_intact: true, .. }));
            assert!(!intact, "{at}");
        }
        assert_eq!(entry(&[0; 40]), Parsed::End);
        assert_eq!(entry(&[0xff; 40]), Parsed::Bad);
    }
}
