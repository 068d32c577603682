//! Placing chunks: in the manifest, in a file of their own, or in a pack with others.
//!
//! A pack is chunks back to back, then a trailer that only recovery and verification read: an index
//! of the chunks, its checksum and length, and a magic number. One pack costs one fsync, whatever
//! the number of chunks in it.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Result, Uid};

use super::config::Config;
use super::coord::Coord;
use super::id;
use super::manifest::Native;
use super::parquet_file::corrupt;

/// Last eight bytes of a pack.
const MAGIC: &[u8; 8] = b"CYPACK\x00\x01";

/// A chunk of a pack, as listed in the trailer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackEntry {
    /// Identity of the array.
    pub uid: Uid,
    /// Which chunk.
    pub coord: Coord,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// CRC-32C of the bytes.
    pub crc32c: u32,
}

/// A file ready to be stored under `c/`.
#[derive(Debug)]
pub(super) struct ChunkFile {
    pub(super) name: Arc<str>,
    pub(super) parts: Vec<Bytes>,
}

/// Gathers chunks of a session into packs.
#[derive(Debug)]
pub(super) struct Packer {
    pack_bytes: u64,
    own_file_min: u64,
    fan_out: bool,
    open: Option<OpenPack>,
}

#[derive(Debug)]
struct OpenPack {
    name: Arc<str>,
    parts: Vec<Bytes>,
    length: u64,
    entries: Vec<PackEntry>,
}

impl Packer {
    /// `fan_out` spreads files over subdirectories, for stores that have real directories.
    pub(super) fn new(config: &Config, fan_out: bool) -> Self {
        Self {
            pack_bytes: config.pack_bytes,
            own_file_min: config.own_file_min,
            fan_out,
            open: None,
        }
    }

    /// Takes a chunk. Returns where it will be, and a file that is now complete.
    pub(super) fn add(
        &mut self,
        uid: Uid,
        coord: &Coord,
        bytes: Bytes,
    ) -> Result<(Native, Option<ChunkFile>)> {
        let (length, crc32c) = (bytes.len() as u64, crc32c::crc32c(&bytes));
        if length >= self.own_file_min {
            let name = file_name(self.fan_out)?;
            let native = Native { file: name.clone(), offset: 0, length, crc32c: Some(crc32c) };
            return Ok((native, Some(ChunkFile { name, parts: vec![bytes] })));
        }
        let pack = match &mut self.open {
            Some(pack) => pack,
            none => none.insert(OpenPack {
                name: file_name(self.fan_out)?,
                parts: Vec::new(),
                length: 0,
                entries: Vec::new(),
            }),
        };
        let offset = pack.length;
        pack.length += length;
        pack.parts.push(bytes);
        pack.entries.push(PackEntry { uid, coord: coord.clone(), offset, length, crc32c });
        let native = Native { file: pack.name.clone(), offset, length, crc32c: Some(crc32c) };
        let full = pack.length >= self.pack_bytes;
        Ok((native, if full { self.seal() } else { None }))
    }

    /// The bytes of a chunk that is still in the open pack.
    pub(super) fn get(&self, native: &Native) -> Option<Bytes> {
        let pack = self.open.as_ref().filter(|pack| pack.name == native.file)?;
        let at = pack.entries.binary_search_by_key(&native.offset, |entry| entry.offset).ok()?;
        pack.parts.get(at).cloned()
    }

    /// Completes the open pack.
    pub(super) fn seal(&mut self) -> Option<ChunkFile> {
        let mut pack = self.open.take()?;
        pack.parts.push(render_trailer(&pack.entries));
        Some(ChunkFile { name: pack.name, parts: pack.parts })
    }
}

fn file_name(fan_out: bool) -> Result<Arc<str>> {
    let id = id::fresh()?;
    // An identifier is 26 ASCII characters.
    Ok(if fan_out { format!("{}/{id}", id.get(..2).unwrap_or("00")).into() } else { id.into() })
}

pub(super) fn render_trailer(entries: &[PackEntry]) -> Bytes {
    let mut index = Vec::with_capacity(entries.len() * 48 + 64);
    index.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    for entry in entries {
        index.extend_from_slice(entry.uid.as_bytes());
        index.extend_from_slice(&entry.offset.to_le_bytes());
        index.extend_from_slice(&entry.length.to_le_bytes());
        index.extend_from_slice(&entry.crc32c.to_le_bytes());
        let coord = entry.coord.as_bytes();
        index.extend_from_slice(&(coord.len() as u32).to_le_bytes());
        index.extend_from_slice(coord);
    }
    let crc = crc32c::crc32c(&index);
    index.extend_from_slice(&crc.to_le_bytes());
    let length = index.len() as u64;
    index.extend_from_slice(&length.to_le_bytes());
    index.extend_from_slice(MAGIC);
    index.into()
}

/// Reads the trailer of a pack; `None` when the file has none (a chunk in a file of its own).
pub(super) fn parse_trailer(file: &str, bytes: &[u8]) -> Result<Option<Vec<PackEntry>>> {
    let Some(body) = bytes.strip_suffix(MAGIC) else { return Ok(None) };
    let bad = |what: &str, found: &str| corrupt(file, what, "a sound pack trailer", found);
    let (body, length) = body.split_last_chunk().ok_or_else(|| bad("length", "too short"))?;
    let length = u64::from_le_bytes(*length);
    let start = (body.len() as u64)
        .checked_sub(length)
        .ok_or_else(|| bad("index length", &length.to_string()))? as usize;
    let index = body.get(start..).unwrap_or_default();
    let (index, crc) = index.split_last_chunk().ok_or_else(|| bad("index", "too short"))?;
    super::parquet_file::check_crc(file, "pack index", u32::from_le_bytes(*crc), index)?;
    parse_index(index, start as u64)
        .ok_or_else(|| bad("index", "entries that do not fit"))
        .map(Some)
}

fn parse_index(index: &[u8], data_len: u64) -> Option<Vec<PackEntry>> {
    let (count, mut rest) = index.split_first_chunk()?;
    let count = u64::from_le_bytes(*count);
    let mut entries = Vec::new();
    for _ in 0..count {
        let (uid, after) = rest.split_first_chunk::<16>()?;
        let (offset, after) = after.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let (crc, after) = after.split_first_chunk()?;
        let (coord_len, after) = after.split_first_chunk()?;
        let (coord, after) = after.split_at_checked(u32::from_le_bytes(*coord_len) as usize)?;
        let (offset, length) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*length));
        if offset.checked_add(length)? > data_len {
            return None;
        }
        entries.push(PackEntry {
            uid: Uid::try_from(&uid[..]).ok()?,
            coord: Coord::from_bytes(coord),
            offset,
            length,
            crc32c: u32::from_le_bytes(*crc),
        });
        rest = after;
    }
    rest.is_empty().then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_trailer_round_trips_and_any_flipped_bit_is_found() {
        let mut packer = Packer::new(&Config::default(), false);
        let uid = Uid::fresh().unwrap();
        for at in 0..5u64 {
            let (native, full) = packer
                .add(uid, &Coord::encode(&[at, 300]), Bytes::from(vec![at as u8; 700]))
                .unwrap();
            assert!(full.is_none());
            assert_eq!((native.offset, native.length), (at * 700, 700));
            assert_eq!(packer.get(&native).unwrap()[0], at as u8);
        }
        let pack = packer.seal().unwrap().parts.concat();
        let entries = parse_trailer("p", &pack).unwrap().unwrap();
        assert_eq!(entries.len(), 5);
        assert_eq!(entries[3].coord, Coord::encode(&[3, 300]));
        for bit in 3500 * 8..pack.len() * 8 {
            let mut broken = pack.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert!(parse_trailer("p", &broken).is_err() || bit / 8 >= pack.len() - 8);
        }
    }

    #[test]
    fn a_full_pack_is_handed_over_and_large_chunks_get_their_own_file() {
        let config = Config { pack_bytes: 1000, own_file_min: 5000, ..Config::default() };
        let mut packer = Packer::new(&config, true);
        let uid = Uid::fresh().unwrap();
        let at = Coord::encode(&[0]);
        assert!(packer.add(uid, &at, Bytes::from(vec![1; 600])).unwrap().1.is_none());
        let (native, own) = packer.add(uid, &at, Bytes::from(vec![1; 5000])).unwrap();
        assert_eq!((native.offset, own.unwrap().parts.len()), (0, 1));
        let (second, full) = packer.add(uid, &at, Bytes::from(vec![1; 600])).unwrap();
        assert_eq!(second.offset, 600);
        assert_eq!(full.unwrap().name, second.file);
        assert!(packer.seal().is_none());
    }
}
