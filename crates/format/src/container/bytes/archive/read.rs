//! Reads values of an archive, wherever they are.

use bytes::Bytes;

use super::{INLINE_MAX, STRING_LEN, Stop, Table, VEC_LEN, View, corrupt};

/// Bytes of an archive, after checking that they are within it.
pub(crate) fn bytes(view: &dyn View, at: u64, len: u64) -> Result<Bytes, Stop> {
    let table = Table::new(at, len, 1, view.len())?;
    let bytes = view.get(at..at + table.len)?;
    if bytes.len() as u64 != len {
        return Err(corrupt(at, format!("{len} bytes"), format!("{}", bytes.len())));
    }
    Ok(bytes)
}

/// All elements of a table of numbers of `N` bytes.
pub(crate) fn numbers<const N: usize, T>(
    view: &dyn View,
    table: &Table,
    number: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, Stop> {
    let bytes = bytes(view, table.at, table.len.saturating_mul(N as u64))?;
    Ok(bytes.as_chunks::<N>().0.iter().map(|chunk| number(*chunk)).collect())
}

/// All strings of a table.
///
/// Values in an archive share no bytes, so the strings together cannot be longer than the archive.
/// Without this check, a table of many strings that are the same bytes is a bomb.
pub(crate) fn strings(view: &dyn View, table: &Table) -> Result<Vec<String>, Stop> {
    let mut left = view.len();
    let record = Record::read(view, table.at, table.len.saturating_mul(STRING_LEN))?;
    let mut strings = Vec::new();
    for offset in (0..record.bytes.len()).step_by(INLINE_MAX) {
        let string = record.string(offset)?;
        left = left.checked_sub(string.len() as u64).ok_or_else(|| {
            corrupt(table.at, "strings that share no bytes", "more text than there are bytes")
        })?;
        strings.push(string);
    }
    Ok(strings)
}

/// A value of known size, whose pointers can be followed.
pub(crate) struct Record<'a> {
    view: &'a dyn View,
    at: u64,
    bytes: Bytes,
}

impl<'a> Record<'a> {
    /// The value of `len` bytes at a position.
    pub(crate) fn read(view: &'a dyn View, at: u64, len: u64) -> Result<Self, Stop> {
        Ok(Self { view, at, bytes: bytes(view, at, len)? })
    }

    fn fixed<const N: usize>(&self, offset: usize) -> Result<[u8; N], Stop> {
        let bytes = self.bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>());
        bytes.copied().ok_or_else(|| {
            corrupt(self.at, format!("{} bytes", offset + N), format!("{}", self.bytes.len()))
        })
    }

    /// Position of an offset in the archive.
    pub(crate) fn position(&self, offset: usize) -> u64 {
        self.at.saturating_add(offset as u64)
    }

    /// A number of one byte: a tag, mostly.
    pub(crate) fn u8(&self, offset: usize) -> Result<u8, Stop> {
        self.fixed(offset).map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&self, offset: usize) -> Result<u16, Stop> {
        self.fixed(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, offset: usize) -> Result<u32, Stop> {
        self.fixed(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, offset: usize) -> Result<u64, Stop> {
        self.fixed(offset).map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&self, offset: usize) -> Result<i64, Stop> {
        self.fixed(offset).map(i64::from_le_bytes)
    }

    pub(crate) fn f64(&self, offset: usize) -> Result<f64, Stop> {
        self.fixed(offset).map(f64::from_le_bytes)
    }

    /// Zero or one, and nothing else.
    pub(crate) fn bool(&self, offset: usize) -> Result<bool, Stop> {
        match self.u8(offset)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(corrupt(self.position(offset), "0 or 1", other.to_string())),
        }
    }

    /// The error of a tag that no variant has.
    pub(crate) fn bad_tag(&self, offset: usize, what: &str, tag: u8) -> Stop {
        corrupt(self.position(offset), format!("the tag of {what}"), tag.to_string())
    }

    /// The target of the pointer at an offset.
    pub(crate) fn target(&self, offset: usize) -> Result<u64, Stop> {
        self.follow(offset, self.i64(offset)?)
    }

    fn follow(&self, offset: usize, distance: i64) -> Result<u64, Stop> {
        let target = self.position(offset).checked_add_signed(distance);
        target.filter(|target| *target <= self.view.len()).ok_or_else(|| {
            let found = format!("a pointer by {distance} bytes");
            corrupt(self.position(offset), "a pointer into the archive", found)
        })
    }

    /// The elements, of `item` bytes each, of the `Vec` at an offset.
    pub(crate) fn table(&self, offset: usize, item: u64) -> Result<Table, Stop> {
        let len = self.u64(offset + 8)?;
        Table::new(self.target(offset)?, len, item, self.view.len())
    }

    /// Bytes of the `Vec<u8>` at an offset.
    pub(crate) fn blob(&self, offset: usize) -> Result<Vec<u8>, Stop> {
        let table = self.table(offset, 1)?;
        Ok(bytes(self.view, table.at, table.len)?.to_vec())
    }

    /// Where the bytes of the `String` at an offset are; `None` if they are in place.
    pub(crate) fn text(&self, offset: usize) -> Result<Option<Table>, Stop> {
        if self.u8(offset)? & 0xc0 != 0x80 {
            return Ok(None);
        }
        let marked = self.u64(offset)?;
        let len = (marked & 0x3f) | ((marked & !0xff) >> 2);
        if len <= INLINE_MAX as u64 {
            let expected = format!("more than {INLINE_MAX} bytes out of line");
            return Err(corrupt(self.position(offset), expected, len.to_string()));
        }
        // Measured from the start of the String, not from the field that holds the distance.
        let start = self.follow(offset, self.i64(offset + 8)?)?;
        Table::new(start, len, 1, self.view.len()).map(Some)
    }

    /// The `String` at an offset.
    pub(crate) fn string(&self, offset: usize) -> Result<String, Stop> {
        let utf8 = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|error| {
                corrupt(self.position(offset), "a string in UTF-8", error.to_string())
            })
        };
        if let Some(text) = self.text(offset)? {
            return utf8(&bytes(self.view, text.at, text.len)?);
        }
        let inline: [u8; INLINE_MAX] = self.fixed(offset)?;
        utf8(inline.split(|byte| *byte == 0xff).next().unwrap_or_default())
    }
}

impl Record<'_> {
    /// The `Vec` that is the last field of a root at the end of the archive.
    pub(crate) fn last_vec(view: &dyn View, item: u64) -> Result<(u64, Table), Stop> {
        let at = view.len().checked_sub(VEC_LEN).ok_or_else(|| {
            corrupt(0, format!("at least {VEC_LEN} bytes"), view.len().to_string())
        })?;
        Ok((at, Record::read(view, at, VEC_LEN)?.table(0, item)?))
    }
}
