//! Our side of the benchmarks. `chunkyard-bench WORKLOAD DIRECTORY [KEY=VALUE …]` runs one workload
//! in this process and prints one JSON line: seconds (best), CPU seconds, bytes, and a checksum of
//! the data where there is any, so that the harness can compare it with the peers'.

mod arrays;
mod commits;
mod limits;
mod measure;

use std::collections::HashMap;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "chunkyard-bench WORKLOAD DIRECTORY [KEY=VALUE …]";
    let workload = arguments.next().ok_or(usage)?;
    let directory = arguments.next().ok_or(usage)?;
    let options: HashMap<String, String> = arguments
        .filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let number =
        |key: &str, default: u64| options.get(key).map_or(Ok(default), |text| text.parse::<u64>());
    let repeats = number("repeats", 3)?;
    let refs = number("refs", 100_000)?;
    let data = options.get("data").map_or("", String::as_str);
    let result = match workload.as_str() {
        "limits" => limits::run(&directory)?,
        "prepare-refs" => commits::prepare(&directory, refs).await?,
        "commit-one" => commits::one_chunk(&directory, refs, number("chunks", 1)?, repeats).await?,
        "commit-bulk" => commits::bulk(&directory, refs).await?,
        "open-first-chunk" => commits::open_first_chunk(&directory, refs, repeats).await?,
        "write-tiny" => commits::tiny(&directory, number("chunks", 100_000)?).await?,
        "history" => commits::history(&directory, number("commits", 1000)?).await?,
        "write" | "write-labels" => arrays::write(&directory, data, &workload, repeats).await?,
        "read" | "read-labels" => arrays::read(&directory, data, &workload, repeats).await?,
        "read-chunk" => arrays::read_chunk(&directory, number("clients", 1)?).await?,
        "read-series" => arrays::read_series(&directory, repeats).await?,
        other => return Err(format!("no workload {other:?}").into()),
    };
    println!("{result}");
    Ok(())
}
