//! The side of the zarrs crate: `zarrs-bench WORKLOAD DIRECTORY [KEY=VALUE …]`.
//!
//! A store in the file system, the crate's own parallelism, reads into memory of the caller if the
//! crate offers that, and an allocator that keeps freed memory.

mod read;
mod write;

use std::error::Error;
use std::sync::Arc;

use bench_measure::{Data, Options};
use zarrs::array::Array;
use zarrs::filesystem::FilesystemStore;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Store = FilesystemStore;

fn open(directory: &str) -> Result<Array<Store>, Box<dyn Error>> {
    Ok(Array::open(Arc::new(Store::new(directory)?), "/a")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::from_arguments()?;
    let directory = options.directory.as_str();
    let repeats = options.number("repeats", 3)?;
    let answer = match options.workload.as_str() {
        "write" => write::all(directory, &Data::load(&options)?, options.is("sharded"), repeats)?,
        "read" => read::all(directory, Data::load(&options)?, repeats)?,
        "read-cold" => read::cold(directory, &options)?,
        "read-chunk" => read::chunks(directory, &Data::load(&options)?)?,
        "read-series" => read::series(directory, &Data::load(&options)?, repeats)?,
        other => return Err(format!("no workload {other:?}").into()),
    };
    println!("{}", answer.line());
    Ok(())
}
