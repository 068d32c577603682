//! A layer being written: chunks go in, a file comes out.
//!
//! Large chunks are blocks of their own, so that reading one chunk reads one block; small ones share
//! a block of about a mebibyte. Blocks are packed on the compute threads, some at a time, and
//! written in the order in which they were closed. Memory is bounded by the bytes that wait to be
//! packed, plus, for a file that turns out small, the file.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::atomic::Content;
use chunkyard_store::{BlockCodec, Error, Result, Store, Upload, cpu};
use rayon::prelude::*;

use crate::container::bytes::footer::{NewArray, NewFooter, render};
use crate::container::bytes::seal::Seal;
use crate::container::bytes::stats_file;
use crate::container::bytes::trailer::render_trailer;
use crate::container::model::{
    ArrayMeta, ArrayStats, AttributeValue, BlockMeta, ChunkAddress, IndexWidth, to_u32,
};

/// Chunks of at least this size are blocks of their own.
pub(crate) const WHOLE_BYTES_MIN: u64 = 64 << 10;

/// Bytes that wait to be packed, in all.
const CLOSED_BYTES_MAX: u64 = 16 << 20;

/// A file up to this size is put in one request.
const SMALL_FILE_BYTES_MAX: u64 = 32 << 20;

/// The bytes of a chunk.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// As they are in an unpacked block.
    Plain(Bytes),
    /// Packed already, as a block of its own.
    Packed {
        /// The packed bytes.
        bytes: Bytes,
        /// Bytes when unpacked.
        len: u64,
        /// Name of the codec; `None` for plain bytes.
        codec: Option<Arc<str>>,
    },
    /// A part of a block that is taken over unchanged, with all of its chunks.
    Within {
        /// Which block it is: the key of its layer, and its number there.
        block: (u64, u32),
        /// Its packed bytes.
        bytes: Bytes,
        /// Its bytes when unpacked.
        len: u64,
        /// Name of its codec.
        codec: Option<Arc<str>>,
        /// Where the chunk begins in it.
        offset: u32,
        /// Bytes of the chunk.
        size: u32,
    },
}

/// The facts that a layer states about itself, apart from its arrays.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) container: [u8; 16],
    pub(crate) layer: [u8; 16],
    pub(crate) parent: [u8; 16],
    pub(crate) sequence: u64,
    pub(crate) absorbed: Vec<(u64, [u8; 16])>,
    pub(crate) overlay_index: u32,
    pub(crate) base_file_hint: String,
}

/// A layer being written.
#[derive(Debug)]
pub(crate) struct Draft {
    output: Output,
    codec: Arc<dyn BlockCodec>,
    block_bytes: u64,
    blocks: Vec<BlockMeta>,
    crcs: Vec<u32>,
    arrays: Vec<DraftArray>,
    shared: SharedBlock,
    closed: Vec<ClosedBlock>,
    closed_bytes: u64,
    /// Blocks that have a number.
    numbered: u32,
    /// The numbers of blocks that were taken over.
    taken: HashMap<(u64, u32), u32>,
}

#[derive(Debug)]
struct DraftArray {
    meta: ArrayMeta,
    attributes: Vec<(String, AttributeValue)>,
    coords: Vec<u32>,
    addresses: Vec<ChunkAddress>,
}

/// A block that small chunks are put into.
#[derive(Debug, Default)]
struct SharedBlock {
    parts: Vec<Bytes>,
    len: u64,
    /// The chunks whose addresses wait for the number of the block: array and entry.
    entries: Vec<(usize, usize)>,
}

/// A block that is closed but not yet written.
#[derive(Debug)]
enum ClosedBlock {
    Plain { parts: Vec<Bytes>, len: u64 },
    Packed { bytes: Bytes, len: u64, codec: Option<Arc<str>> },
}

impl Draft {
    /// A layer without arrays. Writing begins once enough has been collected.
    pub(crate) fn new(
        store: &Store,
        temporary: String,
        codec: Arc<dyn BlockCodec>,
        block_bytes: u64,
    ) -> Self {
        Self {
            output: Output {
                store: store.clone(),
                temporary,
                at: 0,
                parts: Vec::new(),
                upload: None,
            },
            codec,
            block_bytes,
            blocks: Vec::new(),
            crcs: Vec::new(),
            arrays: Vec::new(),
            shared: SharedBlock::default(),
            closed: Vec::new(),
            closed_bytes: 0,
            numbered: 0,
            taken: HashMap::new(),
        }
    }

    /// Begins an array; the chunks pushed next belong to it. Arrays come sorted by name.
    pub(crate) fn begin_array(
        &mut self,
        meta: ArrayMeta,
        attributes: Vec<(String, AttributeValue)>,
    ) {
        let (coords, addresses) = (Vec::new(), Vec::new());
        self.arrays.push(DraftArray { meta, attributes, coords, addresses });
    }

    /// Adds a chunk of the last array. Chunks come in row-major order.
    pub(crate) async fn push(&mut self, coord: &[u32], piece: Piece) -> Result<()> {
        let number = self.arrays.len().wrapping_sub(1);
        let Some(array) = self.arrays.get_mut(number) else {
            return Err(Error::invalid("a chunk of no array"));
        };
        let entry = array.addresses.len();
        array.coords.extend_from_slice(coord);
        let name = || format!("chunk {coord:?}");
        match piece {
            Piece::Plain(bytes) if (bytes.len() as u64) < WHOLE_BYTES_MIN => {
                let size = to_u32(name, bytes.len() as u64)?;
                let offset = to_u32(name, self.shared.len)?;
                array.addresses.push(ChunkAddress { block: 0, offset, size });
                self.shared.len += u64::from(size);
                self.shared.parts.push(bytes);
                self.shared.entries.push((number, entry));
                if self.shared.len >= self.block_bytes {
                    self.close_shared()?;
                }
            }
            Piece::Plain(bytes) => {
                let len = bytes.len() as u64;
                let size = to_u32(name, len)?;
                array.addresses.push(ChunkAddress { block: self.numbered, offset: 0, size });
                self.close(ClosedBlock::Plain { parts: vec![bytes], len }, len)?;
            }
            Piece::Packed { bytes, len, codec } => {
                let size = to_u32(name, len)?;
                array.addresses.push(ChunkAddress { block: self.numbered, offset: 0, size });
                let waits = bytes.len() as u64;
                self.close(ClosedBlock::Packed { bytes, len, codec }, waits)?;
            }
            Piece::Within { block, bytes, len, codec, offset, size } => {
                let known = self.taken.get(&block).copied();
                let number = known.unwrap_or(self.numbered);
                array.addresses.push(ChunkAddress { block: number, offset, size });
                if known.is_none() {
                    self.taken.insert(block, number);
                    let waits = bytes.len() as u64;
                    self.close(ClosedBlock::Packed { bytes, len, codec }, waits)?;
                }
            }
        }
        if self.closed_bytes >= CLOSED_BYTES_MAX {
            self.write_closed().await?;
        }
        Ok(())
    }

    fn close(&mut self, block: ClosedBlock, bytes: u64) -> Result<()> {
        self.numbered = self
            .numbered
            .checked_add(1)
            .ok_or_else(|| Error::invalid(format!("a layer holds at most {} blocks", u32::MAX)))?;
        self.closed.push(block);
        self.closed_bytes += bytes;
        Ok(())
    }

    fn close_shared(&mut self) -> Result<()> {
        let shared = std::mem::take(&mut self.shared);
        if shared.entries.is_empty() {
            return Ok(());
        }
        for (array, entry) in shared.entries {
            let address = self.arrays.get_mut(array).and_then(|a| a.addresses.get_mut(entry));
            if let Some(address) = address {
                address.block = self.numbered;
            }
        }
        self.close(ClosedBlock::Plain { parts: shared.parts, len: shared.len }, shared.len)
    }

    async fn write_closed(&mut self) -> Result<()> {
        let closed = std::mem::take(&mut self.closed);
        self.closed_bytes = 0;
        if closed.is_empty() {
            return Ok(());
        }
        let codec = self.codec.clone();
        let packed = cpu(move || {
            closed.into_par_iter().map(|block| pack(block, &*codec)).collect::<Result<Vec<_>>>()
        })
        .await??;
        for block in packed {
            let compressed_size = block.parts.iter().map(|part| part.len() as u64).sum();
            self.blocks.push(BlockMeta {
                id: u32::try_from(self.blocks.len()).unwrap_or(u32::MAX),
                file_offset: self.output.at,
                compressed_size,
                uncompressed_size: block.len,
                codec: block.codec.map(|name| name.to_string()),
            });
            self.crcs.push(block.crc);
            self.output.write(block.parts).await?;
        }
        Ok(())
    }

    /// Ends the file with seal, footer and trailer.
    pub(crate) async fn finish(
        mut self,
        identity: &Identity,
        statistics: &[ArrayStats],
    ) -> Result<Finished> {
        self.close_shared()?;
        self.write_closed().await?;
        let dictionary = Dictionary::intern(&mut self.arrays)?;
        let (blocks, crcs, arrays) = (self.blocks, self.crcs, self.arrays);
        let (identity, statistics) = (identity.clone(), statistics.to_vec());
        let end = cpu(move || {
            let footer = NewFooter {
                blocks: &blocks,
                arrays: &arrays
                    .iter()
                    .map(|array| NewArray {
                        meta: &array.meta,
                        coords: &array.coords,
                        addresses: &array.addresses,
                    })
                    .collect::<Vec<_>>(),
                attr_keys: &dictionary.keys,
                attr_values: &dictionary.values,
                overlay_index: identity.overlay_index,
                base_file_hint: &identity.base_file_hint,
            };
            let payload = render(&footer)?;
            let statistics = match statistics.is_empty() {
                true => Vec::new(),
                false => {
                    let mut payload = stats_file::render_payload(&statistics);
                    payload.extend(crc32c::crc32c(&payload).to_le_bytes());
                    payload
                }
            };
            let seal = Seal {
                container: identity.container,
                layer: identity.layer,
                parent: identity.parent,
                sequence: identity.sequence,
                arrays_sorted: true,
                chunks_sorted: true,
                absorbed: identity.absorbed,
                ..Seal::default()
            };
            let seal = seal.render(&crcs, &payload, &statistics);
            let trailer = render_trailer(payload.len() as u64);
            Ok::<_, Error>([Bytes::from(seal), payload.into(), trailer.to_vec().into()])
        })
        .await??;
        self.output.write(end.into()).await?;
        self.output.finish().await
    }
}

struct PackedBlock {
    parts: Vec<Bytes>,
    len: u64,
    codec: Option<Arc<str>>,
    crc: u32,
}

fn pack(block: ClosedBlock, codec: &dyn BlockCodec) -> Result<PackedBlock> {
    let (parts, len, name) = match block {
        ClosedBlock::Packed { bytes, len, codec } => (vec![bytes], len, codec),
        ClosedBlock::Plain { parts, len } if codec.name() == "none" => (parts, len, None),
        ClosedBlock::Plain { parts, len } => {
            let packed = match parts.as_slice() {
                [only] => codec.pack(only)?,
                several => codec.pack(&several.concat())?,
            };
            (vec![packed.into()], len, Some(codec.name().into()))
        }
    };
    let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
    Ok(PackedBlock { parts, len, codec: name, crc })
}

/// The keys and values of all attributes of a layer, each once.
struct Dictionary {
    keys: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Dictionary {
    /// Gives the arrays their indices, as wide as needed.
    fn intern(arrays: &mut [DraftArray]) -> Result<Self> {
        let mut keys: HashMap<String, u64> = HashMap::new();
        // Values have no order and no hash; their rendering tells different ones apart.
        let mut values: HashMap<String, u64> = HashMap::new();
        let mut all = Self { keys: Vec::new(), values: Vec::new() };
        for array in arrays {
            let mut pairs = Vec::with_capacity(array.attributes.len());
            for (key, value) in std::mem::take(&mut array.attributes) {
                let value_at = *values.entry(distinct(&value)).or_insert_with(|| {
                    all.values.push(value);
                    all.values.len() as u64 - 1
                });
                let key_at = match keys.get(&key) {
                    Some(&at) => at,
                    None => {
                        all.keys.push(key.clone());
                        keys.insert(key, all.keys.len() as u64 - 1);
                        all.keys.len() as u64 - 1
                    }
                };
                pairs.push((key_at, value_at));
            }
            pairs.sort_unstable();
            let widest = pairs.iter().map(|&(key, value)| key.max(value)).max().unwrap_or(0);
            array.meta.index_width = match widest {
                0..=0xffff => IndexWidth::U16,
                0x1_0000..=0xffff_ffff => IndexWidth::U32,
                _ => IndexWidth::U64,
            };
            array.meta.attributes = pairs;
        }
        Ok(all)
    }
}

/// Text that two values share only if they are the same, bit for bit.
fn distinct(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Float32(value) => format!("f{:08x}", value.to_bits()),
        AttributeValue::Float64(value) => format!("d{:016x}", value.to_bits()),
        other => format!("{other:?}"),
    }
}

/// A layer that is complete but not yet visible.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Bytes of the file.
    pub(crate) size: u64,
    pub(crate) content: Content,
}

/// The bytes written so far: in memory while they are few.
#[derive(Debug)]
struct Output {
    store: Store,
    temporary: String,
    at: u64,
    parts: Vec<Bytes>,
    upload: Option<Box<dyn Upload>>,
}

impl Output {
    async fn write(&mut self, parts: Vec<Bytes>) -> Result<()> {
        self.at += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        match &mut self.upload {
            Some(upload) => upload.write(parts).await,
            None => {
                self.parts.extend(parts);
                if self.at > SMALL_FILE_BYTES_MAX {
                    let mut upload = self.store.begin(&self.temporary).await?;
                    upload.write(std::mem::take(&mut self.parts)).await?;
                    self.upload = Some(upload);
                }
                Ok(())
            }
        }
    }

    async fn finish(self) -> Result<Finished> {
        let content = match self.upload {
            Some(upload) => {
                upload.finish().await?;
                Content::Aside(self.temporary)
            }
            None => Content::Parts(self.parts),
        };
        Ok(Finished { size: self.at, content })
    }
}
