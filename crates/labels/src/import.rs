//! Filling a labelmap from a volume.
//!
//! The volume is read tile by tile, a tile being two blocks high and four wide and deep; tiles in which
//! nothing is stored are left out. Each tile becomes label blocks and their first halving on the compute
//! threads, and rows of the index, which the session moves to the store when there are many. The other
//! scales and tables are made from these in the end, so memory holds some tiles and the supervoxels of one
//! body, whatever the size of the volume.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_array::codec::label_block::{Block, encode, encode_part, table_of};
use chunkyard_format::{Meter, Occupied, Reader, Source};
use chunkyard_repo::{KeyRange, Session};
use chunkyard_store::{Error, Result, cpu};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;

use crate::blocks::{At, BLOCKS_AT_ONCE, index_of, vote};
use crate::rows::{self, Body, Bounds, IndexRow, MappingRow, Part, Row, Supervoxel};
use crate::tiles::{TILE, Tiles};
use crate::{Labelmap, Layout, Mapping};

/// Tiles under way at once.
const TILES_AT_ONCE: usize = 2;
/// Rows handed to a table at once.
const ROWS_AT_ONCE: usize = 16_384;

/// A volume of supervoxels that can be read in boxes. Axes are z, y, x.
#[async_trait]
pub trait Volume: Send + Sync {
    /// Voxels along each axis.
    fn shape(&self) -> [u64; 3];

    /// The voxels of a box, x fastest.
    async fn read(&self, region: &Region) -> Result<Vec<u64>>;

    /// Boxes that hold all voxels other than label 0, in any order, and more; `None` if that is not known. An
    /// import reads nothing else, so that its cost follows what is stored and not the extent of the volume.
    fn occupied(&self) -> Result<Option<BoxStream<'_, Result<Region>>>> {
        Ok(None)
    }

    /// The same as `read`, in place of what `out` holds. Fresh memory costs more than most reads, so a volume that
    /// can use old memory should.
    async fn read_into(&self, region: &Region, out: &mut Vec<u64>) -> Result<()> {
        *out = self.read(region).await?;
        Ok(())
    }
}

/// An array of unsigned integers of any format.
#[derive(Debug, Clone)]
pub struct ArrayVolume {
    reader: Reader,
    /// Knows which chunks are stored.
    source: Option<Arc<dyn Source>>,
    shape: [u64; 3],
    width: usize,
}

impl ArrayVolume {
    /// The volume that an array of a source is, if it can be one. Chunks that are not stored are not read.
    pub fn of(source: &Arc<dyn Source>, path: &str) -> Result<Self> {
        let volume = Self::new(Reader::new(source, path)?)?;
        Ok(Self { source: Some(source.clone()), ..volume })
    }

    /// The volume that an array is, if it can be one.
    pub fn new(reader: Reader) -> Result<Self> {
        let codecs = reader.codecs();
        let shape = codecs.grid().array_shape();
        let dtype = codecs.whole().dtype().name().to_owned();
        let width = match dtype.as_str() {
            "uint8" => 1,
            "uint16" => 2,
            "uint32" => 4,
            "uint64" => 8,
            _ => {
                return Err(Error::invalid(format!(
                    "{}: labels are unsigned integers, not {dtype}; cast them first",
                    reader.path()
                )));
            }
        };
        let shape = <[u64; 3]>::try_from(shape).map_err(|_| {
            Error::invalid(format!(
                "{}: a volume of labels has the axes z, y, x; this array has {}",
                reader.path(),
                shape.len()
            ))
        })?;
        Ok(Self { reader, source: None, shape, width })
    }
}

#[async_trait]
impl Volume for ArrayVolume {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    fn occupied(&self) -> Result<Option<BoxStream<'_, Result<Region>>>> {
        let Some(source) = &self.source else { return Ok(None) };
        // Another fill value is a label, and has voxels wherever nothing is stored.
        if self.reader.codecs().whole().fill_element().iter().any(|&byte| byte != 0) {
            return Ok(None);
        }
        Ok(match source.occupied(self.reader.path())? {
            Occupied::All => None,
            Occupied::Cells { grid, cells } => {
                Some(cells.map_ok(move |cell| grid.clipped_region(&cell)).boxed())
            }
        })
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let bytes = self.reader.read_region(region).await?;
        let width = self.width;
        cpu(move || widen(&bytes, width)).await
    }
}

/// Little-endian unsigned integers of some width as labels.
pub fn widen(bytes: &[u8], width: usize) -> Vec<u64> {
    match width {
        1 => bytes.iter().map(|&value| value.into()).collect(),
        2 => bytes.as_chunks().0.iter().map(|&value| u16::from_le_bytes(value).into()).collect(),
        4 => bytes.as_chunks().0.iter().map(|&value| u32::from_le_bytes(value).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|&value| u64::from_le_bytes(value)).collect(),
    }
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// Bodies.
    pub bodies: u64,
    /// Supervoxels.
    pub supervoxels: u64,
    /// Voxels that are not label 0.
    pub voxels: u64,
    /// Blocks stored at full resolution.
    pub blocks: u64,
}

/// The blocks of a tile.
struct Tile {
    rows: Vec<IndexRow>,
    /// Scale, position and encoded chunk.
    chunks: Vec<(usize, At, Vec<u8>)>,
    /// Its voxels, for the memory that they take.
    voxels: Vec<u64>,
}

impl Labelmap {
    /// Creates a labelmap from a volume, all in the session: nothing is visible before its commit.
    /// `mapping` says which body each supervoxel belongs to, where that is not itself.
    pub async fn import(
        session: &Arc<Session>,
        path: &str,
        layout: Layout,
        volume: &dyn Volume,
        mapping: &Mapping,
        meter: &Meter,
    ) -> Result<(Self, Imported)> {
        if volume.shape() != layout.shape {
            return Err(Error::invalid(format!(
                "a volume of {:?} voxels for a labelmap of {:?}",
                volume.shape(),
                layout.shape
            )));
        }
        if mapping.get(0).is_some() {
            return Err(Error::invalid(
                "the mapping has a row of supervoxel 0, which is no supervoxel but what lies between them; leave \
                 that row out",
            ));
        }
        let map = Self::create(session, path, layout).await?;
        let imported = map.fill(volume, mapping, meter).await?;
        Ok((map, imported))
    }

    async fn fill(
        &self,
        volume: &dyn Volume,
        mapping: &Mapping,
        meter: &Meter,
    ) -> Result<Imported> {
        let mapping = Arc::new(mapping.clone());
        let tiles = match volume.occupied()? {
            Some(boxes) => match Tiles::new(&self.layout, Some(boxes)).await {
                // A source that cannot list its objects.
                Err(Error::Unsupported { .. }) => Tiles::new(&self.layout, None).await?,
                tiles => tiles?,
            },
            None => Tiles::new(&self.layout, None).await?,
        };
        // Of tiles at the edge of the volume the number is too large; it is only for the bar.
        let tile_voxels = TILE.iter().product::<u64>() * self.layout.block_voxels() as u64;
        let all = self.layout.shape.iter().fold(8, |bytes: u64, &axis| bytes.saturating_mul(axis));
        meter.expect(all.min(tiles.len().saturating_mul(tile_voxels * 8)));
        // Memory of tiles that are done.
        let spare: &Mutex<Vec<Vec<u64>>> = &Mutex::default();
        let tiles = stream::iter(tiles.origins()).map(|origin| {
            let mapping = mapping.clone();
            async move {
                let memory = lock(spare).pop().unwrap_or_default();
                self.encode_tile(volume, origin, mapping, memory).await
            }
        });
        let mut tiles = tiles.buffered(TILES_AT_ONCE);
        let mut coarse: Vec<At> = Vec::new();
        let mut imported = Imported::default();
        while let Some(tile) = tiles.try_next().await? {
            for (scale, at, chunk) in tile.chunks {
                match scale {
                    0 => imported.blocks += 1,
                    _ => coarse.push(at),
                }
                let path = &self.array(scale)?.node().path;
                self.session.set_chunk(path, &index_of(at), chunk.into()).await?;
            }
            rows::upsert(&self.index, &tile.rows).await?;
            meter.advance(tile.voxels.len() as u64 * 8);
            lock(spare).push(tile.voxels);
        }
        self.downsample_above(1, &coarse).await?;
        let given: Vec<MappingRow> =
            mapping.rows().map(|(supervoxel, body)| MappingRow { supervoxel, body }).collect();
        for rows in given.chunks(ROWS_AT_ONCE) {
            rows::upsert(&self.mapping, rows).await?;
        }
        self.count_bodies(&mut imported).await?;
        Ok(imported)
    }

    async fn encode_tile(
        &self,
        volume: &dyn Volume,
        origin: [u64; 3],
        mapping: Arc<Mapping>,
        mut voxels: Vec<u64>,
    ) -> Result<Tile> {
        let layout = self.layout.clone();
        let edge = layout.block.map(u64::from);
        let start: [u64; 3] = std::array::from_fn(|axis| origin[axis] * edge[axis]);
        let shape: [u64; 3] = std::array::from_fn(|axis| {
            (TILE[axis] * edge[axis]).min(layout.shape[axis] - start[axis])
        });
        let region = Region::new(start.to_vec(), shape.to_vec())?;
        volume.read_into(&region, &mut voxels).await?;
        if voxels.len() as u64 != region.num_elements() {
            return Err(Error::invalid(format!("{} voxels for the region {region}", voxels.len())));
        }
        let codecs = self.array(0)?.reader().codecs().whole().clone();
        cpu(move || {
            let places: Vec<[u64; 3]> = (0..TILE[0])
                .flat_map(|z| (0..TILE[1]).flat_map(move |y| (0..TILE[2]).map(move |x| [z, y, x])))
                .collect();
            let encoded = places
                .par_iter()
                .map(|place| encode_block(&voxels, shape, *place, &layout))
                .collect::<Result<Vec<Option<Vec<u8>>>>>()?;
            let mut tile = Tile { rows: Vec::new(), chunks: Vec::new(), voxels };
            let position = |place: &[u64; 3], scale: usize| -> At {
                std::array::from_fn(|axis| ((origin[axis] >> scale) + place[axis]) as u32)
            };
            let done = places
                .par_iter()
                .zip(&encoded)
                .filter_map(|(place, block)| Some((place, block.as_deref()?)))
                .map(|(place, block)| {
                    let at = position(place, 0);
                    let rows = index_rows(Block::parse(block)?, at, &mapping)?;
                    Ok((rows, at, codecs.encode_label_block(block)?))
                })
                .collect::<Result<Vec<_>>>()?;
            for (rows, at, chunk) in done {
                tile.rows.extend(rows);
                tile.chunks.push((0, at, chunk));
            }
            if layout.scales > 1 {
                let halves: Vec<[u64; 3]> =
                    places.iter().filter(|p| p.iter().all(|p| p % 2 == 0)).copied().collect();
                let made = halves
                    .par_iter()
                    .map(|place| {
                        let eight: Vec<Option<&[u8]>> = (0..8)
                            .map(|octant: u64| {
                                let [z, y, x] = *place;
                                let [z, y, x] =
                                    [z + (octant >> 2), y + (octant >> 1 & 1), x + (octant & 1)];
                                encoded[((z * TILE[1] + y) * TILE[2] + x) as usize].as_deref()
                            })
                            .collect();
                        if eight.iter().all(Option::is_none) {
                            return Ok(None);
                        }
                        let block = vote(&eight, layout.block_xyz())?;
                        let at = position(&place.map(|place| place / 2), 1);
                        Ok(Some((1, at, codecs.encode_label_block(&block)?)))
                    })
                    .collect::<Result<Vec<_>>>()?;
                tile.chunks.extend(made.into_iter().flatten());
            }
            Ok(tile)
        })
        .await?
    }

    /// Makes the tables of bodies and supervoxels from the index, body by body.
    pub(crate) async fn count_bodies(&self, imported: &mut Imported) -> Result<()> {
        let mut recount = Recount::new(self.layout.block);
        let mut batches = self.index.scan(&KeyRange::All, None)?;
        loop {
            let batch = batches.try_next().await?;
            let at_end = batch.is_none();
            match batch {
                Some(batch) => IndexRow::parse(&batch)?.iter().for_each(|row| recount.add(row)),
                None => recount.finish_body(),
            }
            if at_end || recount.bodies.len() + recount.supervoxels.len() >= ROWS_AT_ONCE {
                imported.bodies += recount.bodies.len() as u64;
                imported.supervoxels += recount.supervoxels.len() as u64;
                imported.voxels += recount.bodies.iter().map(|body| body.voxels).sum::<u64>();
                rows::upsert(&self.bodies, &std::mem::take(&mut recount.bodies)).await?;
                rows::upsert(&self.supervoxels, &std::mem::take(&mut recount.supervoxels)).await?;
            }
            if at_end {
                return Ok(());
            }
        }
    }

    /// Makes all coarser scales anew from the one of full resolution.
    pub async fn downsample(&self, meter: &Meter) -> Result<()> {
        self.refuse_torn()?;
        self.forget_edits();
        for scale in 1..self.layout.scales {
            // Blocks that stand above nothing go.
            let below = self.stored_blocks(scale - 1).await?;
            let mut parents: Vec<At> = below.iter().map(|at| at.map(|at| at / 2)).collect();
            parents.extend(self.stored_blocks(scale).await?);
            parents.sort_unstable();
            parents.dedup();
            meter.expect(parents.len() as u64);
            for some in parents.chunks(BLOCKS_AT_ONCE / 8) {
                self.downsample_to(scale, some).await?;
                meter.advance(some.len() as u64);
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One block of a tile; `None` if all of it is label 0. What lies outside of the volume is.
fn encode_block(
    tile: &[u64],
    shape: [u64; 3],
    place: [u64; 3],
    layout: &Layout,
) -> Result<Option<Vec<u8>>> {
    let edge = layout.block.map(u64::from);
    let start: [u64; 3] = std::array::from_fn(|axis| place[axis] * edge[axis]);
    if start.iter().zip(shape).any(|(&start, extent)| start >= extent) {
        return Ok(None);
    }
    let count: [u64; 3] = std::array::from_fn(|axis| edge[axis].min(shape[axis] - start[axis]));
    let first = |z: u64, y: u64| {
        (((start[0] + z) * shape[1] + start[1] + y) * shape[2] + start[2]) as usize
    };
    let strides = [shape[2] as usize, (shape[1] * shape[2]) as usize];
    let mut out = Vec::new();
    if count == edge {
        let voxels = tile.get(first(0, 0)..).unwrap_or_default();
        encode_part(voxels, strides, layout.block_xyz(), &mut out)?;
    } else {
        let mut voxels = vec![0u64; layout.block_voxels()];
        for z in 0..count[0] {
            for y in 0..count[1] {
                let (from, to) = (first(z, y), ((z * edge[1] + y) * edge[2]) as usize);
                let row = count[2] as usize;
                voxels[to..to + row].copy_from_slice(&tile[from..from + row]);
            }
        }
        encode(&voxels, layout.block_xyz(), &mut out)?;
    }
    // What was just encoded lists its labels and no others.
    let is_zero = table_of(&out)?.eq([0]);
    Ok((!is_zero).then_some(out))
}

/// The rows of the index that a block makes.
pub(crate) fn index_rows(block: Block<'_>, at: At, mapping: &Mapping) -> Result<Vec<IndexRow>> {
    let mut by_body: BTreeMap<u64, Vec<Part>> = BTreeMap::new();
    for extent in block.extents() {
        let body = mapping.body(extent.label);
        if body == 0 {
            return Err(Error::invalid(format!(
                "supervoxel {} has voxels in block {at:?}, but the mapping says that it is retired",
                extent.label
            )));
        }
        by_body.entry(body).or_default().push(Part::new(&extent));
    }
    Ok(by_body.into_iter().map(|(body, parts)| IndexRow { key: (body, at), parts }).collect())
}

/// Bodies and supervoxels counted from rows of the index, which come sorted by body.
pub(crate) struct Recount {
    block: [u32; 3],
    body: u64,
    parts: BTreeMap<u64, (u64, Bounds)>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) supervoxels: Vec<Supervoxel>,
}

impl Recount {
    pub(crate) fn new(block: [u32; 3]) -> Self {
        Self { block, body: 0, parts: BTreeMap::new(), bodies: Vec::new(), supervoxels: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: &IndexRow) {
        let (body, at) = row.key;
        if body != self.body {
            self.finish_body();
            self.body = body;
        }
        for part in &row.parts {
            let (voxels, bounds) = self.parts.entry(part.supervoxel).or_insert((0, Bounds::EMPTY));
            *voxels += u64::from(part.voxels);
            *bounds = bounds.union(&part.bounds(at, self.block));
        }
    }

    pub(crate) fn finish_body(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let body = self.body;
        let bounds = self.parts.values().fold(Bounds::EMPTY, |all, (_, one)| all.union(one));
        self.bodies.push(Body {
            body,
            voxels: self.parts.values().map(|(voxels, _)| voxels).sum(),
            supervoxels: self.parts.len() as u64,
            bounds,
            mutation: 0,
        });
        let row = |(supervoxel, (voxels, bounds))| Supervoxel { supervoxel, voxels, body, bounds };
        self.supervoxels.extend(std::mem::take(&mut self.parts).into_iter().map(row));
    }
}
