//! Tables and blocks of a labelmap as they are stored, for programs that pass them on: a server answers from these,
//! and holds a batch of them at a time.

use chunkyard_repo::KeyRange;
use chunkyard_store::Result;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt, future};

use crate::Labelmap;
use crate::rows::{self, IndexRow, MappingRow, Row, u64s};

/// Blocks of a box that are looked up one by one, however few are stored.
const LOOKED_UP: u64 = 4096;

/// Pairs of supervoxel and body, a batch at a time.
pub type MappingPairs = BoxStream<'static, Result<Vec<(u64, u64)>>>;

/// What a body has in one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyBlock {
    /// The position of the block along z, y and x.
    pub at: [u32; 3],
    /// Its supervoxels by id, with the number of their voxels.
    pub supervoxels: Vec<(u64, u32)>,
}

impl Labelmap {
    /// The positions of stored blocks of a scale in a box of blocks, from `low` up to `high` and without it, and of others
    /// perhaps. The cost is bounded by what is stored: a box may have thousands of millions of blocks, and voxels in a few.
    pub fn blocks_between(
        &self,
        scale: usize,
        low: [u64; 3],
        high: [u64; 3],
    ) -> Result<BoxStream<'_, Result<[u32; 3]>>> {
        let stored = self.array(scale)?.node().refs_count;
        let limits = self.layout.blocks_at(scale);
        let high: [u64; 3] = std::array::from_fn(|axis| high[axis].min(limits[axis]));
        let low: [u64; 3] = std::array::from_fn(|axis| low[axis].min(high[axis]));
        let count = (0..3).fold(1u64, |all, axis| all.saturating_mul(high[axis] - low[axis]));
        if count > stored.max(LOOKED_UP) {
            let inside = move |at: &[u32; 3]| {
                (0..3).all(|axis| (low[axis]..high[axis]).contains(&u64::from(at[axis])))
            };
            return Ok(self.stored(scale).try_filter(move |at| future::ready(inside(at))).boxed());
        }
        let [z, y, x] = [0, 1, 2].map(|axis| low[axis]..high[axis]);
        let all = z.flat_map(move |z| {
            let x = x.clone();
            // The layout was checked: there are fewer than 2^32 blocks along each axis.
            y.clone().flat_map(move |y| x.clone().map(move |x| Ok([z, y, x].map(|at| at as u32))))
        });
        Ok(stream::iter(all).boxed())
    }

    /// What the mapping says of supervoxels, in their order: 0 of a retired one, nothing of one that was never mapped.
    pub async fn mapped(&self, supervoxels: &[u64]) -> Result<Vec<Option<u64>>> {
        let found: Vec<Option<MappingRow>> = rows::get(&self.mapping, supervoxels).await?;
        Ok(found.into_iter().map(|row| row.map(|row| row.body)).collect())
    }

    /// How many rows the mapping has at most. Reads nothing.
    pub fn mapping_rows_max(&self) -> Result<u64> {
        Ok(self.mapping.stats()?.rows_max)
    }

    /// The mapping as pairs of supervoxel and body, by supervoxel.
    pub fn mapping_rows(&self) -> Result<MappingPairs> {
        let batches = self.mapping.scan(&KeyRange::All, None)?;
        let pairs = |batch| {
            let batch = batch?;
            let (ids, bodies) = (u64s(&batch, "supervoxel")?, u64s(&batch, "body")?);
            Ok(ids.iter().copied().zip(bodies.iter().copied()).collect())
        };
        Ok(batches.map(pairs).boxed())
    }

    /// The blocks that a body is in, by position; none if there is no such body.
    pub fn body_blocks(&self, body: u64) -> Result<BoxStream<'static, Result<Vec<BodyBlock>>>> {
        let batches = self.index.scan(&rows::of(body), None)?;
        let block = |row: IndexRow| BodyBlock {
            at: row.key.1,
            supervoxels: row.parts.iter().map(|part| (part.supervoxel, part.voxels)).collect(),
        };
        let blocks = move |batch| Ok(IndexRow::parse(&batch?)?.into_iter().map(block).collect());
        Ok(batches.map(blocks).boxed())
    }

    /// The greatest id of a body or a supervoxel that there is or was; 0 if there is none. A few dozen looks at tables.
    pub async fn greatest_id(&self) -> Result<u64> {
        let mut greatest = 0;
        for table in [&self.supervoxels, &self.bodies, &self.mapping] {
            let column = table.schema().field(0).name().clone();
            // There is an id of at least `low`, if it is not 0, and none above `high`.
            let (mut low, mut high) = (greatest, u64::MAX);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                let range = KeyRange::From(vec![middle.into()]);
                let mut batches = table.scan(&range, Some(&[&column]))?;
                let mut found = None;
                while found.is_none()
                    && let Some(batch) = batches.try_next().await?
                {
                    found = u64s(&batch, &column)?.last().copied();
                }
                match found {
                    Some(id) => low = id.max(middle),
                    None => high = middle - 1,
                }
            }
            greatest = low;
        }
        Ok(greatest)
    }
}
