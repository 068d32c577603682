//! Tiles: the boxes of blocks in which an import reads a volume.

use std::collections::BTreeSet;

use chunkyard_array::Region;
use chunkyard_store::Result;
use futures::TryStreamExt;
use futures::stream::BoxStream;

use crate::Layout;

/// Blocks of a tile along z, y and x; even, so that a tile is halved on its own.
pub(crate) const TILE: [u64; 3] = [2, 4, 4];

/// Where a tile begins, in tiles.
type Tile = [u64; 3];

/// The tiles of a volume that may have labels.
pub(crate) enum Tiles {
    /// All of them; how many there are along each axis.
    All(Tile),
    /// Some, in their order.
    Some(BTreeSet<Tile>),
}

impl Tiles {
    /// The tiles that meet boxes; all if the boxes are not known.
    pub(crate) async fn new(
        layout: &Layout,
        boxes: Option<BoxStream<'_, Result<Region>>>,
    ) -> Result<Self> {
        let blocks = layout.blocks_at(0);
        let count: Tile = std::array::from_fn(|axis| blocks[axis].div_ceil(TILE[axis]));
        let Some(mut boxes) = boxes else { return Ok(Self::All(count)) };
        let edge: Tile =
            std::array::from_fn(|axis| TILE[axis].saturating_mul(layout.block[axis].into()));
        let mut found = BTreeSet::new();
        while let Some(region) = boxes.try_next().await? {
            let Some(region) = region.intersect(&Region::whole(&layout.shape)) else { continue };
            let (start, end) = (region.origin(), region.end());
            let range = |axis: usize| start[axis] / edge[axis]..end[axis].div_ceil(edge[axis]);
            // A box may be a shard as large as the volume, and what is in it is not known.
            if (0..3).all(|axis| range(axis).end - range(axis).start == count[axis]) {
                return Ok(Self::All(count));
            }
            found.extend(places(range));
        }
        Ok(Self::Some(found))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::All(count) => count.iter().fold(1, |all, &count| all.saturating_mul(count)),
            Self::Some(found) => found.len() as u64,
        }
    }

    /// Where they begin, in blocks.
    pub(crate) fn origins(self) -> Box<dyn Iterator<Item = [u64; 3]> + Send> {
        let in_blocks = |tile: Tile| std::array::from_fn(|axis| tile[axis] * TILE[axis]);
        match self {
            Self::All(count) => Box::new(places(move |axis| 0..count[axis]).map(in_blocks)),
            Self::Some(found) => Box::new(found.into_iter().map(in_blocks)),
        }
    }
}

/// All places in ranges along z, y and x.
fn places(range: impl Fn(usize) -> std::ops::Range<u64>) -> impl Iterator<Item = Tile> + Send {
    let [z, y, x] = [range(0), range(1), range(2)];
    z.flat_map(move |z| {
        let x = x.clone();
        y.clone().flat_map(move |y| x.clone().map(move |x| [z, y, x]))
    })
}
