//! Decisions drawn from bytes, for targets that build input valid enough to get far.

/// Reads decisions off the front of some bytes; when they run out, every decision is zero.
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number below `bound`, which is at most 256.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }

    /// One of some values.
    pub(crate) fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }

    /// A number, small ones more often than large ones.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=191 => u64::from(small % 8),
            192..=223 => u64::from(self.byte()),
            224..=247 => {
                let bytes = std::array::from_fn(|_| self.byte());
                u64::from_le_bytes(bytes)
            }
            rest => u64::MAX - u64::from(rest - 248),
        }
    }

    /// Up to `len_max` raw bytes.
    pub(crate) fn raw(&mut self, len_max: usize) -> &'a [u8] {
        let len = self.below(len_max + 1).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    /// Whether no bytes are left.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.is_empty()
    }
}
