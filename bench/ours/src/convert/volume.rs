//! How much memory a large conversion takes.
//!
//! The volume is the field many times over. It takes the disk space of one field: its chunks are
//! many names of the same files.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bench_measure::{Answer, Clock, Data, Options, Outcome, Samples, peak};
use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_engine::format::{MemorySource, OpenOptions, Source};
use chunkyard_engine::open::open;
use chunkyard_engine::store::Durability;
use serde_json::{Value, json};

use super::movement::Movement;
use super::{check, clear, run};
use crate::arrays::plain_wishes;

/// Makes the volume: `times=N` fields, in plain Zarr, one file per chunk.
pub async fn volume(options: &Options) -> Outcome {
    let (directory, times) = (&options.directory, options.number("times", 1)?);
    let data = Data::load(options)?;
    let spec = ArraySpec::builder(&data.shape, &data.chunk, data.data_type).build()?;
    let (planes, wishes) = (data.shape[0], plain_wishes(&data, false));
    let source = MemorySource::new("/a", &spec, Bytes::from(data.elements))?;
    let source: Arc<dyn Source> = Arc::new(source);
    clear(directory)?;
    run(&source, directory, "zarr3", &wishes, Durability::None).await?;
    let array = Path::new(directory).join("a");
    let chunk = |plane: u64| array.join(format!("c/{plane}/0/0"));
    for plane in planes..planes * times {
        let file = chunk(plane);
        std::fs::create_dir_all(file.parent().ok_or("a chunk lies in a directory")?)?;
        std::fs::hard_link(chunk(plane % planes), file)?;
    }
    lengthen(&array.join("zarr.json"), planes * times)?;
    // Its consolidated metadata would hold the old length.
    let root = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    std::fs::write(Path::new(directory).join("zarr.json"), root.to_string())?;
    Ok(Answer::default())
}

fn lengthen(file: &Path, planes: u64) -> Result<(), Box<dyn Error>> {
    let mut metadata: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    metadata["shape"][0] = json!(planes);
    Ok(std::fs::write(file, metadata.to_string())?)
}

/// Converts the volume once, with the default limit of memory.
pub async fn convert_volume(options: &Options) -> Outcome {
    let (source, target) = (options.text("source"), &options.directory);
    let movement = Movement::parse(options.text("movement"))?;
    clear(target)?;
    let mut durable = Samples::default();
    let clock = Clock::start();
    let opened = open(source, &OpenOptions::default()).await?;
    let (format, wishes) = (movement.format(), movement.wishes());
    let plan = run(&opened.source, target, format, &wishes, Durability::Full).await?;
    durable.add(clock);
    let memory = peak();
    movement.check(&plan)?;
    let equal = check::all_equal(target, options, options.number("times", 1)?).await?;
    clear(target)?;
    Ok(Answer::default().measure("durable", &durable).fact("memory-peak", memory).equal(equal))
}
