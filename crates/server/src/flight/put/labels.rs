//! Label blocks that become a labelmap.
//!
//! Blocks come in any order, and a labelmap is made of boxes in its own order. So blocks are kept as chunks of an array in a session
//! that is never committed, and the labelmap is imported from there when all have come.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::{Int32Type, UInt32Type};
use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::{Block, SIZE_MAX};
use chunkyard_array::codec::packed::zstd_unpacked;
use chunkyard_array::codec::{Elements, gunzip};
use chunkyard_engine::export::join_labels;
use chunkyard_engine::format::{Meter, Source};
use chunkyard_engine::labels::{ArrayVolume, Labelmap, Layout, Mapping};
use chunkyard_engine::repo::{Array, RepoSource, Repository, Session};
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Noun, Result};

use super::NewLabelmap;
use super::columns::{binaries, cell, list, lists, numbers, texts};

/// Bytes of a label block without compression at most: a table of as many labels as voxels, and what else there is.
const BLOCK_BYTES_MAX: usize = 16 * (SIZE_MAX as usize).pow(3);
/// Where blocks wait, in the session that is not committed.
const WAITING: &str = "/waiting";

/// Blocks that wait for the others.
pub(super) struct Blocks {
    target: NewLabelmap,
    /// Gets the labelmap.
    session: Arc<Session>,
    /// Has the blocks until then; committed never.
    aside: Arc<Session>,
    /// Made when the first block says how large blocks are: its array and the size of a block.
    waiting: Option<(Array, [u32; 3])>,
}

/// A block that was put together, decoded.
struct Decoded {
    size: [u32; 3],
    /// Little-endian, x fastest.
    voxels: Vec<u8>,
}

impl Blocks {
    pub(super) async fn open(repository: &Repository, target: NewLabelmap) -> Result<Self> {
        if target.size.contains(&0) {
            return Err(Error::invalid(format!("a labelmap of the size {:?}", target.size)));
        }
        let session = repository.writable_session(&target.branch).await?;
        if session.node(&target.path).is_ok() {
            let name = format!("{}, and a labelmap is made anew of blocks", target.path);
            return Err(Error::AlreadyExists { what: Noun::Node, name });
        }
        let aside = repository.writable_session(&target.branch).await?;
        Ok(Self { target, session, aside, waiting: None })
    }

    pub(super) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let [x, y, z] = ["x", "y", "z"].map(|axis| numbers::<Int32Type>(batch, axis));
        let (x, y, z) = (x?, y?, z?);
        let (supervoxels, data) = (lists(batch, "supervoxels")?, binaries(batch, "data")?);
        let (codecs, crcs) = (texts(batch, "codec")?, numbers::<UInt32Type>(batch, "crc32c")?);
        for row in 0..batch.num_rows() {
            let at = [x, y, z].map(|axis| axis.value(row));
            let (bytes, codec) = (cell(data, row), codecs.value(row).to_owned());
            let (expected, found) = (crcs.value(row), crc32c::crc32c(&bytes));
            if expected != found {
                return Err(Error::invalid(format!(
                    "the block at {at:?} has the CRC-32C {found:08x}, not {expected:08x}"
                )));
            }
            let (labels, stripped) = (list(supervoxels, row)?, self.target.stripped);
            let decoded = cpu(move || decode(at, &codec, &bytes, &labels, stripped)).await??;
            self.put(at, &decoded).await?;
        }
        Ok(())
    }

    async fn put(&mut self, at: [i32; 3], block: &Decoded) -> Result<()> {
        let (array, size) = match &self.waiting {
            Some(known) => known,
            None => {
                let mut shape = self.target.size;
                shape.reverse();
                let mut chunk = block.size.map(u64::from);
                chunk.reverse();
                self.layout(block.size).check()?;
                let spec = ArraySpec::builder(&shape, &chunk, "uint64").fill_value(0).build()?;
                let array = self.aside.create_array(WAITING, spec).await?;
                self.waiting.insert((array, block.size))
            }
        };
        let mut index = Vec::with_capacity(3);
        for axis in [2, 1, 0] {
            let edge = u64::from(size[axis]);
            let place = u64::try_from(at[axis]).ok().filter(|place| {
                *size == block.size && place.is_multiple_of(edge) && *place < self.target.size[axis]
            });
            let Some(place) = place else {
                return Err(Error::invalid(format!(
                    "a block of {:?} voxels at {at:?}: blocks have {size:?} voxels here, and lie in a grid of {:?} voxels",
                    block.size, self.target.size
                )));
            };
            index.push(place / edge);
        }
        array.write_chunk(&index, Elements::Fixed(&block.voxels)).await
    }

    fn layout(&self, size: [u32; 3]) -> Layout {
        let (mut shape, mut block) = (self.target.size, size);
        shape.reverse();
        block.reverse();
        Layout::new(shape).with_block(block)
    }

    pub(super) async fn finish(self) -> Result<String> {
        let Some((_, size)) = &self.waiting else {
            return Err(Error::invalid("a labelmap of no blocks"));
        };
        let layout = self.layout(*size);
        let source: Arc<dyn Source> = Arc::new(RepoSource::new(self.aside.clone()).await?);
        let volume = ArrayVolume::of(&source, WAITING)?;
        let (mapping, meter) = (Mapping::default(), Meter::default());
        let path = &self.target.path;
        let (map, _) =
            Labelmap::import(&self.session, path, layout, &volume, &mapping, &meter).await?;
        Ok(map.commit(&self.target.message).await?.snapshot_id.clone())
    }
}

/// Puts a block together and decodes it.
fn decode(
    at: [i32; 3],
    codec: &str,
    data: &Bytes,
    labels: &[u64],
    stripped: bool,
) -> Result<Decoded> {
    let refused =
        |why: &dyn std::fmt::Display| Error::invalid(format!("the block at {at:?}: {why}"));
    let plain = match codec {
        "zstd" => zstd_unpacked(data, BLOCK_BYTES_MAX).map_err(|error| refused(&error))?,
        "gzip" => gunzip(data, BLOCK_BYTES_MAX).map_err(|error| refused(&error))?,
        "none" => data.to_vec(),
        other => return Err(refused(&format!("the codec {other:?}, not zstd, gzip or none"))),
    };
    let plain = match stripped {
        true => join_labels(&plain, labels).map_err(|error| refused(&error))?,
        false => plain,
    };
    let block = Block::parse(&plain).map_err(|error| refused(&error))?;
    let mut voxels = vec![0; block.voxel_count()];
    block.decode_into(&mut voxels).map_err(|error| refused(&error))?;
    let voxels = voxels.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(Decoded { size: block.size(), voxels })
}
