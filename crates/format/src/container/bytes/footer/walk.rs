//! Walks a whole footer as the readers of array-format do before they read it.
//!
//! They use the checks of rkyv, and refuse the whole file if one fails: pointers are aligned; a
//! target lies before the record that points to it, after the targets of the fields before, and
//! overlaps nothing; tags, booleans and strings are sound. A writer that shared equal strings would
//! make files that look right here and nowhere else.

use super::super::archive::{Record, Resident, STRING_LEN, Stop, VEC_LEN, View, corrupt};
use super::{BLOCK_LEN, CHUNK_LEN, DEPTH_MAX, DTYPE_LEN, ROOT_LEN, ROOT_LEN_6, Root, VALUE_LEN};

/// Stops at the first error at which a reader of array-format would stop.
pub(super) fn walk(view: &Resident, root: &Root) -> Result<(), Stop> {
    let mut walk = Walk { view, low: 0, high: view.len() };
    let six = root.version == 6;
    let len = if six { ROOT_LEN_6 } else { ROOT_LEN };
    let at = view.len().saturating_sub(len);
    walk.inside(at, len, 8, |walk| {
        let record = Record::read(view, at, len)?;
        walk.vec(&record, 8, BLOCK_LEN, 8, &mut |walk, record, at| {
            if record.bool(at + 32)? { walk.string(record, at + 40) } else { Ok(()) }
        })?;
        let array = &mut |walk: &mut Walk<'_>, record: &Record<'_>, at| walk.array(record, at, six);
        let value = &mut |walk: &mut Walk<'_>, record: &Record<'_>, at| walk.value(record, at, six);
        if six {
            walk.strings(&record, 24)?;
            walk.vec(&record, 40, VALUE_LEN, 8, value)?;
            return walk.vec(&record, 56, root.array_len(), 8, array);
        }
        walk.vec(&record, 24, root.array_len(), 8, array)?;
        walk.strings(&record, 40)?;
        walk.vec(&record, 56, VALUE_LEN, 8, value)?;
        walk.string(&record, 80)
    })
}

/// The range where the next target must be.
struct Walk<'a> {
    view: &'a Resident,
    low: u64,
    high: u64,
}

/// Checks an element: the record it is in, and its offset.
type Each<'e> = &'e mut dyn FnMut(&mut Walk<'_>, &Record<'_>, usize) -> Result<(), Stop>;

impl Walk<'_> {
    /// Checks the value at a place; its targets come before it, the next value after it.
    fn inside(
        &mut self,
        at: u64,
        len: u64,
        align: u64,
        check: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let end = at.saturating_add(len);
        if at < self.low || end > self.high {
            let expected = format!("what is pointed to between {} and {}", self.low, self.high);
            return Err(corrupt(at, expected, format!("{len} bytes outside of it")));
        }
        if !at.is_multiple_of(align) {
            let found = "a position in between";
            return Err(corrupt(at, format!("a multiple of {align}"), found));
        }
        let high = std::mem::replace(&mut self.high, at);
        check(self)?;
        (self.low, self.high) = (end, high);
        Ok(())
    }

    /// The `Vec` at an offset of a record, and each of its elements.
    fn vec(
        &mut self,
        record: &Record<'_>,
        offset: usize,
        item: u64,
        align: u64,
        each: Each<'_>,
    ) -> Result<(), Stop> {
        let table = record.table(offset, item)?;
        let len = table.len * item;
        let view = self.view;
        self.inside(table.at, len, align, |walk| {
            let elements = Record::read(view, table.at, len)?;
            let offsets = (0..).step_by(item as usize);
            (0..table.len).zip(offsets).try_for_each(|(_, at)| each(walk, &elements, at))
        })
    }

    /// A `Vec` of values without pointers.
    fn plain(&mut self, record: &Record<'_>, offset: usize, item: u64) -> Result<(), Stop> {
        let table = record.table(offset, item)?;
        // Pairs of numbers are aligned like single numbers.
        self.inside(table.at, table.len * item, item, |_| Ok(()))
    }

    fn pairs(&mut self, record: &Record<'_>, offset: usize, width: u64) -> Result<(), Stop> {
        let table = record.table(offset, 2 * width)?;
        self.inside(table.at, table.len * 2 * width, width, |_| Ok(()))
    }

    fn string(&mut self, record: &Record<'_>, offset: usize) -> Result<(), Stop> {
        record.string(offset)?;
        match record.text(offset)? {
            None => Ok(()),
            Some(text) => self.inside(text.at, text.len, 1, |_| Ok(())),
        }
    }

    fn strings(&mut self, record: &Record<'_>, offset: usize) -> Result<(), Stop> {
        self.vec(record, offset, STRING_LEN, 8, &mut |walk, record, at| walk.string(record, at))
    }

    fn array(&mut self, record: &Record<'_>, at: usize, six: bool) -> Result<(), Stop> {
        self.string(record, at)?;
        self.dtype(record, at + 16, 0)?;
        self.plain(record, at + 40, 4)?;
        self.strings(record, at + 56)?;
        self.plain(record, at + 72, 4)?;
        self.vec(record, at + 88, CHUNK_LEN, 8, &mut |walk, record, at| walk.plain(record, at, 4))?;
        if record.bool(at + 104)? && record.u8(at + 112)? == 4 {
            self.string(record, at + 120)?;
        }
        if six {
            self.pairs(record, at + 136, 4)?;
            return if record.bool(at + 152)? { self.stats(record, at + 160) } else { Ok(()) };
        }
        record.bool(at + 136)?;
        match record.u8(at + 144)? {
            0 => self.pairs(record, at + 152, 2),
            1 => self.pairs(record, at + 152, 4),
            2 => self.pairs(record, at + 152, 8),
            other => Err(record.bad_tag(at + 144, "the width of indices", other)),
        }
    }

    fn dtype(&mut self, record: &Record<'_>, offset: usize, depth: usize) -> Result<(), Stop> {
        if !matches!(record.u8(offset)?, 13 | 14) {
            return Ok(());
        }
        let at = record.target(offset + 8)?;
        if depth + 1 >= DEPTH_MAX {
            return Err(corrupt(at, format!("lists nested less than {DEPTH_MAX} deep"), "more"));
        }
        let view = self.view;
        self.inside(at, DTYPE_LEN, 8, |walk| {
            walk.dtype(&Record::read(view, at, DTYPE_LEN)?, 0, depth + 1)
        })
    }

    fn stats(&mut self, record: &Record<'_>, at: usize) -> Result<(), Stop> {
        self.string(record, at)?;
        for value in [at + 16, at + 48] {
            if record.bool(value)? && record.u8(value + 8)? == 3 {
                self.plain(record, value + 16, 1)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, record: &Record<'_>, at: usize, six: bool) -> Result<(), Stop> {
        match record.u8(at)? {
            11 if !six => self.string(record, at + 8),
            12 | 13 | 14 | 18 => self.plain(record, at + 8, 1),
            15 | 19 => self.plain(record, at + 8, 2),
            16 | 20 | 22 => self.plain(record, at + 8, 4),
            17 | 21 | 23 => self.plain(record, at + 8, 8),
            24 if six => self.plain(record, at + 8, 4),
            24 => self.strings(record, at + 8),
            25 => self
                .vec(record, at + 8, VEC_LEN, 8, &mut |walk, record, at| walk.plain(record, at, 1)),
            _ => Ok(()),
        }
    }
}
