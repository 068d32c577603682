//! How blocks are packed: whole runs of chunks, compressed together.
//!
//! Packing is not a codec of an array: a block knows neither elements nor chunks. Files name their
//! packing, so there is a registry of names. `lz4` and `zstd` are built in, as array-format 0.9
//! has them; `none` leaves bytes as they are. A program may [register](register_block_codec) others,
//! which then work wherever blocks are read and written.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use chunkyard_array::codec::packed;

use crate::error::{Error, Noun, Result};

/// The default level of zstd.
const ZSTD_LEVEL: i32 = 3;

/// The largest length that a block of a registered packing may claim: this crate cannot tell how
/// far its packed bytes expand.
const FOREIGN_BYTES_MAX: usize = 1 << 30;

/// One way to pack blocks. Pure functions of bytes.
pub trait BlockCodec: Send + Sync + std::fmt::Debug {
    /// Its name in files.
    fn name(&self) -> &str;

    /// Packs a block.
    fn pack(&self, plain: &[u8]) -> Result<Vec<u8>>;

    /// Packs a block into reused memory, whose content is dropped.
    fn pack_into(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        *out = self.pack(plain)?;
        Ok(())
    }

    /// Unpacks a block. Packed bytes that do not fill exactly `into` are an error.
    fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()>;

    /// Refuses packed bytes that cannot become `len` bytes, before memory is taken for these: the
    /// length comes from a file, and files lie.
    fn check_len(&self, packed: &[u8], len: usize) -> Result<()> {
        match len <= FOREIGN_BYTES_MAX.max(packed.len()) {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "a block of {len} bytes packed by {}; it may hold {FOREIGN_BYTES_MAX}",
                self.name()
            ))),
        }
    }
}

/// A `u32` with the length, then one LZ4 block.
#[derive(Debug)]
struct Lz4;

impl BlockCodec for Lz4 {
    fn name(&self) -> &str {
        "lz4"
    }

    fn pack(&self, plain: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        packed::lz4_pack(plain, &mut out)?;
        Ok(out)
    }

    fn pack_into(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        Ok(packed::lz4_pack(plain, out)?)
    }

    fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()> {
        Ok(packed::lz4_unpack(packed, into)?)
    }

    fn check_len(&self, packed: &[u8], len: usize) -> Result<()> {
        Ok(packed::lz4_check_len(packed, len)?)
    }
}

/// A Zstandard frame.
#[derive(Debug)]
struct Zstd {
    level: i32,
}

impl BlockCodec for Zstd {
    fn name(&self) -> &str {
        "zstd"
    }

    fn pack(&self, plain: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        packed::zstd_pack(plain, self.level, &mut out)?;
        Ok(out)
    }

    fn pack_into(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        Ok(packed::zstd_pack(plain, self.level, out)?)
    }

    fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()> {
        Ok(packed::zstd_unpack(packed, into)?)
    }

    fn check_len(&self, packed: &[u8], len: usize) -> Result<()> {
        Ok(packed::zstd_check_len(packed, len)?)
    }
}

/// Bytes as they are.
#[derive(Debug)]
struct Plain;

impl BlockCodec for Plain {
    fn name(&self) -> &str {
        "none"
    }

    fn pack(&self, plain: &[u8]) -> Result<Vec<u8>> {
        Ok(plain.to_vec())
    }

    fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()> {
        self.check_len(packed, into.len())?;
        into.copy_from_slice(packed);
        Ok(())
    }

    fn check_len(&self, packed: &[u8], len: usize) -> Result<()> {
        if packed.len() == len {
            return Ok(());
        }
        let (expected, found) = (format!("{len} bytes"), packed.len().to_string());
        Err(chunkyard_array::Error::corrupt("a block that is not packed", expected, found).into())
    }
}

/// The built-in packings come first, so that no other packing can take their names.
static CODECS: LazyLock<RwLock<BTreeMap<String, Arc<dyn BlockCodec>>>> = LazyLock::new(|| {
    let built_in: [Arc<dyn BlockCodec>; 3] =
        [Arc::new(Lz4), Arc::new(Plain), Arc::new(Zstd { level: ZSTD_LEVEL })];
    RwLock::new(built_in.into_iter().map(|codec| (codec.name().to_owned(), codec)).collect())
});

/// Makes a packing known to this process by its name. The first codec to take a name keeps it; the
/// same codec may be registered again.
pub fn register_block_codec(codec: Arc<dyn BlockCodec>) -> Result<()> {
    let name = codec.name().to_owned();
    let mut known = CODECS.write().unwrap_or_else(PoisonError::into_inner);
    match known.get(&name) {
        Some(other) if Arc::ptr_eq(other, &codec) => {}
        Some(_) => return Err(Error::AlreadyExists { what: Noun::BlockCodec, name }),
        None if name.is_empty() => return Err(Error::invalid("a packing of blocks has no name")),
        None => {
            known.insert(name, codec);
        }
    }
    Ok(())
}

/// The packing of a name: `lz4`, `zstd` (which packs at level 3), `none`, or one that was registered.
pub fn block_codec(name: &str) -> Result<Arc<dyn BlockCodec>> {
    let known = CODECS.read().unwrap_or_else(PoisonError::into_inner);
    known.get(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        Error::unsupported(format!("blocks packed by {name:?}; known are {}", names.join(", ")))
    })
}

/// zstd that packs at another level than 3. Unpacking is the same for all levels.
pub fn zstd_block_codec(level: i32) -> Result<Arc<dyn BlockCodec>> {
    // Refuses what is no level.
    packed::zstd_pack(&[], level, &mut Vec::new())?;
    Ok(Arc::new(Zstd { level }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// A packing of another program.
    #[derive(Debug)]
    struct Reversed(&'static str);

    impl BlockCodec for Reversed {
        fn name(&self) -> &str {
            self.0
        }

        fn pack(&self, plain: &[u8]) -> Result<Vec<u8>> {
            Ok(plain.iter().rev().copied().collect())
        }

        fn unpack(&self, packed: &[u8], into: &mut [u8]) -> Result<()> {
            Plain.unpack(packed, into)?;
            into.reverse();
            Ok(())
        }
    }

    #[test]
    fn every_packing_gives_back_what_it_was_given() {
        register_block_codec(Arc::new(Reversed("test.reversed"))).unwrap();
        let mut codecs = vec![zstd_block_codec(1).unwrap(), zstd_block_codec(-5).unwrap()];
        for name in ["lz4", "zstd", "none", "test.reversed"] {
            let codec = block_codec(name).unwrap();
            assert_eq!(codec.name(), name);
            codecs.push(codec);
        }
        for codec in codecs {
            for plain in [&b""[..], b"a", &[5; 100_000]] {
                let packed = codec.pack(plain).unwrap();
                codec.check_len(&packed, plain.len()).unwrap();
                let mut into = vec![0; plain.len()];
                codec.unpack(&packed, &mut into).unwrap();
                assert_eq!(into, plain, "{codec:?}");
                let mut more = vec![0; plain.len() + 1];
                let error = codec.unpack(&packed, &mut more).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec:?}");
            }
        }
    }

    #[test]
    fn the_first_packing_to_take_a_name_keeps_it() {
        let codec: Arc<dyn BlockCodec> = Arc::new(Reversed("test.taken"));
        register_block_codec(codec.clone()).unwrap();
        register_block_codec(codec).unwrap();
        for name in ["test.taken", "lz4", "zstd", "none"] {
            let error = register_block_codec(Arc::new(Reversed(name))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{name}");
        }
        let error = register_block_codec(Arc::new(Reversed(""))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_are_known() {
        let error = block_codec("brotli").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains("brotli") && text.contains("lz4") && text.contains("zstd"), "{text}");
        assert_eq!(zstd_block_codec(1000).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn impossible_lengths_are_refused_before_memory_is_taken() {
        register_block_codec(Arc::new(Reversed("test.lengths"))).unwrap();
        for name in ["lz4", "zstd", "none", "test.lengths"] {
            let codec = block_codec(name).unwrap();
            let packed = codec.pack(b"some bytes").unwrap();
            assert!(codec.check_len(&packed, usize::MAX / 2).is_err(), "{name}");
        }
    }
}
