//! Writing an archive: children first, padding before them as their type is aligned.

use super::INLINE_MAX;

/// An archive that grows. The caller writes the target of a pointer before its parent, and keeps
/// its position.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Room for that many bytes; it grows if needed.
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self { bytes: Vec::with_capacity(len) }
    }

    /// The archive.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Adds zeros up to a multiple of `align`; returns the next position.
    pub(crate) fn pad(&mut self, align: usize) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        self.position()
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn zeros(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Writes the elements of a `Vec` of numbers; returns their position.
    pub(crate) fn u32s(&mut self, values: &[u32]) -> u64 {
        let at = self.pad(4);
        self.bytes.reserve(4 * values.len());
        values.iter().for_each(|value| self.u32(*value));
        at
    }

    /// Writes the bytes of a string that is too long to be held in place; returns their position.
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        let at = self.position();
        if text.len() > INLINE_MAX {
            self.put(text.as_bytes());
        }
        at
    }

    /// Writes the elements of a `Vec` of strings, after their bytes; returns the position of the
    /// elements.
    pub(crate) fn strings(&mut self, strings: &[String]) -> u64 {
        let texts: Vec<u64> = strings.iter().map(|text| self.text(text)).collect();
        let at = self.pad(8);
        for (string, text) in strings.iter().zip(texts) {
            self.string(string, text);
        }
        at
    }

    /// A pointer to a position.
    pub(crate) fn pointer(&mut self, target: u64) {
        self.u64(target.wrapping_sub(self.position()));
    }

    /// A `Vec` whose elements are at a position.
    pub(crate) fn vec(&mut self, target: u64, len: usize) {
        self.pointer(target);
        self.u64(len as u64);
    }

    /// A `String` whose bytes are at a position, unless they are few.
    pub(crate) fn string(&mut self, string: &str, text: u64) {
        if string.len() <= INLINE_MAX {
            self.put(string.as_bytes());
            self.bytes.resize(self.bytes.len() + INLINE_MAX - string.len(), 0xff);
            return;
        }
        let (start, len) = (self.position(), string.len() as u64);
        self.u64((len & 0x3f) | 0x80 | ((len & !0x3f) << 2));
        self.u64(text.wrapping_sub(start));
    }

    /// A tag and the zeros up to the next multiple of eight.
    pub(crate) fn tag(&mut self, tag: u8) {
        self.put(&[tag, 0, 0, 0, 0, 0, 0, 0]);
    }
}
