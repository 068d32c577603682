//! Blocks of a labelmap: fetched and stored as label blocks, without their voxels.

use chunkyard_array::codec::label_block::{Block, downsample};
use chunkyard_store::{Error, Result, cpu};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::Labelmap;

/// Blocks fetched at once: it bounds memory where a body has many.
pub(crate) const BLOCKS_AT_ONCE: usize = 64;

/// The position of a block along z, y and x.
pub(crate) type At = [u32; 3];

pub(crate) fn index_of(at: At) -> Vec<u64> {
    at.map(u64::from).to_vec()
}

impl Labelmap {
    /// Label blocks of a scale, aligned to their positions along z, y and x; `None` where all is label 0.
    pub async fn blocks(&self, scale: usize, at: &[[u32; 3]]) -> Result<Vec<Option<Vec<u8>>>> {
        let array = self.array(scale)?;
        let indices: Vec<_> = at.iter().copied().map(index_of).collect();
        let fetched = array.reader().fetch_chunks(&indices).await?;
        let (codecs, reader) = (array.reader().codecs().whole().clone(), array.reader().clone());
        cpu(move || {
            let unpack = |(chunk, index): (Option<bytes::Bytes>, Vec<u64>)| match chunk {
                None => Ok(None),
                Some(chunk) => codecs
                    .label_block(&chunk)
                    .map(Some)
                    .map_err(|error| reader.in_chunk(&index, error)),
            };
            fetched.into_iter().zip(indices).map(unpack).collect()
        })
        .await?
    }

    /// The positions of all blocks of a scale that are stored, in their order.
    pub(crate) async fn stored_blocks(&self, scale: usize) -> Result<Vec<At>> {
        self.array(scale)?;
        self.stored(scale).try_collect().await
    }

    /// The same one by one; none of a scale that there is not.
    pub(crate) fn stored(&self, scale: usize) -> BoxStream<'_, Result<At>> {
        let Some(array) = self.scales.get(scale) else { return stream::empty().boxed() };
        let chunks = self.session.chunk_refs(&array.node().path);
        // The layout was checked: no position is larger.
        let position = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        let of = move |index: &[u64]| -> At {
            std::array::from_fn(|axis| index.get(axis).map_or(0, |&at| position(at)))
        };
        chunks.map_ok(move |(index, _)| of(&index)).boxed()
    }

    /// Stores a label block; one of nothing but label 0 is not stored.
    pub(crate) async fn put_block(&self, scale: usize, at: At, block: &[u8]) -> Result<()> {
        let array = self.array(scale)?;
        let path = &array.node().path;
        if Block::parse(block)?.is_zero() {
            return self.session.erase_chunk(path, &index_of(at));
        }
        let chunk = array.reader().codecs().whole().encode_label_block(block)?;
        self.session.set_chunk(path, &index_of(at), chunk.into()).await
    }

    /// Makes the coarser scales anew above blocks of a scale.
    pub(crate) async fn downsample_above(&self, scale: usize, changed: &[At]) -> Result<()> {
        let mut changed = changed.to_vec();
        for scale in scale + 1..self.layout.scales {
            let mut parents: Vec<At> = changed.iter().map(|at| at.map(|at| at / 2)).collect();
            parents.sort_unstable();
            parents.dedup();
            changed.clear();
            for parents in parents.chunks(BLOCKS_AT_ONCE / 8) {
                changed.extend(self.downsample_to(scale, parents).await?);
            }
        }
        Ok(())
    }

    /// Makes blocks of a scale from the eight below each, and says which of them are not as they were. The others are
    /// not written: two edits far from each other share a coarse block, and must not collide in it for nothing.
    pub(crate) async fn downsample_to(&self, scale: usize, parents: &[At]) -> Result<Vec<At>> {
        let mut eights = Vec::with_capacity(parents.len());
        for parent in parents {
            eights.push(self.children_of(scale, *parent).await?);
        }
        let stored = self.blocks(scale, parents).await?;
        let size = self.layout.block_xyz();
        let made = cpu(move || {
            let differs = |(eight, stored): (&Vec<Option<Vec<u8>>>, Option<Vec<u8>>)| {
                let made = vote(eight, size)?;
                let same = match &stored {
                    Some(stored) => *stored == made,
                    None => Block::parse(&made)?.is_zero(),
                };
                Ok((!same).then_some(made))
            };
            eights.iter().zip(stored).map(differs).collect::<Result<Vec<_>>>()
        });
        let mut changed = Vec::new();
        for (parent, block) in parents.iter().zip(made.await??) {
            if let Some(block) = block {
                self.put_block(scale, *parent, &block).await?;
                changed.push(*parent);
            }
        }
        Ok(changed)
    }

    /// The eight blocks that a block of a scale stands for, in the order of the vote.
    pub(crate) async fn children_of(
        &self,
        scale: usize,
        parent: At,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let limits = self.layout.blocks_at(scale - 1);
        let inside = |at: &At| at.iter().zip(limits).all(|(&at, limit)| u64::from(at) < limit);
        let [z, y, x] = parent;
        let children: Vec<At> = (0..8)
            .map(|octant| [z * 2 + (octant >> 2), y * 2 + (octant >> 1 & 1), x * 2 + (octant & 1)])
            .collect();
        let known: Vec<At> = children.iter().copied().filter(inside).collect();
        let mut fetched = self.blocks(scale - 1, &known).await?.into_iter();
        let child = |at: &At| if inside(at) { fetched.next().flatten() } else { None };
        Ok(children.iter().map(child).collect())
    }
}

/// The block of half the resolution of eight; those that are missing are label 0.
pub(crate) fn vote(eight: &[Option<impl AsRef<[u8]>>], size: [u32; 3]) -> Result<Vec<u8>> {
    let mut octants = [None; 8];
    for (octant, block) in octants.iter_mut().zip(eight) {
        *octant = block.as_ref().map(|block| Block::parse(block.as_ref())).transpose()?;
    }
    let mut out = Vec::new();
    downsample(octants, None, size, &mut out)?;
    Ok(out)
}

/// The voxels of a label block, x fastest; all zero if there is none.
pub(crate) fn voxels(block: Option<&[u8]>, count: usize) -> Result<Vec<u64>> {
    let mut voxels = vec![0; count];
    if let Some(block) = block {
        let block = Block::parse(block)?;
        if block.voxel_count() != count {
            return Err(Error::invalid(format!(
                "a block of {} voxels where {count} are expected",
                block.voxel_count()
            )));
        }
        block.decode_into(&mut voxels)?;
    }
    Ok(voxels)
}
