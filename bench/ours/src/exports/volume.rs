//! A volume of labels as a sharded Neuroglancer volume, from plain Zarr and from a labelmap.

use std::fs::File;
use std::sync::Arc;

use async_trait::async_trait;
use bench_measure::{Answer, Clock, Options, Outcome, Samples, peak};
use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::Meter;
use chunkyard_engine::export::{Codec, Emit};
use chunkyard_engine::format::{MemorySource, OpenOptions, Reader, Source};
use chunkyard_engine::open::open;
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::store::Durability;
use chunkyard_labels::{Labelmap, Layout, Mapping, Volume};
use memmap2::Mmap;

use super::watch::OpenFiles;
use super::{Result, Wish, chunk_bits, spec};
use crate::commits::create;
use crate::convert::{WAYS, clear, run};
use crate::disk::Disk;

/// Bits of the number of a chunk within a shard: shards of 256 voxels along each axis.
const WITHIN: u32 = 6;
/// Planes that are compared at once.
const PLANES: u64 = 64;

/// The voxels in a file, as little-endian words.
struct Mapped {
    bytes: Bytes,
    shape: [u64; 3],
}

impl Mapped {
    /// `data=DIRECTORY z=… y=… x=…`.
    fn open(options: &Options) -> Result<Self> {
        let shape = [options.number("z", 64)?, options.number("y", 64)?, options.number("x", 64)?];
        let file = File::open(format!("{}/supervoxels", options.text("data")))?;
        // SAFETY: nothing else writes the file while workers run.
        let bytes = Bytes::from_owner(unsafe { Mmap::map(&file)? });
        let wanted = 8 * shape.iter().product::<u64>();
        match bytes.len() as u64 == wanted {
            true => Ok(Self { bytes, shape }),
            false => Err(format!("{} bytes of voxels instead of {wanted}", bytes.len()).into()),
        }
    }

    /// Some planes.
    fn planes(&self, from: u64, count: u64) -> &[u8] {
        let plane = (8 * self.shape[1] * self.shape[2]) as usize;
        self.bytes.get(from as usize * plane..(from + count) as usize * plane).unwrap_or_default()
    }
}

#[async_trait]
impl Volume for Mapped {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> chunkyard_engine::Result<Vec<u64>> {
        let (start, end) = (region.origin(), region.end());
        let mut out = Vec::with_capacity(region.num_elements() as usize);
        for z in start[0]..end[0] {
            let (rows, _) = self.planes(z, 1).as_chunks::<8>();
            for y in start[1]..end[1] {
                let row = |x: u64| (y * self.shape[2] + x) as usize;
                let row = rows.get(row(start[2])..row(end[2])).unwrap_or_default();
                out.extend(row.iter().map(|&word| u64::from_le_bytes(word)));
            }
        }
        Ok(out)
    }
}

/// Makes the sources: the voxels as plain Zarr in chunks of 64³, zstd-3, and as a labelmap.
pub async fn volume(options: &Options) -> Outcome {
    let directory = options.directory.as_str();
    let mapped = Mapped::open(options)?;
    clear(directory)?;
    let spec = ArraySpec::builder(&mapped.shape, &[64; 3], "uint64").build()?;
    let source = MemorySource::new("/a", &spec, mapped.bytes.clone())?;
    let source: Arc<dyn Source> = Arc::new(source);
    let wishes =
        Wishes { chunks: Some(vec![64; 3]), codec: Some("zstd:3".into()), ..Wishes::default() };
    run(&source, &format!("{directory}/plain"), "zarr3", &wishes, Durability::None).await?;
    let session = create(&format!("{directory}/map")).await?.writable_session("main").await?;
    let layout = Layout { scales: 1, ..Layout::new(mapped.shape) };
    let (mapping, meter) = (Mapping::default(), Meter::default());
    let (map, _) = Labelmap::import(&session, "/seg", layout, &mapped, &mapping, &meter).await?;
    map.commit("volume").await?;
    Ok(Answer::default())
}

/// `source=DIRECTORY from=plain|map`: the volume with compressed_segmentation and gzip, `repeats` times, as a segmentation is exported or,
/// with `way=convert`, as any array is converted.
pub async fn precomputed(options: &Options) -> Outcome {
    let target = options.directory.as_str();
    let source = format!("{}/{}", options.text("source"), options.text("from"));
    let mapped = Mapped::open(options)?;
    let [z, y, x] = mapped.shape;
    let bits = chunk_bits([x, y, z]);
    let within = WITHIN.min(bits);
    let spec = spec([x, y, z], within, 0, bits - within);
    let mut samples = [Samples::default(), Samples::default()];
    let (mut memory, mut files) = (0, 0);
    for _ in 0..options.number("repeats", 1)?.max(1) {
        for (durability, samples) in WAYS.into_iter().zip(&mut samples) {
            clear(target)?;
            let spec = Some(spec.clone());
            let (emit, codec) = (Emit::Precomputed, Codec::default());
            let wish = Wish { source: &source, emit, codec, spec, durability };
            let open = OpenFiles::watch();
            let clock = Clock::start();
            if options.text("way") == "convert" {
                convert(&source, target, durability).await?;
            } else {
                wish.run(target).await?;
            }
            samples.add(clock);
            (memory, files) = (memory.max(peak()), files.max(open.most()));
        }
    }
    let equal = is_equal(target, &mapped).await?;
    let [returned, durable] = samples;
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("durable", &durable)
        .fact("memory", memory)
        .fact("open-files", files)
        .fact("stored-bytes", Disk::of(target)?.bytes())
        .equal(equal))
}

async fn convert(source: &str, target: &str, durability: Durability) -> Result<()> {
    let opened = open(source, &OpenOptions::default()).await?;
    let shards = Some(Some(vec![256; 3]));
    let wishes = Wishes { chunks: Some(vec![64; 3]), shards, ..Wishes::default() };
    run(&opened.source, target, "precomputed", &wishes, durability).await?;
    Ok(())
}

/// Whether a volume has the voxels of a file.
async fn is_equal(target: &str, mapped: &Mapped) -> Result<bool> {
    let opened = open(target, &OpenOptions::default()).await?;
    let path = opened.source.dataset().arrays().map(|(path, _)| path.to_owned()).next();
    let reader = Reader::new(&opened.source, &path.ok_or("a volume without an array")?)?;
    let [z, y, x] = mapped.shape;
    let mut equal = reader.codecs().grid().array_shape() == mapped.shape;
    for from in (0..z).step_by(PLANES as usize) {
        let count = PLANES.min(z - from);
        let region = Region::new(vec![from, 0, 0], vec![count, y, x])?;
        equal = equal && reader.read_region(&region).await?[..] == *mapped.planes(from, count);
    }
    Ok(equal)
}
