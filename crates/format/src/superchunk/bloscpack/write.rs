//! Writes Bloscpack files: a head of fixed length, chunks behind it, and the two small writes that
//! count one more chunk.

use chunkyard_store::{Error, Result};

use super::section::Section;
use super::{BLOSC_HEADER_BYTES, Digest, Header, Version, array};

/// How the metadata of the final version is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionOptions {
    /// Its checksum.
    pub digest: Digest,
    /// Whether it is compressed where that makes it shorter.
    pub deflate: bool,
    /// How hard, 0 to 9.
    pub level: u8,
    /// Bytes it may grow to; ten times its length if not given.
    pub room: Option<u32>,
}

impl Default for SectionOptions {
    /// The tool's choices.
    fn default() -> Self {
        Self { digest: Digest::Adler32, deflate: true, level: 6, room: None }
    }
}

/// The properties of a file that do not change while it grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// The version to write.
    pub version: Version,
    /// What follows each chunk.
    pub digest: Digest,
    /// The type size that Blosc was given.
    pub item: u8,
    /// Uncompressed bytes of every chunk but the last.
    pub chunk_bytes: u32,
    /// Metadata: JSON.
    pub metadata: Option<Vec<u8>>,
    /// How the final version stores it; the interim one stores it as it is.
    pub section: SectionOptions,
    /// Whether there is a table of offsets.
    pub offsets: bool,
    /// How many entries the table has. Only the final version may have more entries than chunks.
    pub entries: u64,
}

impl FileSpec {
    /// A file of the final version as the tool writes it, with room for `entries` chunks.
    pub fn new(item: u8, chunk_bytes: u32, entries: u64) -> Self {
        Self {
            version: Version::Final,
            digest: Digest::Adler32,
            item,
            chunk_bytes,
            metadata: None,
            section: SectionOptions::default(),
            offsets: true,
            entries,
        }
    }

    /// The header of the file while it has `count` chunks, the last of `last_chunk_bytes`.
    pub fn header(&self, count: u64, last_chunk_bytes: u32) -> Result<Header> {
        let chunks = Some(count);
        if self.version == Version::V1 {
            return match self.digest == Digest::None && self.metadata.is_none() && !self.offsets {
                true => Ok(Header { chunks, ..Header::new(Version::V1) }),
                false => Err(Error::invalid(
                    "a Bloscpack file of version 1 has no checksums, metadata or offsets",
                )),
            };
        }
        let spare = match self.offsets {
            true => self.entries.checked_sub(count).ok_or_else(|| self.too_many(count))?,
            false => 0,
        };
        let metadata_bytes = match (self.version, &self.metadata) {
            (Version::Interim, Some(json)) => u32::try_from(json.len())
                .map_err(|_| Error::invalid(format!("metadata of {} bytes", json.len())))?,
            _ => 0,
        };
        Ok(Header {
            has_offsets: self.offsets,
            has_metadata: self.metadata.is_some(),
            digest: self.digest,
            item: self.item,
            chunk_bytes: Some(self.chunk_bytes),
            last_chunk_bytes: Some(last_chunk_bytes),
            chunks,
            spare,
            metadata_bytes,
            ..Header::new(self.version)
        })
    }

    /// Bytes of the header.
    fn header_bytes(&self) -> u64 {
        Header::new(self.version).bytes() as u64
    }

    /// The metadata section of the final version, where it has one.
    fn section(&self) -> Result<Option<Section>> {
        let Some(json) = self.metadata.as_ref().filter(|_| self.version == Version::Final) else {
            return Ok(None);
        };
        let section = Section::new(json.clone())?;
        let SectionOptions { digest, deflate, level, room } = self.section;
        Ok(Some(Section { digest, deflate, level, room: room.unwrap_or(section.room), ..section }))
    }

    /// Where the table of offsets begins.
    fn offsets_at(&self) -> Result<u64> {
        let metadata = match (self.version, &self.metadata) {
            (Version::Interim, Some(json)) => json.len() as u64,
            _ => self.section()?.map_or(0, |section| section.bytes()),
        };
        Ok(self.header_bytes() + metadata)
    }

    fn too_many(&self, count: u64) -> Error {
        let entries = self.entries;
        Error::invalid(format!("a Bloscpack file with {entries} offsets: {count} chunks are more"))
    }
}

/// Bytes before the first chunk, however many chunks there are.
pub fn head_bytes(spec: &FileSpec) -> Result<u64> {
    let entries = if spec.offsets { spec.entries } else { 0 };
    let table = entries.checked_mul(8);
    let end = table.and_then(|bytes| spec.offsets_at().map(|at| at.checked_add(bytes)).transpose());
    end.unwrap_or_else(|| Err(Error::invalid(format!("a table of {entries} offsets"))))
}

/// Everything before the first chunk: header, metadata, and the offsets `chunks`.
///
/// Its length depends on the spec only.
pub fn render_head(spec: &FileSpec, chunks: &[u64], last_chunk_bytes: u32) -> Result<Vec<u8>> {
    let header = spec.header(chunks.len() as u64, last_chunk_bytes)?;
    let mut out = header.render()?;
    match (spec.section()?, &spec.metadata) {
        (Some(section), _) => out.extend(section.render()?),
        (None, Some(json)) => out.extend(json),
        (None, None) => {}
    }
    if spec.offsets {
        chunks.iter().for_each(|offset| out.extend(offset.to_le_bytes()));
        (0..header.spare).for_each(|_| out.extend((-1i64).to_le_bytes()));
    }
    Ok(out)
}

/// A whole file: its head, then each chunk with its checksum.
pub fn render_file(spec: &FileSpec, chunks: &[&[u8]]) -> Result<Vec<u8>> {
    let digest_bytes = spec.digest.bytes() as u64;
    let mut at = head_bytes(spec)?;
    let mut offsets = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        offsets.push(at);
        at += chunk.len() as u64 + digest_bytes;
    }
    let mut last_chunk_bytes = spec.chunk_bytes;
    for (number, chunk) in chunks.iter().enumerate() {
        last_chunk_bytes = plain_bytes(number, chunk)?;
        let is_last = number + 1 == chunks.len();
        if !is_last && last_chunk_bytes != spec.chunk_bytes && spec.version != Version::V1 {
            let expected = spec.chunk_bytes;
            let what = format!("chunk {number} of {last_chunk_bytes} bytes: expected {expected}");
            return Err(Error::invalid(what));
        }
    }
    let mut out = render_head(spec, &offsets, last_chunk_bytes)?;
    for chunk in chunks {
        out.extend_from_slice(chunk);
        out.extend(spec.digest.of(chunk));
    }
    Ok(out)
}

/// The two writes, each a position and bytes, that add a full chunk at `offset` to a file of the final
/// version, in this order: its entry, then the header that counts `count` chunks.
pub fn patch_for(
    spec: &FileSpec,
    slot: u64,
    offset: u64,
    count: u64,
) -> Result<[(u64, Vec<u8>); 2]> {
    if spec.version != Version::Final || !spec.offsets {
        return Err(Error::invalid("only a Bloscpack file of version 3 with offsets can grow"));
    }
    if slot >= count || slot >= spec.entries {
        return Err(spec.too_many(slot.max(count)));
    }
    let header = spec.header(count, spec.chunk_bytes)?.render()?;
    let entry_at = spec.offsets_at()? + 8 * slot;
    Ok([(entry_at, offset.to_le_bytes().to_vec()), (0, header)])
}

/// Uncompressed bytes of a chunk, which must be exactly one Blosc buffer.
fn plain_bytes(number: usize, chunk: &[u8]) -> Result<u32> {
    let [plain, whole] = [4, 12].map(|at| array(chunk, at).map(u32::from_le_bytes));
    match (plain, whole) {
        (Some(plain), Some(whole))
            if u64::from(whole) == chunk.len() as u64
                && chunk.len() as u64 >= BLOSC_HEADER_BYTES =>
        {
            Ok(plain)
        }
        _ => Err(Error::invalid(format!("chunk {number}: not one Blosc buffer"))),
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::super::{FileHead, Parsed};
    use super::*;

    /// A Blosc buffer whose bytes are not compressed.
    fn chunk(numbers: std::ops::Range<u32>) -> Vec<u8> {
        let plain: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        let len = plain.len() as u32;
        let sizes = [len, len, len + 16].map(u32::to_le_bytes).concat();
        [&[2, 1, 0x33, 4][..], &sizes, &plain].concat()
    }

    fn spec() -> FileSpec {
        FileSpec {
            metadata: Some(b"{\"dtype\":\"<i4\"}".to_vec()),
            section: SectionOptions { room: Some(32), ..SectionOptions::default() },
            ..FileSpec::new(4, 64, 5)
        }
    }

    /// The 40 numbers of the worked example.
    fn chunks() -> [Vec<u8>; 3] {
        [chunk(0..16), chunk(16..32), chunk(32..40)]
    }

    fn render(spec: &FileSpec) -> Result<Vec<u8>> {
        render_file(spec, &chunks().each_ref().map(Vec::as_slice))
    }

    fn offsets(file: &[u8]) -> Vec<Option<u64>> {
        match FileHead::parse("f", file, file.len() as u64).unwrap() {
            Parsed::Whole(_, offsets) => offsets,
            Parsed::Needs(bytes) => panic!("needs {bytes} bytes"),
        }
    }

    #[test]
    fn the_worked_example_is_written_as_the_tool_wrote_it() {
        let file = render(&spec()).unwrap();
        assert_eq!(file.len(), 360);
        assert_eq!(file[0xdc..0xe0], [0x83, 0x01, 0xdd, 0x56]);
        assert_eq!(file[0x130..0x134], [0x83, 0x02, 0xdd, 0x78]);
        assert_eq!(file[0x160..], [0x27, 0, 0, 0, 0xc7, 0x01, 0x2d, 0x2f]);
        assert_eq!(offsets(&file), [Some(0x8c), Some(0xe0), Some(0x134), None, None]);
        assert_eq!(head_bytes(&spec()).unwrap(), 0x8c);
    }

    #[test]
    fn the_worked_example_of_the_document_is_written_too() {
        let file = render(&FileSpec { version: Version::Interim, entries: 3, ..spec() }).unwrap();
        assert_eq!(file.len(), 291);
        assert_eq!(offsets(&file), [Some(0x47), Some(0x9b), Some(0xef)]);
    }

    #[test]
    fn every_version_and_checksum_is_as_long_as_it_says_and_is_read_again() {
        for version in [Version::V1, Version::V2, Version::Interim, Version::Final] {
            for digest in Digest::ALL {
                let first = version == Version::V1;
                let digest = if first { Digest::None } else { digest };
                let metadata = (!first && version != Version::V2).then(|| b"{}".to_vec());
                let spec =
                    FileSpec { version, digest, metadata, offsets: !first, entries: 3, ..spec() };
                let file = render(&spec).unwrap();
                let data: usize = chunks().iter().map(|chunk| chunk.len() + digest.bytes()).sum();
                assert_eq!(file.len() as u64, head_bytes(&spec).unwrap() + data as u64);
                let Parsed::Whole(layout, _) =
                    FileHead::parse("f", &file, file.len() as u64).unwrap()
                else {
                    panic!("all bytes were given")
                };
                assert_eq!(layout.metadata, spec.metadata);
                assert_eq!(layout.header, spec.header(3, 32).unwrap());
            }
        }
    }

    #[test]
    fn a_grown_file_is_the_file_written_at_once() {
        let spec = spec();
        let [first, second, _] = chunks();
        let mut grown = render_file(&spec, &[&first]).unwrap();
        let at = grown.len() as u64;
        grown.extend(&second);
        grown.extend(spec.digest.of(&second));
        for (position, bytes) in patch_for(&spec, 1, at, 2).unwrap() {
            let position = position as usize;
            grown[position..position + bytes.len()].copy_from_slice(&bytes);
        }
        assert_eq!(grown, render_file(&spec, &[&first, &second]).unwrap());
    }

    #[test]
    fn a_file_of_nothing_has_no_chunks_or_an_empty_one() {
        let spec = FileSpec { metadata: None, ..FileSpec::new(1, 0, 1) };
        assert_eq!(offsets(&render_file(&spec, &[]).unwrap()), [None]);
        assert_eq!(offsets(&render_file(&spec, &[&chunk(0..0)]).unwrap()), [Some(40)]);
    }

    #[test]
    fn impossible_files_are_refused() {
        let first = FileSpec { version: Version::V1, ..spec() };
        let full = FileSpec { entries: 2, ..spec() };
        let spare = FileSpec { version: Version::V2, metadata: None, ..spec() };
        let other = FileSpec { chunk_bytes: 65, ..spec() };
        for spec in [&first, &full, &spare, &other] {
            assert_eq!(render(spec).unwrap_err().kind(), ErrorKind::Invalid, "{spec:?}");
        }
        assert!(render_file(&spec(), &[b"no chunk"]).is_err());
        assert!(head_bytes(&FileSpec { entries: u64::MAX, ..spec() }).is_err());
        assert!(patch_for(&spec(), 5, 400, 6).is_err());
        assert!(patch_for(&spec(), 2, 400, 2).is_err());
        assert!(patch_for(&spare, 0, 400, 1).is_err());
    }
}
