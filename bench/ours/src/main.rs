//! Our side of the benchmarks, and the limits of the machine: `chunkyard-bench WORKLOAD DIRECTORY
//! [KEY=VALUE …]` does one workload in this process and prints one JSON line; `bench_measure`
//! describes it.

mod arrays;
mod commits;
mod containers;
mod convert;
mod disk;
mod dvid;
mod exports;
mod labels;
mod limits;
mod scale;
mod superchunks;

use std::error::Error;

use bench_measure::{Data, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::from_arguments()?;
    let directory = options.directory.as_str();
    let (repeats, refs) = (options.number("repeats", 3)?, options.number("refs", 100_000)?);
    let data = || Data::load(&options);
    let answer = match options.workload.as_str() {
        "limits" => limits::all(directory, &options)?,
        "write" if options.text("layout") == "zarr3" => {
            arrays::write_plain(directory, data()?, options.is("sharded"), repeats).await?
        }
        "write" => arrays::write(directory, data()?, options.text("codec"), repeats).await?,
        "read" => arrays::read(&options, data()?, repeats).await?,
        "read-cold" => arrays::read_cold(&options).await?,
        "read-chunk" => arrays::read_chunk(&options, &data()?).await?,
        "read-series" => arrays::read_series(&options, &data()?, repeats).await?,
        "convert" => convert::convert(&options, repeats).await?,
        "volume" => convert::volume(&options).await?,
        "convert-volume" => convert::convert_volume(&options).await?,
        "prepare" => commits::prepare(directory, refs).await?,
        "commit" => commits::change(directory, refs, options.number("chunks", 1)?, repeats).await?,
        "bulk" => commits::bulk(directory, refs, repeats).await?,
        "open-chunk" => commits::open_chunk(directory, refs, repeats).await?,
        "tiny" => commits::tiny(directory, options.number("chunks", 100_000)?).await?,
        "history" => commits::history(directory, options.number("commits", 1000)?).await?,
        "scale-prepare" => scale::prepare(directory, &options).await?,
        "scale-step" => scale::step(directory, &options).await?,
        "container-write" => containers::write_all(&options).await?,
        "container-read" => containers::read_all(&options).await?,
        "container-chunks" => containers::chunks(&options).await?,
        "container-point" => containers::point(&options).await?,
        "container-arrays" => containers::arrays(&options).await?,
        "container-open" => containers::open(&options).await?,
        "container-tiny" => containers::tiny(&options).await?,
        "container-planes" => containers::planes(&options).await?,
        "container-change" => containers::change(&options).await?,
        "container-layers" => containers::layers(&options).await?,
        "container-deep" => containers::deep(&options).await?,
        "container-first" => containers::first(&options).await?,
        "label-codec" => labels::codec(&options)?,
        "label-half" if options.text("way") == "voxels" => labels::half_by_voxels(&options)?,
        "label-half" => labels::half(&options)?,
        "label-import" => labels::import(&options).await?,
        "label-mapping" => labels::mapping(&options).await?,
        "label-merge" => labels::merge(&options).await?,
        "label-diff" => labels::diff(&options).await?,
        "dvid-values" => dvid::values(&options).await?,
        "dvid-labels" => dvid::lists(&options).await?,
        "dvid-import" => dvid::import(&options).await?,
        "export-arrow" => exports::arrow(&options).await?,
        "export-volume" => exports::volume(&options).await?,
        "export-precomputed" => exports::precomputed(&options).await?,
        "export-blocks" => exports::blocks(&options).await?,
        "export-shards" => exports::shards(&options).await?,
        "export-growth" => exports::growth(&options).await?,
        "export-work" => exports::work(&options).await?,
        "export-worker" => exports::worker(&options).await?,
        "superchunk-write" => superchunks::write(&options).await?,
        "superchunk-read" => superchunks::read(&options).await?,
        "superchunk-random" => superchunks::random(&options).await?,
        "superchunk-append" => superchunks::append(&options).await?,
        "superchunk-files" => superchunks::files(&options).await?,
        other => return Err(format!("no workload {other:?}").into()),
    };
    println!("{}", answer.line());
    Ok(())
}
