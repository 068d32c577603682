//! The last twelve bytes of a layer and of a statistics file: how long the archive before them is.
//!
//! ```text
//!  … | archive | u64 length of the archive | "ARRF" of a layer, "ARST" of statistics
//! ```

use chunkyard_store::{Error, Result};

/// Bytes of a trailer.
pub const TRAILER_LEN: u64 = 12;

/// The kind of file that a trailer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A layer: base or sidecar.
    Layer,
    /// A statistics file.
    Statistics,
}

impl Ending {
    /// The last four bytes.
    fn magic(self) -> [u8; 4] {
        match self {
            Self::Layer => *b"ARRF",
            Self::Statistics => *b"ARST",
        }
    }

    /// How long the archive before the trailer is.
    pub fn parse(self, trailer: &[u8; 12]) -> Result<u64> {
        let [a, b, c, d, e, f, g, h, magic @ ..] = *trailer;
        if magic != self.magic() {
            return Err(Error::Corrupt {
                file: "trailer".into(),
                what: "the last four bytes".into(),
                expected: format!("\"{}\"", self.magic().escape_ascii()),
                found: format!("\"{}\"", magic.escape_ascii()),
            });
        }
        Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }

    /// The trailer after an archive of that length.
    pub fn render(self, archive_len: u64) -> [u8; 12] {
        let mut trailer = [0; 12];
        let bytes = archive_len.to_le_bytes().into_iter().chain(self.magic());
        trailer.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        trailer
    }
}

/// How long the footer before the trailer of a layer is.
pub fn parse_trailer(trailer: &[u8; 12]) -> Result<u64> {
    Ending::Layer.parse(trailer)
}

/// The trailer of a layer with a footer of this length.
pub fn render_trailer(footer_len: u64) -> [u8; 12] {
    Ending::Layer.render(footer_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_says_how_long_the_archive_is() {
        assert_eq!(&render_trailer(96), b"\x60\0\0\0\0\0\0\0ARRF");
        assert_eq!(parse_trailer(&render_trailer(u64::MAX)).unwrap(), u64::MAX);
        let statistics = Ending::Statistics.render(16);
        assert_eq!(&statistics, b"\x10\0\0\0\0\0\0\0ARST");
        assert_eq!(Ending::Statistics.parse(&statistics).unwrap(), 16);
    }

    #[test]
    fn another_ending_is_refused_and_shown() {
        let error = parse_trailer(&Ending::Statistics.render(1)).unwrap_err().to_string();
        assert!(error.contains("\"ARRF\"") && error.contains("\"ARST\""), "{error}");
    }
}
