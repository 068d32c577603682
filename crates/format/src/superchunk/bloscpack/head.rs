//! The head of a Bloscpack file: everything before its first chunk.
//!
//! How long the head is becomes known only while it is read. So [`FileHead::parse`] takes the bytes that the
//! caller has read, and either has enough or says how many it needs.

use chunkyard_store::{Error, Result};

use super::section::{self, Section, inflate_bare};
use super::{BLOSC_HEADER_BYTES, Header, Version};
use crate::superchunk::corrupt;

/// Bytes that tell the version of a file.
const FIRST_BYTES: u64 = 33;

/// The head of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// The header.
    pub header: Header,
    /// The metadata: JSON, uncompressed. `None` if it has another format.
    pub metadata: Option<Vec<u8>>,
    /// Where the table of offsets begins.
    pub offsets_at: u64,
    /// How many offsets it has: one for each chunk, and one for each that may be appended.
    pub entries: u64,
    /// Where the first chunk begins: behind the table.
    pub chunks_at: u64,
}

/// The result of reading the first bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The whole head, with the offset of each entry; `None` is an entry of -1.
    Whole(FileHead, Vec<Option<u64>>),
    /// Too few: this many first bytes are needed. They are within the file, and more than were given.
    Needs(u64),
}

impl FileHead {
    /// Reads the beginning of a file of `file_bytes` bytes. `head` is its first bytes, any number.
    ///
    /// The offset of a counted chunk is within the file, or missing: then a walk over the chunks finds its
    /// place.
    pub fn parse(file: &str, head: &[u8], file_bytes: u64) -> Result<Parsed> {
        let parsed = Self::parse_torn(file, head, file_bytes)?;
        let Parsed::Whole(layout, offsets) = &parsed else { return Ok(parsed) };
        let (chunks, digest) = (layout.header.chunks.unwrap_or(0), layout.header.digest);
        let each = BLOSC_HEADER_BYTES + digest.bytes() as u64;
        let most = file_bytes.saturating_sub(layout.chunks_at) / each;
        if chunks > most {
            return Err(corrupt(file, "nchunks", format!("at most {most}"), chunks));
        }
        // An unfinished append may leave a spare entry that leads nowhere.
        for (slot, entry) in (0..chunks).zip(table(head, layout.offsets_at)) {
            if offsets.get(slot as usize).is_some_and(Option::is_none) && entry != -1 {
                layout.check_offset(file, slot, entry.cast_unsigned(), file_bytes)?;
            }
        }
        Ok(parsed)
    }

    /// The same for a file whose writer may have died: impossible numbers of chunks are accepted, and an
    /// impossible offset counts as missing.
    pub fn parse_torn(file: &str, head: &[u8], file_bytes: u64) -> Result<Parsed> {
        let first = FIRST_BYTES.min(file_bytes);
        if (head.len() as u64) < first {
            return Ok(Parsed::Needs(first));
        }
        let header = Header::parse(file, head, file_bytes)?;
        let (metadata, metadata_bytes) = match read_metadata(file, &header, head, file_bytes)? {
            Metadata::Read(metadata, bytes) => (metadata, bytes),
            Metadata::Needs(bytes) => return Ok(Parsed::Needs(bytes)),
        };
        let offsets_at = header.bytes() as u64 + metadata_bytes;
        let entries = match (header.has_offsets, header.chunks) {
            (false, _) => 0,
            (true, Some(chunks)) => chunks + header.spare,
            // Such a file does not say where the table ends and the chunks begin.
            (true, None) => {
                let what = format!("{file}: a table of offsets for an unknown number of chunks");
                return Err(Error::unsupported(what));
            }
        };
        let room = file_bytes.saturating_sub(offsets_at) / 8;
        if entries > room {
            let expected = format!("at most {room} in {file_bytes} bytes");
            return Err(corrupt(file, "entries of the offsets", expected, entries));
        }
        let chunks_at = offsets_at + entries * 8;
        if (head.len() as u64) < chunks_at {
            return Ok(Parsed::Needs(chunks_at));
        }
        let layout = Self { header, metadata, offsets_at, entries, chunks_at };
        let offsets = (0..entries).zip(table(head, offsets_at)).map(|(_, entry)| {
            u64::try_from(entry).ok().filter(|&offset| layout.has_place(offset, file_bytes))
        });
        let offsets = offsets.collect();
        Ok(Parsed::Whole(layout, offsets))
    }

    /// Refuses the offset of a chunk that cannot lie there, in a file of `file_bytes` bytes.
    pub fn check_offset(&self, file: &str, slot: u64, offset: u64, file_bytes: u64) -> Result<()> {
        if self.has_place(offset, file_bytes) {
            return Ok(());
        }
        let last = file_bytes.saturating_sub(BLOSC_HEADER_BYTES);
        let expected = format!("{} to {last}", self.chunks_at);
        Err(corrupt(file, &format!("the offset of chunk {slot}"), expected, offset.cast_signed()))
    }

    /// The position of a chunk's entry, if the table has one.
    pub fn entry_at(&self, slot: u64) -> Option<u64> {
        (slot < self.entries).then(|| self.offsets_at + 8 * slot)
    }

    /// Whether a chunk can begin there: a Blosc header must fit.
    fn has_place(&self, offset: u64, file_bytes: u64) -> bool {
        let end = offset.checked_add(BLOSC_HEADER_BYTES);
        offset >= self.chunks_at && end.is_some_and(|end| end <= file_bytes)
    }
}

/// The numbers from a position on, up to the end of `head`.
fn table(head: &[u8], at: u64) -> impl Iterator<Item = i64> {
    let from = usize::try_from(at).ok().and_then(|at| head.get(at..)).unwrap_or_default();
    from.as_chunks().0.iter().map(|&entry| i64::from_le_bytes(entry))
}

enum Metadata {
    /// The metadata, and how many bytes of the file it takes.
    Read(Option<Vec<u8>>, u64),
    Needs(u64),
}

fn read_metadata(file: &str, header: &Header, head: &[u8], file_bytes: u64) -> Result<Metadata> {
    let start = header.bytes();
    if !header.has_metadata {
        return Ok(Metadata::Read(None, 0));
    }
    let stored = head.get(start..).unwrap_or_default();
    let bytes = match header.version {
        Version::Final => match Section::bytes_of(file, stored)? {
            Some(bytes) => bytes,
            // The section's own header comes first; it gives the length of the rest.
            None => section::HEADER_BYTES as u64,
        },
        _ => u64::from(header.metadata_bytes),
    };
    let end = start as u64 + bytes;
    if end > file_bytes {
        let expected = format!("an end at {file_bytes} or before");
        return Err(corrupt(file, "the metadata", expected, end));
    }
    if (head.len() as u64) < end {
        return Ok(Metadata::Needs(end));
    }
    if header.version == Version::Final {
        let (section, len) = Section::parse(file, stored)?;
        let json = (section.magic == section::JSON).then_some(section.json);
        return Ok(Metadata::Read(json, len as u64));
    }
    let stored = usize::try_from(bytes).ok().and_then(|len| stored.get(..len)).unwrap_or_default();
    let json = match header.metadata_deflated {
        true => inflate_bare(file, stored)?,
        false => stored.to_vec(),
    };
    Ok(Metadata::Read(Some(json), bytes))
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::*;
    use crate::superchunk::bloscpack::Digest;

    /// The beginning of a file of the tool: 360 bytes with 40 numbers of four bytes.
    const FINAL: &[u8; 140] = b"blpk\x03\x03\x01\x04\x40\0\0\0\x20\0\0\0\
        \x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\
        JSON\0\0\0\0\0\x01\0\x06\x0f\0\0\0\x20\0\0\0\x0f\0\0\0\0\0\0\0\0\0\0\0\
        {\"dtype\":\"<i4\"}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xba\x04\x63\x28\
        \x8c\0\0\0\0\0\0\0\xe0\0\0\0\0\0\0\0\x34\x01\0\0\0\0\0\0\
        \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    /// The same in the layout of the document: 291 bytes.
    const INTERIM: &[u8; 71] = b"blpk\x03\x03\x01\x04\x40\0\0\0\x20\0\0\0\
        \x03\0\0\0\0\0\0\0\x0f\0\0\0\0\0\0\0{\"dtype\":\"<i4\"}\
        \x47\0\0\0\0\0\0\0\x9b\0\0\0\0\0\0\0\xef\0\0\0\0\0\0\0";

    fn whole(parsed: Result<Parsed>) -> (FileHead, Vec<Option<u64>>) {
        match parsed.unwrap() {
            Parsed::Whole(layout, offsets) => (layout, offsets),
            Parsed::Needs(bytes) => panic!("needs {bytes} bytes"),
        }
    }

    #[test]
    fn both_versions_3_of_the_same_data_say_where_its_chunks_are() {
        let (found, offsets) = whole(FileHead::parse("f", FINAL, 360));
        assert_eq!(offsets, [Some(0x8c), Some(0xe0), Some(0x134), None, None]);
        assert_eq!((found.offsets_at, found.entries, found.chunks_at), (100, 5, 140));
        assert_eq!(found.metadata.as_deref(), Some(&b"{\"dtype\":\"<i4\"}"[..]));
        assert_eq!([0, 4, 5].map(|slot| found.entry_at(slot)), [Some(100), Some(132), None]);

        let (interim, offsets) = whole(FileHead::parse("f", INTERIM, 291));
        assert_eq!(offsets, [Some(0x47), Some(0x9b), Some(0xef)]);
        assert_eq!((interim.offsets_at, interim.entries, interim.chunks_at), (47, 3, 71));
        assert_eq!(interim.metadata, found.metadata);
    }

    #[test]
    fn too_few_bytes_ask_for_as_many_as_are_needed() {
        for (file, len) in [(&FINAL[..], 360), (INTERIM, 291)] {
            let (mut given, mut turns) = (0, 0);
            while let Parsed::Needs(bytes) = FileHead::parse("f", &file[..given], len).unwrap() {
                assert!(bytes > given as u64 && bytes <= file.len() as u64);
                (given, turns) = (bytes as usize, turns + 1);
            }
            assert_eq!(given, file.len());
            assert!(turns <= 4, "{turns}");
        }
    }

    #[test]
    fn a_file_without_offsets_has_its_chunks_behind_the_header() {
        let header = Header { chunks: Some(1), ..Header::new(Version::V1) };
        let (layout, offsets) =
            whole(FileHead::parse("f", &[&*header.render().unwrap(), &[0; 17]].concat(), 560));
        assert_eq!((layout.chunks_at, layout.entries, offsets.len()), (16, 0, 0));
        let header = Header { digest: Digest::Crc32, ..Header::new(Version::V2) };
        let (layout, _) =
            whole(FileHead::parse("f", &[&*header.render().unwrap(), &[2]].concat(), 560));
        assert_eq!((layout.chunks_at, layout.header.chunks), (32, None));
    }

    #[test]
    fn metadata_of_another_kind_is_left_alone() {
        let mut bytes = *FINAL;
        bytes[32..36].copy_from_slice(b"YAML");
        assert_eq!(whole(FileHead::parse("f", &bytes, 360)).0.metadata, None);
    }

    #[test]
    fn offsets_that_lead_out_of_the_file_are_corrupt_where_a_chunk_is_counted() {
        for offset in [-2, 0, 139, 345, i64::MAX, i64::MIN] {
            let mut bytes = *FINAL;
            bytes[108..116].copy_from_slice(&offset.to_le_bytes());
            let error = FileHead::parse("f", &bytes, 360).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let text = error.to_string();
            assert!(text.contains("chunk 1: expected 140 to 344, found"), "{text}");
            assert_eq!(whole(FileHead::parse_torn("f", &bytes, 360)).1[1], None);

            let mut bytes = *FINAL;
            bytes[124..132].copy_from_slice(&offset.to_le_bytes());
            assert_eq!(whole(FileHead::parse("f", &bytes, 360)).1[3], None);
        }
        let mut bytes = *FINAL;
        bytes[108..116].copy_from_slice(&344i64.to_le_bytes());
        assert_eq!(whole(FileHead::parse("f", &bytes, 360)).1[1], Some(344));
    }

    #[test]
    fn more_than_a_file_can_hold_is_corrupt_before_memory_is_taken() {
        let bend = |at: usize, bytes: &[u8], file_bytes| {
            let mut bent = *FINAL;
            bent[at..at + bytes.len()].copy_from_slice(bytes);
            FileHead::parse("f", &bent, file_bytes).map_err(|error| error.kind())
        };
        let many = |chunks: i64| bend(16, &chunks.to_le_bytes(), 360);
        assert_eq!(many(1 << 60), Err(ErrorKind::Corrupt));
        assert_eq!(many(30), Ok(Parsed::Needs(356)));
        assert_eq!(bend(48, &u32::MAX.to_le_bytes(), 360), Err(ErrorKind::Corrupt));
        assert_eq!(bend(0, b"b", 199), Err(ErrorKind::Corrupt), "no room for three chunks");
        assert_eq!(bend(16, &[0xff; 16], 360), Err(ErrorKind::Corrupt));
        let mut unknown = *FINAL;
        unknown[16..24].fill(0xff);
        unknown[24] = 0;
        let error = FileHead::parse("f", &unknown, 360).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}
