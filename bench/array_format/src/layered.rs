//! array-format 0.9.0: the last release of the file format that we read and write, with layers.

use array_format_layered as af;

use af::address::{BlockId, ChunkAddress};
use af::block::{BlockMeta, CodecId};
use af::footer::{FOOTER_VERSION, Footer};
use af::layout::{ArrayLayout, ArrayMeta, Attributes, ChunkEntry, StorageLayout};
use af::{ArrayFile, ArrayStats, AttributeValue, DType, FileConfig, StatValue, StatsFile};
use ndarray::{ArcArray, ArrayViewD, IxDyn};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::release::{Array, Change, Element, Release, Result, TINY, name_of, tiny_value};
use crate::store::Place;

/// The release.
pub struct Layered;

/// Creates a container; the codec is a type.
async fn create(place: &Place, codec: &str) -> Result<ArrayFile> {
    let (store, base) = (place.store.clone(), place.base.clone());
    Ok(match codec {
        "lz4" => ArrayFile::create(store, base, FileConfig::new(af::Lz4Codec)).await?,
        "zstd" => ArrayFile::create(store, base, FileConfig::new(af::ZstdCodec::new(3))).await?,
        _ => ArrayFile::create(store, base, FileConfig::new(af::NoCompression)).await?,
    })
}

impl Release for Layered {
    type File = ArrayFile;

    async fn write<T: Element>(place: &Place, codec: &str, array: &Array<'_, T>) -> Result<()> {
        let mut file = create(place, codec).await?;
        let shape = array.values.shape().to_vec();
        let start = vec![0; shape.len()];
        file.define_array::<T>(&array.name, vec![], shape, Some(array.chunk.clone()), None)?;
        file.write_array(&array.name, start, array.values.view()).await?;
        Ok(file.flush().await?)
    }

    /// Through the footer: to write 10^6 chunks by the API takes time that grows with their square.
    async fn make_chunks(place: &Place, chunks: usize) -> Result<()> {
        let mut layer = Layer::default();
        let entries = (0..chunks).map(|at| layer.push(at)).collect();
        layer.arrays.push(meta("a", chunks * TINY, entries, 0));
        layer.put(place, 0).await
    }

    /// Through the footer and the statistics file, for the same reason.
    async fn make_arrays(place: &Place, arrays: usize) -> Result<()> {
        let mut layer = Layer::default();
        for at in 0..arrays {
            let mut entry = layer.push(at);
            entry.coord = vec![0];
            layer.arrays.push(meta(&name_of(at), TINY, vec![entry], 1));
        }
        layer.put(place, 1).await
    }

    async fn open(place: &Place) -> Result<ArrayFile> {
        let config = FileConfig::new(af::NoCompression);
        Ok(ArrayFile::open(place.store.clone(), place.base.clone(), config).await?)
    }

    fn arrays(file: &ArrayFile) -> usize {
        file.list_arrays().len()
    }

    async fn read<T: Element>(
        file: &ArrayFile,
        name: &str,
        start: &[usize],
        shape: &[usize],
    ) -> Result<ArcArray<T, IxDyn>> {
        Ok(file.read_array::<T>(name, start.to_vec(), shape.to_vec()).await?)
    }

    async fn change(
        place: &Place,
        name: &str,
        start: &[usize],
        values: ArrayViewD<'_, f32>,
    ) -> Result<Change> {
        let mut file = Self::open(place).await?;
        file.write_array(name, start.to_vec(), values).await?;
        file.flush().await?;
        Ok(Box::new(file))
    }
}

/// An unfinished layer, packed by the crate's rule: blocks of 8 MiB.
#[derive(Default)]
struct Layer {
    bytes: Vec<u8>,
    blocks: Vec<BlockMeta>,
    arrays: Vec<ArrayMeta>,
}

const BLOCK: u64 = af::DEFAULT_BLOCK_TARGET_SIZE as u64;

impl Layer {
    /// Appends the chunk at a coordinate.
    fn push(&mut self, at: usize) -> ChunkEntry {
        let position = self.bytes.len() as u64;
        for element in at * TINY..(at + 1) * TINY {
            self.bytes.extend_from_slice(&tiny_value(element).to_le_bytes());
        }
        let size = self.bytes.len() as u64 - position;
        let block = match self.blocks.pop() {
            Some(block) if block.uncompressed_size < BLOCK => block,
            full => {
                self.blocks.extend(full);
                BlockMeta {
                    id: BlockId(self.blocks.len() as u32),
                    file_offset: position,
                    compressed_size: 0,
                    uncompressed_size: 0,
                    codec: CodecId::None,
                }
            }
        };
        let (block_id, offset) = (block.id, block.uncompressed_size);
        let length = offset + size;
        self.blocks.push(BlockMeta { compressed_size: length, uncompressed_size: length, ..block });
        let address = ChunkAddress { block_id, offset: offset as u32, size: size as u32 };
        ChunkEntry { coord: vec![at as u32], address }
    }

    /// Writes the layer as the base, and the statistics.
    async fn put(mut self, place: &Place, attributes: usize) -> Result<()> {
        let stats = StatsFile { arrays: self.arrays.iter().map(stats_of).collect() };
        let footer = Footer {
            version: FOOTER_VERSION,
            blocks: self.blocks,
            arrays: self.arrays,
            attr_keys: vec!["units".into(); attributes],
            attr_values: vec![AttributeValue::String("K".into()); attributes],
            overlay_index: 0,
            base_file_hint: String::new(),
        };
        self.bytes.extend(footer.serialize()?);
        place.store.put(&place.base, self.bytes.into()).await?;
        place.store.put(&Path::from("c.stats"), rendered(&stats)?.into()).await?;
        Ok(())
    }
}

/// The statistics file; the crate does not export its own function.
fn rendered(stats: &StatsFile) -> Result<Vec<u8>> {
    let mut bytes = rkyv::to_bytes::<rkyv::rancor::Error>(stats)?.to_vec();
    let size = bytes.len() as u64;
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(b"ARST");
    Ok(bytes)
}

fn meta(name: &str, length: usize, chunks: Vec<ChunkEntry>, attributes: u16) -> ArrayMeta {
    ArrayMeta {
        name: name.into(),
        dtype: DType::Float32,
        layout: ArrayLayout {
            shape: vec![length as u32],
            dimension_names: vec!["x".into()],
            storage: StorageLayout { chunk_shape: vec![TINY as u32], chunks },
        },
        fill_value: None,
        deleted: false,
        attributes: Attributes::U16((0..attributes).map(|at| (at, at)).collect()),
    }
}

/// Plausible statistics; no workload asks for them, but opening reads them.
fn stats_of(array: &ArrayMeta) -> ArrayStats {
    let rows = array.layout.shape.iter().map(|&axis| u64::from(axis)).product();
    let (min, max) = (Some(StatValue::Float(0.0)), Some(StatValue::Float(rows as f64)));
    ArrayStats { name: array.name.clone(), min, max, null_count: 0, row_count: rows }
}
