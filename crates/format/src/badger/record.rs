//! What a key stands for: a value, a place in a value log, or nothing any more.

use bytes::Bytes;

use super::wire::{byte, le_u32, uvarint};

/// The key is deleted.
const DELETED: u8 = 0x01;
/// The value is in a value log, and here is where.
const POINTER: u8 = 0x02;
/// Written by a transaction.
pub(super) const TRANSACTION: u8 = 0x40;
/// The last entry of a transaction in a log.
pub(super) const TRANSACTION_END: u8 = 0x80;

/// A version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) meta: u8,
    /// In seconds since 1970; 0 for never.
    pub(super) expires_at: u64,
    pub(super) value: Bytes,
}

/// Where in a value log an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) log: u32,
    /// Of the whole entry, with its checksum.
    pub(super) len: u32,
    pub(super) offset: u32,
}

impl Record {
    /// A record of a table: `u8 meta │ u8 meta of the user │ uvarint expires_at │ value`.
    pub(super) fn parse(bytes: &Bytes) -> Option<Self> {
        let mut rest = &bytes[..];
        let meta = byte(&mut rest)?;
        byte(&mut rest)?;
        let expires_at = uvarint(&mut rest)?;
        let value = bytes.slice(bytes.len() - rest.len()..);
        Some(Self { meta, expires_at, value })
    }

    pub(super) fn is_gone(&self, now: u64) -> bool {
        self.meta & DELETED != 0 || (self.expires_at != 0 && self.expires_at <= now)
    }

    /// The place of the value, if it is in a value log; the inner `None` is a pointer of a wrong
    /// length.
    pub(super) fn pointer(&self) -> Option<Option<Pointer>> {
        (self.meta & POINTER != 0).then(|| Pointer::parse(&self.value))
    }
}

impl Pointer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (log, len, offset) = (le_u32(&mut rest)?, le_u32(&mut rest)?, le_u32(&mut rest)?);
        rest.is_empty().then_some(Self { log, len, offset })
    }
}
