//! What lies behind the place where a log breaks off.
//!
//! A server that dies leaves a tear with zeros behind it. Where a whole entry follows, the log does not end there:
//! what is between was damaged, be it by a bit in the length of an entry.

use super::log::{self, Parsed};

/// How far a tear is looked behind: twice what a server allocates for a log.
const LOOK_BYTES_MAX: u64 = 256 << 20;
/// Bytes that are summed in looking. Only bytes that are made to look like entries need as many.
const SUM_BYTES_MAX: u64 = 1 << 30;
/// Zeros that are passed over at once.
const ZEROS: [u8; 4096] = [0; 4096];
/// Every key has a time behind it.
const KEY_BYTES_MIN: usize = 9;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// Nothing but zeros.
    Zeros,
    /// Bytes that are no entry.
    Other,
    /// An entry, at this offset.
    Entry(u64),
}

/// A look behind a tear, piece by piece.
#[derive(Debug)]
pub(super) struct Look {
    /// Where the next byte is.
    at: u64,
    end: u64,
    summed: u64,
    is_zero: bool,
}

impl Look {
    pub(super) fn from(at: u64) -> Self {
        Self { at, end: at.saturating_add(LOOK_BYTES_MAX), summed: 0, is_zero: true }
    }

    /// Looks through `window`, which is the rest of the log if `is_last`: how many bytes are needed no longer, and
    /// what was found once that is known.
    pub(super) fn feed(&mut self, window: &[u8], is_last: bool) -> (usize, Option<Behind>) {
        let mut used = 0;
        while let Some(rest) = window.get(used..).filter(|rest| !rest.is_empty()) {
            let step = match rest.starts_with(&ZEROS) {
                // An entry may begin with the last two of them.
                true => ZEROS.len() - 2,
                false => {
                    match self.is_entry(rest) {
                        Some(true) => return (used, Some(Behind::Entry(self.at))),
                        Some(false) => {}
                        None if is_last => {}
                        None => return (used, None),
                    }
                    self.is_zero &= rest.first() == Some(&0);
                    1
                }
            };
            used += step;
            self.at += step as u64;
            if self.at >= self.end {
                return (used, Some(self.other()));
            }
        }
        (used, is_last.then(|| self.other()))
    }

    fn other(&self) -> Behind {
        if self.is_zero { Behind::Zeros } else { Behind::Other }
    }

    /// Whether a whole entry is here; `None` if more bytes are needed to tell.
    fn is_entry(&mut self, bytes: &[u8]) -> Option<bool> {
        // The key has a length, which most bytes of a hole are not.
        if bytes.get(2)? == &0 {
            return Some(false);
        }
        match log::measure(bytes) {
            Parsed::Short => None,
            Parsed::Entry(entry) if entry.key.len() >= KEY_BYTES_MIN => {
                self.summed = self.summed.saturating_add(entry.len as u64);
                Some(self.summed > SUM_BYTES_MAX || log::is_intact(bytes, entry.len))
            }
            _ => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Vec<u8> {
        let head = log::known_head(b"some key 1234567", 5, 0);
        let mut entry = [&[0x40, 0], &head[..], b"value"].concat();
        let crc = crc32c::crc32c(&entry);
        entry.extend(crc.to_be_bytes());
        entry
    }

    fn look(bytes: &[u8], piece: usize) -> Behind {
        let mut look = Look::from(100);
        let (mut from, mut to) = (0, 0usize);
        loop {
            to = bytes.len().min(to.saturating_add(piece));
            let (used, found) = look.feed(&bytes[from..to], to == bytes.len());
            from += used;
            if let Some(found) = found {
                return found;
            }
        }
    }

    #[test]
    fn an_entry_is_found_wherever_it_is() {
        for before in [vec![], vec![7; 3], vec![0; 10_000], [vec![0; 5000], vec![1, 2, 3]].concat()]
        {
            for after in [vec![], vec![0; 5000]] {
                let bytes = [&before[..], &entry(), &after].concat();
                for piece in [1000, usize::MAX] {
                    assert_eq!(look(&bytes, piece), Behind::Entry(100 + before.len() as u64));
                }
            }
        }
        let mut bent = entry();
        bent[6] ^= 1;
        assert_eq!(look(&bent, usize::MAX), Behind::Other);
        assert_eq!(look(&[0; 9000], 7), Behind::Zeros);
        assert_eq!(look(&[], 1), Behind::Zeros);
    }
}
