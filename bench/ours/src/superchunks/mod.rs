//! Superchunks: one long column in a BLZ directory, written, read, and grown.
//!
//! All sides have the same rows, chunks of 1 MiB, the same codec at the same level and a byte shuffle.
//! Blocks, files and digests are the default of each side.

mod append;
mod files;
mod read;
mod write;

use bench_measure::Options;
use bytes::Bytes;
use chunkyard_array::codec::blosc::{Compressor, Params, Shuffle};
use chunkyard_engine::format::Place;
use chunkyard_engine::format::superchunk::{Blz, BlzOptions, Compression, Creation, dtype};
use chunkyard_engine::store::{self, Durability};

pub use append::append;
pub use files::files;
pub use read::{random, read};
pub use write::write;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Bytes of a chunk, and of a row.
pub const CHUNK: usize = 1 << 20;
const ROW: usize = 8;

/// The rows of a workload: `data=DIRECTORY name=linspace|walk|labels`.
struct Rows {
    elements: Bytes,
    dtype: &'static str,
}

impl Rows {
    fn load(options: &Options) -> Result<Self> {
        let name = options.text("name");
        let elements = std::fs::read(format!("{}/{name}", options.text("data")))?;
        Ok(Self { elements: elements.into(), dtype: dtype_of(name) })
    }

    fn len(&self) -> u64 {
        (self.elements.len() / ROW) as u64
    }

    /// Some rows, as they lie in memory.
    fn part(&self, start: u64, rows: u64) -> Bytes {
        let start = start as usize * ROW;
        self.elements.slice(start..start + rows as usize * ROW)
    }

    /// A new dataset for them, in an empty place.
    async fn create(&self, options: &Options, settings: &store::Options) -> Result<Blz> {
        let mut creation = Creation::new(dtype::parse(self.dtype)?, &[]);
        creation.expected_len = options.number("expected", self.len())?;
        creation.wish.chunklen = Some((CHUNK / ROW) as u64);
        creation.wish.compression = Some(Compression::from(params(options.text("codec"))?));
        Ok(Blz::create(&place(options, settings)?, &creation, BlzOptions::default()).await?)
    }
}

/// Removes an older dataset.
fn clear(options: &Options) -> Result<()> {
    match std::fs::remove_dir_all(&options.directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn dtype_of(name: &str) -> &'static str {
    match name {
        "linspace" => "<f8",
        "walk" => "<i8",
        _ => "<u8",
    }
}

/// How chunks are encoded: `lz4` at level 5, or `zstd` at level 2 of Blosc, which is its own 3.
pub fn params(codec: &str) -> Result<Params> {
    let (compressor, level) = match codec {
        "lz4" => (Compressor::Lz4, 5),
        "zstd" => (Compressor::Zstd, 2),
        other => return Err(format!("no codec {other:?}").into()),
    };
    let shuffle = Shuffle::Byte;
    let block_bytes = compressor.block_bytes();
    Ok(Params { compressor, level, shuffle, item: ROW as u8, block_bytes })
}

/// Everything that is synced reaches the disk, or nothing does.
fn settings(durable: bool) -> store::Options {
    let durability = if durable { Durability::Full } else { Durability::None };
    store::Options { durability, ..store::Options::default() }
}

fn place(options: &Options, settings: &store::Options) -> Result<Place> {
    Ok(Place::new(&options.directory, settings)?)
}

async fn open(options: &Options) -> Result<Blz> {
    let settings = store::Options::default();
    Ok(Blz::open(&place(options, &settings)?, BlzOptions::default()).await?)
}
