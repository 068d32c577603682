//! Containers: the workloads of the array-format crate's side, by our API.

use std::sync::Arc;

use bench_measure::{Answer, Clock, Data, Idle, Options, Outcome, Samples, resident};
use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_engine::format::Place;
use chunkyard_engine::format::container::model::{AttributeValue, DType};
use chunkyard_engine::format::container::{
    CompactOptions, Container, ContainerOptions, Definition,
};
use chunkyard_engine::store::{self, Counted, Counts, Durability, Store, block_codec};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The container's base object.
const BASE: &str = "c.af";

/// Elements of a tiny chunk.
const TINY: u64 = 16;

/// A place for one container, behind a store that counts requests.
struct Counting {
    place: Place,
    counted: Arc<Counted>,
}

impl Counting {
    /// The directory, or memory with the files of the directory: `store=memory`.
    async fn open(options: &Options) -> Result<Self> {
        std::fs::create_dir_all(&options.directory)?;
        let mut settings = store::Options::default();
        if !options.is("durable") {
            settings.durability = Durability::None;
        }
        let directory = Store::open(&options.directory, &settings)?;
        let store = match options.text("store") {
            "memory" => {
                let memory = Store::open("memory://container", &settings)?;
                for meta in directory.list_dir("").await?.objects {
                    let bytes = directory.get(&meta.path).await?.bytes;
                    memory.put(&meta.path, vec![bytes]).await?;
                }
                memory
            }
            _ => directory,
        };
        let (store, counted) = Counted::wrap(&store);
        Ok(Self { place: Place::within(store, BASE)?, counted })
    }

    /// Requests since the last call.
    fn requests(&self) -> u64 {
        let Counts { gets, puts, lists, heads, deletes, moves, .. } = self.counted.take();
        gets + puts + lists + heads + deletes + moves
    }

    /// An empty container, in place of an older one.
    async fn create(&self, codec: &str) -> Result<Container> {
        if let Some((store, _)) = self.place.object() {
            let there = store.list_dir("").await?.objects.into_iter().map(|meta| meta.path);
            store.delete(&there.collect::<Vec<_>>()).await?;
        }
        Ok(Container::create(&self.place, packed(codec)?).await?)
    }

    async fn container(&self) -> Result<Container> {
        Ok(Container::open(&self.place, ContainerOptions::default()).await?)
    }
}

fn packed(codec: &str) -> Result<ContainerOptions> {
    let name = if codec.is_empty() { "none" } else { codec };
    Ok(ContainerOptions { codec: block_codec(name)?, ..ContainerOptions::default() })
}

/// The first planes of the field or of the segmentation.
struct Planes {
    dtype: DType,
    shape: Vec<u64>,
    elements: Bytes,
    item_size: u64,
}

impl Planes {
    fn load(options: &Options) -> Result<Self> {
        let mut data = Data::load(options)?;
        data.elements.truncate((options.number("mib", 256)? as usize) << 20);
        let item_size = data.item_size as u64;
        let dtype = if item_size == 8 { DType::UInt64 } else { DType::Float32 };
        let shape = vec![data.elements.len() as u64 / (item_size << 18), 512, 512];
        Ok(Self { dtype, shape, elements: data.elements.into(), item_size })
    }

    async fn write(&self, container: &Container, chunk_bytes: u64) -> Result<()> {
        let planes = chunk_bytes / (self.item_size << 18);
        let chunk_shape = Some(vec![planes, 512, 512]);
        let definition = Definition::new("a", self.dtype.clone(), &self.shape);
        container.define(Definition { chunk_shape, ..definition }).await?;
        write(container, "a", &Region::whole(&self.shape), self.elements.clone()).await?;
        container.flush().await?;
        Ok(())
    }
}

async fn write(container: &Container, name: &str, region: &Region, elements: Bytes) -> Result<()> {
    Ok(container.array(name).await?.writer()?.write_region(region, elements).await?)
}

async fn read(container: &Container, name: &str, region: &Region) -> Result<Vec<u8>> {
    Ok(container.array(name).await?.reader()?.read_region(region).await?.to_vec())
}

/// Writes the field in chunks of 4 MiB.
pub async fn write_all(options: &Options) -> Outcome {
    let planes = Planes::load(options)?;
    let place = Counting::open(options).await?;
    let mut returned = Samples::default();
    for repeat in 0..=options.number("repeats", 3)? {
        let clock = Clock::start();
        let container = place.create(options.text("codec")).await?;
        planes.write(&container, 4 << 20).await?;
        if repeat > 0 {
            returned.add(clock);
        }
    }
    let measure = if options.is("durable") { "durable" } else { "returned" };
    Ok(Answer::default().measure(measure, &returned))
}

/// Opens the field and reads all of it.
pub async fn read_all(options: &Options) -> Outcome {
    let planes = Planes::load(options)?;
    let place = Counting::open(options).await?;
    let (mut fresh, mut equal) = (Samples::default(), true);
    for _ in 0..=options.number("repeats", 3)? {
        let clock = Clock::start();
        let container = place.container().await?;
        let array = container.array("a").await?;
        let values = array.reader()?.read_region(&Region::whole(&planes.shape)).await?;
        fresh.add(clock);
        equal &= *values == *planes.elements;
    }
    Ok(Answer::default().measure("fresh", &fresh).equal(equal))
}

fn tiny_values(elements: std::ops::Range<u64>) -> Vec<u8> {
    elements.flat_map(|at| ((at % (1 << 24)) as f32).to_le_bytes()).collect()
}

async fn write_tiny(container: &Container, chunks: u64, elements: Bytes) -> Result<()> {
    let definition = Definition::new("a", DType::Float32, &[chunks * TINY]);
    container.define(Definition { chunk_shape: Some(vec![TINY]), ..definition }).await?;
    write(container, "a", &Region::whole(&[chunks * TINY]), elements).await?;
    container.flush().await?;
    Ok(())
}

/// Makes an array of many tiny chunks.
pub async fn chunks(options: &Options) -> Outcome {
    let chunks = options.number("chunks", 1000)?;
    let container = Counting::open(options).await?.create("none").await?;
    write_tiny(&container, chunks, tiny_values(0..chunks * TINY).into()).await?;
    container.compact(&CompactOptions::default()).await?;
    Ok(Answer::default())
}

/// Makes many arrays of 16 elements with one attribute.
pub async fn arrays(options: &Options) -> Outcome {
    let container = Counting::open(options).await?.create("none").await?;
    for at in 0..options.number("arrays", 1000)? {
        let name = format!("station/{at:06}");
        let mut definition = Definition::new(name.clone(), DType::Float32, &[TINY]);
        definition.attributes = vec![("units".into(), AttributeValue::String("K".into()))];
        container.define(definition).await?;
        let values = tiny_values(0..TINY).into();
        container.array(&name).await?.write_chunk(&[0], values).await?;
    }
    container.flush().await?;
    container.compact(&CompactOptions::default()).await?;
    Ok(Answer::default())
}

/// Opens, once per process: how long that takes, and how much memory it keeps.
pub async fn open(options: &Options) -> Outcome {
    let place = Counting::open(options).await?;
    let mut opened = Samples::default();
    place.requests();
    let (idle, before) = (Idle::now(), resident());
    let clock = Clock::start();
    let container = place.container().await?;
    opened.add(clock);
    let (grown, peak) = (resident().saturating_sub(before), idle.above());
    let requests = place.requests();
    let arrays = container.names().await?.len();
    let equal = match options.text("arrays") {
        "" => arrays == 1,
        text => text == arrays.to_string(),
    };
    let answer = Answer::default().measure("open", &opened).equal(equal);
    let answer = answer.fact("memory-growth", grown).fact("memory-peak", peak);
    Ok(answer.fact("requests", requests))
}

/// Reads 16 values at random places, from an open container that has read all of its blocks.
pub async fn point(options: &Options) -> Outcome {
    let place = Counting::open(options).await?;
    let chunks = options.number("chunks", 1000)?;
    let container = place.container().await?;
    let step = (1 << 18).max(chunks * TINY / 64);
    for start in (0..chunks * TINY).step_by(usize::try_from(step)?) {
        read(&container, "a", &Region::new([start], [TINY])?).await?;
    }
    let (mut latency, mut equal) = (Samples::default(), true);
    for at in 0..options.number("reads", 16)? {
        let start = scattered(at, chunks) * TINY;
        let clock = Clock::start();
        let values = read(&container, "a", &Region::new([start], [TINY])?).await?;
        latency.add(clock);
        equal &= values == tiny_values(start..start + TINY);
    }
    Ok(Answer::default().measure("latency", &latency).equal(equal))
}

/// Writes many tiny chunks.
pub async fn tiny(options: &Options) -> Outcome {
    let chunks = options.number("chunks", 1000)?;
    let values: Bytes = tiny_values(0..chunks * TINY).into();
    let place = Counting::open(options).await?;
    let mut returned = Samples::default();
    let clock = Clock::start();
    let container = place.create("none").await?;
    write_tiny(&container, chunks, values).await?;
    returned.add(clock);
    let last = (chunks - 1) * TINY;
    let found = read(&place.container().await?, "a", &Region::new([last], [TINY])?).await?;
    let equal = found == tiny_values(last..last + TINY);
    Ok(Answer::default().measure("returned", &returned).equal(equal))
}

/// Makes 64 planes in chunks of 1 MiB.
pub async fn planes(options: &Options) -> Outcome {
    let container = Counting::open(options).await?.create("none").await?;
    Planes::load(options)?.write(&container, 1 << 20).await?;
    Ok(Answer::default())
}

/// Changes one chunk of 1 MiB of an existing array: from opening until the change is visible.
pub async fn change(options: &Options) -> Outcome {
    let place = Counting::open(options).await?;
    let (mut returned, mut requests) = (Samples::default(), 0);
    for repeat in 0..options.number("changes", 3)? {
        let values: Vec<u8> = (0..1 << 18).flat_map(|_| (repeat as f32).to_le_bytes()).collect();
        let values = Bytes::from(values);
        place.requests();
        let clock = Clock::start();
        let container = Container::open(&place.place, packed("none")?).await?;
        let region = Region::new([repeat, 0, 0], [1, 512, 512])?;
        write(&container, "a", &region, values).await?;
        container.flush().await?;
        returned.add(clock);
        requests = place.requests();
    }
    let first = Region::new([0, 0, 0], [1, 1, TINY])?;
    let equal = read(&place.container().await?, "a", &first).await?.iter().all(|&byte| byte == 0);
    let measure = if options.is("durable") { "durable" } else { "returned" };
    Ok(Answer::default().measure(measure, &returned).fact("requests", requests).equal(equal))
}

/// Makes a container of many layers; each changes one of 256 chunks of 4 KiB.
pub async fn layers(options: &Options) -> Outcome {
    let container = Counting::open(options).await?.create("none").await?;
    let definition = Definition::new("a", DType::Float32, &[256 * 1024]);
    container.define(Definition { chunk_shape: Some(vec![1024]), ..definition }).await?;
    let ones = |count: usize| Bytes::from(1_f32.to_le_bytes().repeat(count));
    write(&container, "a", &Region::whole(&[256 * 1024]), ones(256 * 1024)).await?;
    container.flush().await?;
    for layer in 1..options.number("layers", 1000)? {
        let region = Region::new([(layer % 256) * 1024], [1024])?;
        write(&container, "a", &region, ones(1024)).await?;
        container.flush().await?;
    }
    Ok(Answer::default())
}

/// Reads random chunks of 4 KiB through all layers.
pub async fn deep(options: &Options) -> Outcome {
    let place = Counting::open(options).await?;
    place.requests();
    let container = place.container().await?;
    let requests = place.requests();
    read(&container, "a", &Region::whole(&[256 * 1024])).await?;
    let (mut latency, mut equal) = (Samples::default(), true);
    for at in 0..256 {
        let region = Region::new([scattered(at, 256) * 1024], [1024])?;
        let clock = Clock::start();
        let values = read(&container, "a", &region).await?;
        latency.add(clock);
        equal &= values.len() == 4096;
    }
    Ok(Answer::default().measure("latency", &latency).fact("requests", requests).equal(equal))
}

/// Requests to read one chunk from a container that was just opened.
pub async fn first(options: &Options) -> Outcome {
    let place = Counting::open(options).await?;
    let container = place.container().await?;
    place.requests();
    let clock = Clock::start();
    read(&container, "a", &Region::new([0, 0, 0], [1, 512, 512])?).await?;
    let mut latency = Samples::default();
    latency.add(clock);
    let requests = place.requests();
    Ok(Answer::default().measure("latency", &latency).fact("requests", requests))
}

/// A place below `count`, never the same twice in a row.
fn scattered(at: u64, count: u64) -> u64 {
    (at * 7_919 + 13) * 104_729 % count
}
