//! Which chunks of a scale share a shard.

use chunkyard_store::{Error, Result};

use super::info::Scale;
use super::morton::{Morton, Walk};
use super::sharding::{Hash, Sharding, Slot};

/// The chunks of a scale, and their shards. Axes are x, y, z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardGrid {
    morton: Morton,
    sharding: Sharding,
}

impl ShardGrid {
    /// A grid of chunks, spread over shards.
    pub fn new(grid: [u64; 3], sharding: Sharding) -> Result<Self> {
        Ok(Self { morton: Morton::new(grid)?, sharding })
    }

    /// The grid of a scale; `None` if each chunk is a file.
    pub fn of(scale: &Scale) -> Result<Option<Self>> {
        scale.sharding.map(|sharding| Self::new(scale.grid(), sharding)).transpose()
    }

    /// The numbers of the chunks.
    pub fn morton(&self) -> &Morton {
        &self.morton
    }

    /// How the numbers are spread.
    pub fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Where a chunk is kept.
    pub fn slot(&self, chunk: [u64; 3]) -> Slot {
        self.sharding.slot(self.morton.encode(chunk))
    }

    /// Its shards as boxes of chunks.
    pub fn boxes(&self) -> Result<ShardBoxes> {
        ShardBoxes::new(self)
    }
}

/// Shards that are boxes of chunks, as they are without a hash. Axes are x, y, z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardBoxes {
    morton: Morton,
    /// Bits of a chunk's number that do not choose the shard.
    within: u32,
    cell: [u64; 3],
}

impl ShardBoxes {
    /// Fails where shards are no boxes: with a hash, and where the shard bits are too few, so that chunks far from each
    /// other share a shard.
    pub fn new(grid: &ShardGrid) -> Result<Self> {
        let (morton, sharding) = (grid.morton.clone(), &grid.sharding);
        if sharding.hash != Hash::Identity {
            return Err(Error::unsupported("shards as boxes of chunks where chunks are hashed"));
        }
        let (given, needed) = (
            u64::from(sharding.preshift_bits)
                + u64::from(sharding.minishard_bits)
                + u64::from(sharding.shard_bits),
            u64::from(morton.num_bits()),
        );
        if given < needed {
            return Err(Error::invalid(format!(
                "the sharding has {} preshift, {} minishard and {} shard bits, {given} together, but the numbers of \
                 {:?} chunks take {needed}; raise shard_bits to {}",
                sharding.preshift_bits,
                sharding.minishard_bits,
                sharding.shard_bits,
                morton.grid(),
                u64::from(sharding.shard_bits) + needed - given,
            )));
        }
        let within = (sharding.preshift_bits + sharding.minishard_bits).min(morton.num_bits());
        let mut cell = morton.cell(within);
        cell.iter_mut().zip(morton.grid()).for_each(|(cell, grid)| *cell = (*cell).min(grid));
        Ok(Self { morton, within, cell })
    }

    /// The numbers of the chunks.
    pub fn morton(&self) -> &Morton {
        &self.morton
    }

    /// Chunks of a shard along each axis; those at the upper edges of the grid have fewer.
    pub fn cell(&self) -> [u64; 3] {
        self.cell
    }

    /// The shard of a chunk.
    pub fn shard_of(&self, chunk: [u64; 3]) -> u64 {
        self.shard_of_number(self.morton.encode(chunk))
    }

    /// The shard of the chunk with a number.
    pub fn shard_of_number(&self, number: u64) -> u64 {
        number.checked_shr(self.within).unwrap_or(0)
    }

    /// The first chunk of a shard; `None` if no chunk of the grid is in it.
    pub fn origin(&self, shard: u64) -> Option<[u64; 3]> {
        let code = match shard {
            0 => 0,
            _ => shard.checked_shl(self.within).filter(|code| code >> self.within == shard)?,
        };
        let exists = code.checked_shr(self.morton.num_bits()).unwrap_or(0) == 0;
        let origin = self.morton.corner(code, self.within);
        (exists && self.morton.contains(origin)).then_some(origin)
    }

    /// Where the chunks of a shard begin and end along each axis; `None` if no chunk of the grid is in it.
    pub fn bounds(&self, shard: u64) -> Option<([u64; 3], [u64; 3])> {
        let origin = self.origin(shard)?;
        let mut end = origin;
        for ((end, cell), grid) in end.iter_mut().zip(self.cell).zip(self.morton.grid()) {
            *end = end.saturating_add(cell).min(grid);
        }
        Some((origin, end))
    }

    /// Number of chunks of the grid in a shard; saturates.
    pub fn num_chunks(&self, shard: u64) -> u64 {
        let Some((origin, end)) = self.bounds(shard) else { return 0 };
        origin.iter().zip(end).fold(1, |all, (start, end)| u64::saturating_mul(all, end - start))
    }

    /// The chunks of a shard, with their numbers, in the order in which a shard keeps them.
    pub fn chunks(&self, shard: u64) -> Walk<'_> {
        let (origin, end) = self.bounds(shard).unwrap_or_default();
        self.morton.walk(origin, end)
    }

    /// The shards that hold chunks from `start` up to before `end`, with their first chunks, in ascending order. They
    /// are made one by one, and numbers without chunks cost nothing.
    pub fn shards_within(
        &self,
        start: [u64; 3],
        end: [u64; 3],
    ) -> impl Iterator<Item = (u64, [u64; 3])> + '_ {
        let cells = self.morton.walk_cells(self.within, start, end);
        cells.map(|(code, origin)| (code.checked_shr(self.within).unwrap_or(0), origin))
    }

    /// All shards that hold chunks.
    pub fn shards(&self) -> impl Iterator<Item = (u64, [u64; 3])> + '_ {
        self.shards_within([0; 3], self.morton.grid())
    }
}
