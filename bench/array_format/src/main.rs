//! The side of the array-format crate: `array-format-bench WORKLOAD DIRECTORY release=R [KEY=VALUE …]`.
//!
//! Two releases: 0.9.0, whose file format and layers are ours too, and the newest.

mod layered;
mod newest;
mod release;
mod store;
mod workloads;

use bench_measure::{Answer, Options};

use layered::Layered;
use newest::Newest;
use release::{Release, Result};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::from_arguments()?;
    let answer = match options.text("release") {
        "0.9" => run::<Layered>(&options).await?,
        "0.15" => run::<Newest>(&options).await?,
        other => return Err(format!("no release {other:?}").into()),
    };
    println!("{}", answer.line());
    Ok(())
}

async fn run<R: Release>(options: &Options) -> Result<Answer> {
    let is_labels = options.text("name") == "labels";
    match options.workload.as_str() {
        "container-write" if is_labels => workloads::write::<R, u64>(options).await,
        "container-read" if is_labels => workloads::read::<R, u64>(options).await,
        "container-write" => workloads::write::<R, f32>(options).await,
        "container-read" => workloads::read::<R, f32>(options).await,
        "container-chunks" => workloads::chunks::<R>(options).await,
        "container-point" => workloads::point::<R>(options).await,
        "container-arrays" => workloads::arrays::<R>(options).await,
        "container-open" => workloads::open::<R>(options).await,
        "container-tiny" => workloads::tiny::<R>(options).await,
        "container-planes" => workloads::planes::<R>(options).await,
        "container-change" => workloads::change::<R>(options).await,
        "container-layers" => workloads::layers::<R>(options).await,
        "container-deep" => workloads::deep::<R>(options).await,
        "container-first" => workloads::first::<R>(options).await,
        other => Err(format!("no workload {other:?}").into()),
    }
}
