//! The first 16 or 32 bytes of a Bloscpack file.
//!
//! ```text
//!  0     4        5        6         7         8           12          16        24
//!  blpk | version| options| checksum| typesize| chunk-size| last-chunk| nchunks | version 2: 0
//!                                                                               | interim: u32 meta-size, 0
//!                                                                               | final: max-app-chunks
//!  blpk | 1      | 0 0 0                      | nchunks                           version 1, 16 bytes
//! ```
//!
//! -1 means that a number is not known.

use chunkyard_store::{Error, Result};

use super::{Digest, array};
use crate::superchunk::corrupt;

/// What a Blosc buffer can hold at most.
pub const CHUNK_BYTES_MAX: u32 = i32::MAX.unsigned_abs() - 16;

pub(super) const MAGIC: [u8; 4] = *b"blpk";
const OFFSETS: u8 = 1;
const METADATA: u8 = 2;
const DEFLATED: u8 = 4;

/// A version of the file format. Two differ although both call themselves 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1: bloscpack 0.1, and to this day BLZ and bcolz.
    V1,
    /// 2: bloscpack 0.2.
    V2,
    /// 3 as the BLZ document describes it: metadata is bare JSON. No release wrote it.
    Interim,
    /// 3 in bloscpack 0.3 and later: metadata is a section with a header of its own.
    Final,
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the file.
    pub version: Version,
    /// Whether there is a table of offsets.
    pub has_offsets: bool,
    /// Whether there is metadata.
    pub has_metadata: bool,
    /// Whether the metadata is a zlib stream; only the interim version says it here.
    pub metadata_deflated: bool,
    /// What follows each chunk.
    pub digest: Digest,
    /// The type size that was given to Blosc; 0 where the version has no such field.
    pub item: u8,
    /// Uncompressed bytes of every chunk but the last.
    pub chunk_bytes: Option<u32>,
    /// Uncompressed bytes of the last chunk.
    pub last_chunk_bytes: Option<u32>,
    /// How many chunks there are.
    pub chunks: Option<u64>,
    /// How many more chunks the table of offsets has room for; only the final version.
    pub spare: u64,
    /// Bytes of the metadata as they are stored; only the interim version says it here.
    pub metadata_bytes: u32,
}

impl Header {
    /// The header of an empty file.
    pub fn new(version: Version) -> Self {
        Self {
            version,
            has_offsets: false,
            has_metadata: false,
            metadata_deflated: false,
            digest: Digest::None,
            item: 0,
            chunk_bytes: None,
            last_chunk_bytes: None,
            chunks: None,
            spare: 0,
            metadata_bytes: 0,
        }
    }

    /// Bytes of the header.
    pub fn bytes(&self) -> usize {
        match self.version {
            Version::V1 => 16,
            Version::V2 | Version::Interim | Version::Final => 32,
        }
    }

    /// Uncompressed bytes of a chunk, if the header has them.
    pub fn plain_bytes(&self, chunk: u64) -> Option<u32> {
        match self.chunks {
            Some(chunks) if chunk.checked_add(1) == Some(chunks) => self.last_chunk_bytes,
            Some(_) => self.chunk_bytes,
            // The number of chunks is not known, so any chunk may be the last one.
            None => self.chunk_bytes.filter(|&bytes| self.last_chunk_bytes == Some(bytes)),
        }
    }

    /// Reads the header of a file of `file_bytes` bytes. `first` is its beginning: 33 bytes, or all of a
    /// shorter file. Byte 32 tells the two versions 3 apart.
    pub fn parse(file: &str, first: &[u8], file_bytes: u64) -> Result<Self> {
        let short = |needed: usize| {
            corrupt(file, "the header", format!("{needed} bytes"), format!("{file_bytes}"))
        };
        let start: [u8; 16] = array(first, 0).ok_or_else(|| short(16))?;
        let [m0, m1, m2, m3, version, options, digest, item, rest @ ..] = start;
        if [m0, m1, m2, m3] != MAGIC {
            let found = format!("\"{}\"", [m0, m1, m2, m3].escape_ascii());
            return Err(corrupt(file, "the first four bytes", "\"blpk\"", found));
        }
        if version == 1 {
            let chunks = known_i64(file, rest)?;
            return Ok(Self { chunks, ..Self::new(Version::V1) });
        }
        if !(2..=3).contains(&version) {
            let what = format!("{file}: Bloscpack version {version}; 1, 2 and 3 are");
            return Err(Error::unsupported(what));
        }
        let chunks = known_i64(file, array(first, 16).ok_or_else(|| short(32))?)?;
        let last: [u8; 8] = array(first, 24).ok_or_else(|| short(32))?;
        let [c0, c1, c2, c3, l0, l1, l2, l3] = rest;
        let Some(digest) = Digest::from_id(digest) else {
            return Err(corrupt(file, "the checksum's number", "0 to 8", digest));
        };
        let mut header = Self {
            has_offsets: options & OFFSETS != 0,
            has_metadata: options & METADATA != 0,
            digest,
            item,
            chunk_bytes: known_i32(file, "chunk-size", [c0, c1, c2, c3])?,
            last_chunk_bytes: known_i32(file, "last-chunk", [l0, l1, l2, l3])?,
            chunks,
            ..Self::new(if version == 2 { Version::V2 } else { Version::Final })
        };
        if version == 3 && header.has_metadata {
            let &first_of_metadata =
                first.get(32).ok_or_else(|| corrupt(file, "the metadata", "some", "none"))?;
            if is_interim(options, first_of_metadata, last) {
                let [b0, b1, b2, b3, ..] = last;
                header.version = Version::Interim;
                header.metadata_deflated = options & DEFLATED != 0;
                header.metadata_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
            }
        }
        let known = header.options();
        if options != known {
            let (expected, found) = (format!("{known:#04x}"), format!("{options:#04x}"));
            return Err(corrupt(file, "the options", expected, found));
        }
        if header.version == Version::Final {
            let spare = i64::from_le_bytes(last);
            header.spare = u64::try_from(spare)
                .map_err(|_| corrupt(file, "max-app-chunks", "0 or more", spare))?;
        }
        header.check().map_err(|wrong| corrupt(file, wrong.what, wrong.expected, wrong.found))?;
        let after = file_bytes.saturating_sub(32);
        if u64::from(header.metadata_bytes) > after {
            let expected = format!("at most {after} bytes");
            return Err(corrupt(file, "the metadata", expected, header.metadata_bytes));
        }
        Ok(header)
    }

    /// The bytes of the header.
    pub fn render(&self) -> Result<Vec<u8>> {
        self.check().map_err(|wrong| {
            let Wrong { what, expected, found } = wrong;
            Error::invalid(format!("a Bloscpack file: {what}: expected {expected}, found {found}"))
        })?;
        let chunks = self.chunks.map_or(-1, u64::cast_signed).to_le_bytes();
        let mut out = MAGIC.to_vec();
        let version = match self.version {
            Version::V1 => {
                out.extend([1, 0, 0, 0]);
                out.extend(chunks);
                return Ok(out);
            }
            Version::V2 => 2,
            Version::Interim | Version::Final => 3,
        };
        out.extend([version, self.options(), self.digest.id(), self.item]);
        for bytes in [self.chunk_bytes, self.last_chunk_bytes] {
            out.extend(bytes.map_or(-1, u32::cast_signed).to_le_bytes());
        }
        out.extend(chunks);
        out.extend((self.spare + u64::from(self.metadata_bytes)).to_le_bytes());
        Ok(out)
    }

    fn options(&self) -> u8 {
        u8::from(self.has_offsets) * OFFSETS
            + u8::from(self.has_metadata && self.version != Version::V2) * METADATA
            + u8::from(self.metadata_deflated) * DEFLATED
    }

    /// The rules for a header, both when it is read and when it is written.
    fn check(&self) -> Result<(), Wrong> {
        let wrong = |what, expected: &str, found: String| {
            Err(Wrong { what, expected: expected.to_owned(), found })
        };
        let plain = Self { chunks: self.chunks, ..Self::new(Version::V1) };
        if self.version == Version::V1 && *self != plain {
            return wrong("version 1", "a number of chunks", "more".into());
        }
        if self.version == Version::V2 && self.has_metadata {
            return wrong("version 2", "no metadata", "some".into());
        }
        if self.version != Version::Final && self.spare > 0 {
            return wrong("max-app-chunks", "0", self.spare.to_string());
        }
        if self.version != Version::Interim && (self.metadata_deflated || self.metadata_bytes > 0) {
            return wrong("meta-size", "0", self.metadata_bytes.to_string());
        }
        if !self.has_metadata && (self.metadata_deflated || self.metadata_bytes > 0) {
            return wrong("meta-size without metadata", "0", self.metadata_bytes.to_string());
        }
        if self.metadata_bytes > i32::MAX.unsigned_abs() {
            return wrong("meta-size", "at most 2^31 - 1", self.metadata_bytes.to_string());
        }
        let most = [self.chunk_bytes, self.last_chunk_bytes].into_iter().flatten().max();
        if let Some(bytes) = most.filter(|&bytes| bytes > CHUNK_BYTES_MAX) {
            return wrong(
                "a chunk",
                &format!("at most {CHUNK_BYTES_MAX} bytes"),
                bytes.to_string(),
            );
        }
        if let (Some(each), Some(last)) = (self.chunk_bytes, self.last_chunk_bytes)
            && last > each
        {
            return wrong("last-chunk", &format!("at most {each}"), last.to_string());
        }
        let entries = self.chunks.unwrap_or(0).checked_add(self.spare);
        if entries.is_none_or(|entries| entries > i64::MAX.unsigned_abs()) {
            return wrong("nchunks and max-app-chunks", "at most 2^63 - 1", "more".into());
        }
        if self.spare > 0 && (self.chunks.is_none() || !self.has_offsets) {
            return wrong("max-app-chunks without offsets", "0", self.spare.to_string());
        }
        Ok(())
    }
}

/// A rule that a header breaks.
struct Wrong {
    what: &'static str,
    expected: String,
    found: String,
}

/// Whether a file of version 3 is interim: its metadata is bare. `last` is the last eight bytes of its header.
///
/// The metadata of the final version begins with the name of its format, "JSON"; no name begins like
/// JSON text or like a zlib stream whose length is given.
fn is_interim(options: u8, first_of_metadata: u8, last: [u8; 8]) -> bool {
    let [.., 0, 0, 0, 0] = last else { return false };
    match options & DEFLATED {
        0 => matches!(first_of_metadata, b'{' | b' ' | b'\t' | b'\n' | b'\r'),
        _ => first_of_metadata == 0x78,
    }
}

fn known_i32(file: &str, what: &str, bytes: [u8; 4]) -> Result<Option<u32>> {
    match i32::from_le_bytes(bytes) {
        -1 => Ok(None),
        number => u32::try_from(number)
            .map(Some)
            .map_err(|_| corrupt(file, what, "-1, 0 or more", number)),
    }
}

fn known_i64(file: &str, bytes: [u8; 8]) -> Result<Option<u64>> {
    match i64::from_le_bytes(bytes) {
        -1 => Ok(None),
        number => u64::try_from(number)
            .map(Some)
            .map_err(|_| corrupt(file, "nchunks", "-1, 0 or more", number)),
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::*;

    /// What the tool wrote: 40 numbers of four bytes in chunks of 64 bytes.
    const FINAL: &[u8; 33] = b"blpk\x03\x03\x01\x04\x40\0\0\0\x20\0\0\0\
        \x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0J";
    const INTERIM: &[u8; 33] = b"blpk\x03\x03\x01\x04\x40\0\0\0\x20\0\0\0\
        \x03\0\0\0\0\0\0\0\x0f\0\0\0\0\0\0\0{";
    const SECOND: &[u8; 32] = b"blpk\x02\x01\x01\x04\x40\0\0\0\x20\0\0\0\
        \x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const FIRST: &[u8; 16] = b"blpk\x01\0\0\0\x01\0\0\0\0\0\0\0";

    fn parse(bytes: &[u8]) -> Result<Header> {
        Header::parse("f", bytes, 360)
    }

    fn common(version: Version) -> Header {
        Header {
            has_offsets: true,
            digest: Digest::Adler32,
            item: 4,
            chunk_bytes: Some(64),
            last_chunk_bytes: Some(32),
            chunks: Some(3),
            ..Header::new(version)
        }
    }

    #[test]
    fn every_version_is_read_and_written_to_the_byte() {
        let known: [(&[u8], Header); 4] = [
            (FIRST, Header { chunks: Some(1), ..Header::new(Version::V1) }),
            (SECOND, common(Version::V2)),
            (
                INTERIM,
                Header { has_metadata: true, metadata_bytes: 15, ..common(Version::Interim) },
            ),
            (FINAL, Header { has_metadata: true, spare: 2, ..common(Version::Final) }),
        ];
        for (bytes, expected) in known {
            let found = parse(bytes).unwrap();
            assert_eq!(found, expected);
            assert_eq!(found.render().unwrap(), bytes[..found.bytes()]);
        }
    }

    #[test]
    fn minus_one_means_unknown() {
        let mut bytes = *FINAL;
        bytes[8..24].fill(0xff);
        bytes[24] = 0;
        let found = parse(&bytes).unwrap();
        assert_eq!((found.chunk_bytes, found.last_chunk_bytes, found.chunks), (None, None, None));
        assert_eq!(found.render().unwrap(), bytes[..32]);
        assert_eq!(found.plain_bytes(0), None);
    }

    #[test]
    fn chunks_have_one_size_and_the_last_its_own() {
        let header = parse(FINAL).unwrap();
        assert_eq!(
            [0, 1, 2].map(|chunk| header.plain_bytes(chunk)),
            [Some(64), Some(64), Some(32)]
        );
        assert_eq!(parse(FIRST).unwrap().plain_bytes(0), None);
    }

    #[test]
    fn a_byte_behind_the_header_tells_the_two_versions_3_apart() {
        let version = |options: u8, behind: u8, last: u8| {
            let mut bytes = *INTERIM;
            (bytes[5], bytes[32], bytes[31]) = (options, behind, last);
            parse(&bytes).map(|header| header.version).map_err(|error| error.kind())
        };
        assert_eq!(version(3, b'\n', 0), Ok(Version::Interim));
        assert_eq!(version(7, 0x78, 0), Ok(Version::Interim));
        assert_eq!(version(3, b'J', 0), Ok(Version::Final));
        assert_eq!(version(1, b'{', 0), Ok(Version::Final), "without metadata");
        assert_eq!(version(3, b'{', 1), Ok(Version::Final), "a capacity, no length");
        assert_eq!(version(7, b'J', 0), Err(ErrorKind::Corrupt), "final has no bit 2");
        assert_eq!(version(5, b'J', 0), Err(ErrorKind::Corrupt));
        assert_eq!(version(11, b'{', 0), Err(ErrorKind::Corrupt));
    }

    #[test]
    fn headers_that_break_a_rule_are_corrupt() {
        let bend = |at: usize, bytes: &[u8]| {
            let mut bent = *FINAL;
            bent[at..at + bytes.len()].copy_from_slice(bytes);
            let error = parse(&bent).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            error.to_string()
        };
        assert!(bend(0, b"BLPK").contains("\"BLPK\""));
        assert!(bend(6, &[9]).contains("0 to 8"));
        assert!(bend(8, &(-2i32).to_le_bytes()).contains("chunk-size"));
        assert!(bend(8, &i32::MAX.to_le_bytes()).contains("2147483631"));
        assert!(bend(12, &65i32.to_le_bytes()).contains("at most 64"));
        assert!(bend(16, &(-2i64).to_le_bytes()).contains("nchunks"));
        assert!(bend(16, &i64::MAX.to_le_bytes()).contains("2^63"));
        assert!(bend(16, &(-1i64).to_le_bytes()).contains("max-app-chunks"));
        assert!(bend(24, &(-1i64).to_le_bytes()).contains("max-app-chunks"));
        assert!(bend(5, &[2]).contains("without offsets"));
        let long = Header::parse("f", INTERIM, 40).unwrap_err();
        assert!(long.to_string().contains("at most 8 bytes"), "{long}");
    }

    #[test]
    fn other_versions_are_refused_by_name_and_short_files_by_length() {
        let mut bytes = *FINAL;
        bytes[4] = 4;
        let error = parse(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("version 4"), "{error}");
        for len in 0..33 {
            assert_eq!(parse(&FINAL[..len]).unwrap_err().kind(), ErrorKind::Corrupt, "{len}");
        }
    }

    #[test]
    fn headers_that_a_version_cannot_have_are_not_written() {
        let final_ = common(Version::Final);
        for header in [
            Header { digest: Digest::Md5, ..Header::new(Version::V1) },
            Header { has_metadata: true, ..common(Version::V2) },
            Header { spare: 1, ..common(Version::Interim) },
            Header { metadata_bytes: 1, ..final_.clone() },
            Header { last_chunk_bytes: Some(65), ..final_.clone() },
            Header { chunk_bytes: Some(u32::MAX), ..final_.clone() },
            Header { chunks: None, spare: 1, ..final_ },
        ] {
            assert_eq!(header.render().unwrap_err().kind(), ErrorKind::Invalid, "{header:?}");
        }
    }
}
