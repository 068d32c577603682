//! The metadata of a Bloscpack file: JSON, with a header, room to grow and a checksum in the final
//! version, and bare in the interim one.
//!
//! ```text
//!  0       8         9          10      11      12          16         20              24          32
//!  "JSON" | options | checksum | codec | level | meta-size | max-size | meta-comp-size | user codec |
//!         | stored bytes | zeros up to max-size | digest of the stored bytes
//! ```

use std::io::{Read, Write};

use chunkyard_store::{Error, Result};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::{Digest, array};
use crate::superchunk::corrupt;

/// Bytes of the section before the metadata.
pub(super) const HEADER_BYTES: usize = 32;

/// Longer metadata is refused: no real file has it.
const JSON_BYTES_MAX: u32 = 64 << 20;

/// The name of the one format that the tool writes.
pub(super) const JSON: &str = "JSON";

/// The metadata section of the final version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The format's name: "JSON".
    pub magic: String,
    /// The checksum of the metadata.
    pub digest: Digest,
    /// Whether the metadata is compressed. A writer stores it uncompressed if that is shorter.
    pub deflate: bool,
    /// How hard to compress, 0 to 9.
    pub level: u8,
    /// The metadata, uncompressed.
    pub json: Vec<u8>,
    /// How many bytes the stored metadata may grow to.
    pub room: u32,
    /// A name for a codec of the user's, normally none.
    pub user_codec: [u8; 8],
}

impl Section {
    /// A section with the tool's defaults: zlib at level 6, Adler-32, and room to grow tenfold.
    pub fn new(json: Vec<u8>) -> Result<Self> {
        let room = u32::try_from(json.len()).ok().and_then(|len| len.checked_mul(10));
        let room = room.ok_or_else(|| too_long("metadata", json.len()))?;
        Ok(Self {
            magic: JSON.into(),
            digest: Digest::Adler32,
            deflate: true,
            level: 6,
            json,
            room,
            user_codec: [0; 8],
        })
    }

    /// Bytes of the whole section.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.room) + self.digest.bytes() as u64
    }

    /// Bytes of the section that begins with these 32 bytes, or `None` if there are fewer.
    pub(super) fn bytes_of(file: &str, start: &[u8]) -> Result<Option<u64>> {
        let Some(fields) = Fields::parse(file, start)? else { return Ok(None) };
        Ok(Some(HEADER_BYTES as u64 + u64::from(fields.room) + fields.digest.bytes() as u64))
    }

    /// The section at the beginning of `bytes`, and its length.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<(Self, usize)> {
        let short = || corrupt(file, "the metadata section", "all of it", bytes.len());
        let fields = Fields::parse(file, bytes)?.ok_or_else(short)?;
        let Fields { magic, digest, deflate, level, size, room, stored, user_codec } = fields;
        let (Ok(stored_len), Ok(room_len)) = (usize::try_from(stored), usize::try_from(room))
        else {
            return Err(short());
        };
        let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let kept = body.get(..stored_len).ok_or_else(short)?;
        let sum = body.get(room_len..).and_then(|rest| rest.get(..digest.bytes()));
        let sum = sum.ok_or_else(short)?;
        if !digest.matches(kept, sum) {
            let what = format!("the {} of the metadata", digest.name());
            return Err(corrupt(file, &what, hex(sum), hex(&digest.of(kept))));
        }
        let json = match deflate {
            true => inflate(file, kept, size)?,
            false => kept.to_vec(),
        };
        if json.len() as u64 != u64::from(size) {
            return Err(corrupt(file, "meta-size", json.len(), size));
        }
        let section = Self { magic, digest, deflate, level, json, room, user_codec };
        Ok((section, HEADER_BYTES + room_len + digest.bytes()))
    }

    /// The bytes of the section. Its length is the same for any metadata that fits into the room.
    pub fn render(&self) -> Result<Vec<u8>> {
        let name = self.magic.as_bytes();
        if name.is_empty() || name.len() > 8 || !name.iter().all(u8::is_ascii_graphic) {
            let what = format!("a metadata format '{}': expected 1 to 8 characters", self.magic);
            return Err(Error::invalid(what));
        }
        if self.level > 9 {
            return Err(Error::invalid(format!("zlib level {}: expected 0 to 9", self.level)));
        }
        let size = u32::try_from(self.json.len()).ok().filter(|&size| size <= JSON_BYTES_MAX);
        let size = size.ok_or_else(|| too_long("metadata", self.json.len()))?;
        let deflated = match self.deflate {
            true => Some(deflate(&self.json, self.level)?),
            false => None,
        };
        let deflated = deflated.filter(|deflated| deflated.len() < self.json.len());
        let stored = deflated.as_ref().unwrap_or(&self.json);
        let (len, room) = (stored.len() as u64, u64::from(self.room));
        let (Ok(stored_size), true) = (u32::try_from(stored.len()), len <= room) else {
            let what = format!("metadata of {len} stored bytes: there is room for {room}");
            return Err(Error::invalid(what));
        };
        let mut out: Vec<u8> = name.iter().copied().chain([0; 8]).take(8).collect();
        out.extend([0, self.digest.id(), u8::from(deflated.is_some()), self.level]);
        [size, self.room, stored_size].iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(self.user_codec);
        out.extend(stored);
        out.extend(std::iter::repeat_n(0, (self.room - stored_size) as usize));
        out.extend(self.digest.of(stored));
        Ok(out)
    }
}

/// The first 32 bytes of a section.
struct Fields {
    magic: String,
    digest: Digest,
    deflate: bool,
    level: u8,
    size: u32,
    room: u32,
    stored: u32,
    user_codec: [u8; 8],
}

impl Fields {
    /// `None` if there are fewer bytes.
    fn parse(file: &str, bytes: &[u8]) -> Result<Option<Self>> {
        let (Some(name), Some([options, digest, codec, level])) =
            (array::<8>(bytes, 0), array(bytes, 8))
        else {
            return Ok(None);
        };
        let numbers = [12, 16, 20].map(|at| array(bytes, at).map(u32::from_le_bytes));
        let ([Some(size), Some(room), Some(stored)], Some(user_codec)) =
            (numbers, array(bytes, 24))
        else {
            return Ok(None);
        };
        // The tool's readme says spaces, but its code pads with zeros.
        let magic = name.trim_ascii_end();
        let magic = magic.iter().rposition(|&byte| byte != 0).and_then(|last| magic.get(..=last));
        let magic = magic.filter(|name| name.iter().all(u8::is_ascii_graphic));
        let Some(magic) = magic.and_then(|name| String::from_utf8(name.to_vec()).ok()) else {
            let found = format!("\"{}\"", name.escape_ascii());
            return Err(corrupt(file, "the format of the metadata", "a name", found));
        };
        let Some(digest) = Digest::from_id(digest) else {
            return Err(corrupt(file, "the number of the metadata's checksum", "0 to 8", digest));
        };
        if options != 0 {
            return Err(corrupt(file, "the options of the metadata", 0, options));
        }
        if codec > 1 {
            return Err(corrupt(file, "the codec of the metadata", "0 or 1", codec));
        }
        if stored > room {
            return Err(corrupt(file, "meta-comp-size", format!("at most {room}"), stored));
        }
        let deflate = codec == 1;
        if !deflate && stored != size {
            return Err(corrupt(file, "meta-size of metadata as it is", stored, size));
        }
        // Without a codec the tool leaves its default level here, and other programs may, too.
        let level = if deflate { level } else { level.min(9) };
        if level > 9 {
            return Err(corrupt(file, "the zlib level of the metadata", "0 to 9", level));
        }
        if size > JSON_BYTES_MAX {
            return Err(too_long(file, size));
        }
        Ok(Some(Self { magic, digest, deflate, level, size, room, stored, user_codec }))
    }
}

/// The metadata in a zlib stream of the interim version, which does not tell its inflated length.
pub(super) fn inflate_bare(file: &str, deflated: &[u8]) -> Result<Vec<u8>> {
    inflate(file, deflated, JSON_BYTES_MAX)
}

/// At most `most` bytes; a stream that holds more is corrupt, and no more of it is inflated.
fn inflate(file: &str, deflated: &[u8], most: u32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = ZlibDecoder::new(deflated).take(u64::from(most) + 1).read_to_end(&mut out);
    read.map_err(|cause| corrupt(file, "the metadata", "a zlib stream", cause))?;
    if out.len() as u64 > u64::from(most) {
        return Err(corrupt(file, "the metadata", format!("at most {most} bytes"), "more"));
    }
    Ok(out)
}

fn deflate(json: &[u8], level: u8) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(u32::from(level)));
    let written = encoder.write_all(json).and_then(|()| encoder.finish());
    written.map_err(|cause| Error::store("compress", "metadata", cause))
}

fn too_long(whose: &str, len: impl ToString) -> Error {
    let most = JSON_BYTES_MAX;
    Error::unsupported(format!("{whose}: metadata of {} bytes, more than {most}", len.to_string()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::*;

    /// What the tool wrote for `{"dtype":"<i4"}` with 32 bytes of room: too short to be compressed.
    const STORED: &[u8; 68] = b"JSON\0\0\0\0\0\x01\0\x06\x0f\0\0\0\
        \x20\0\0\0\x0f\0\0\0\0\0\0\0\0\0\0\0{\"dtype\":\"<i4\"}\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xba\x04\x63\x28";

    fn section() -> Section {
        let json = b"{\"dtype\":\"<i4\"}".to_vec();
        Section { room: 32, ..Section::new(json).unwrap() }
    }

    #[test]
    fn the_section_that_the_tool_wrote_is_read_and_written_to_the_byte() {
        let (found, len) = Section::parse("f", STORED).unwrap();
        assert_eq!((&found, len), (&Section { deflate: false, ..section() }, 68));
        assert_eq!(section().render().unwrap(), STORED);
        assert_eq!(found.bytes(), 68);
        assert_eq!(Section::bytes_of("f", &STORED[..32]).unwrap(), Some(68));
        assert_eq!(Section::bytes_of("f", &STORED[..31]).unwrap(), None);
    }

    #[test]
    fn long_metadata_is_compressed_and_short_metadata_is_not() {
        for (len, deflated) in [(0, false), (5, false), (5000, true)] {
            for digest in Digest::ALL {
                let json = vec![b' '; len];
                let section = Section { digest, ..Section::new(json.clone()).unwrap() };
                let bytes = section.render().unwrap();
                let (found, read) = Section::parse("f", &bytes).unwrap();
                assert_eq!((found.json, found.deflate, read), (json, deflated, bytes.len()));
                assert_eq!(bytes.len() as u64, section.bytes());
            }
        }
    }

    #[test]
    fn a_bit_flipped_in_the_stored_bytes_is_noticed() {
        for at in (64 / 2..47).chain(64..68) {
            let mut bent = *STORED;
            bent[at] ^= 1;
            let error = Section::parse("f", &bent).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}");
            assert!(error.to_string().contains("adler32"), "{error}");
        }
    }

    #[test]
    fn impossible_fields_and_short_sections_are_corrupt() {
        for (at, byte) in [(0, 0), (2, 7), (8, 1), (9, 9), (10, 2), (10, 1), (12, 14), (16, 14)] {
            let mut bent = *STORED;
            bent[at] = byte;
            let error = Section::parse("f", &bent).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}: {error}");
        }
        for len in 0..68 {
            assert!(Section::parse("f", &STORED[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn a_stream_that_holds_more_than_it_says_is_not_inflated_further() {
        let mut bytes = Section::new(vec![b' '; 5000]).unwrap().render().unwrap();
        bytes[12..16].copy_from_slice(&100u32.to_le_bytes());
        let error = Section::parse("f", &bytes).unwrap_err().to_string();
        assert!(error.contains("at most 100 bytes"), "{error}");
        bytes[12..16].copy_from_slice(&5001u32.to_le_bytes());
        assert!(Section::parse("f", &bytes).is_err());
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = Section::parse("f", &bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }

    #[test]
    fn metadata_that_does_not_fit_is_not_written() {
        for section in [
            Section { room: 14, ..section() },
            Section { magic: "TOOLONGBY1".into(), ..section() },
            Section { magic: String::new(), ..section() },
            Section { level: 10, ..section() },
        ] {
            assert_eq!(section.render().unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
