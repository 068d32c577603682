//! Writing a whole array, one file per chunk or per shard of 64.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bench_measure::{Answer, Clock, Data, Outcome, Samples};
use serde_json::json;
use zarrs::array::{Array, ArrayBytes, ArrayMetadata};

use crate::Store;

/// Writes everything into a fresh directory, `repeats` times after a warm-up.
pub fn all(directory: &str, data: &Data, sharded: bool, repeats: u64) -> Outcome {
    let (mut returned, mut durable) = (Samples::default(), Samples::default());
    for repeat in 0..=repeats {
        if Path::new(directory).exists() {
            std::fs::remove_dir_all(directory)?;
        }
        std::fs::create_dir_all(directory)?;
        let array = create(directory, data, sharded)?;
        let all = array.subset_all();
        let clock = Clock::start();
        array.store_array_subset(&all, ArrayBytes::new_flen(&data.elements[..]))?;
        if repeat > 0 {
            returned.add(clock);
        }
        sync(Path::new(directory))?;
        if repeat > 0 {
            durable.add(clock);
        }
    }
    Ok(Answer::default().measure("returned", &returned).measure("durable", &durable))
}

fn create(directory: &str, data: &Data, sharded: bool) -> Result<Array<Store>, Box<dyn Error>> {
    let codec = match data.is_labels() {
        true => json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}}),
        // blosc level 2 is zstd level 3.
        false => json!({"name": "blosc", "configuration": {
            "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}),
    };
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let (grid, codecs) = match sharded {
        false => (data.chunk, json!([bytes, codec])),
        true => {
            let configuration = json!({
                "chunk_shape": data.chunk,
                "codecs": [bytes, codec],
                "index_codecs": [bytes, {"name": "crc32c"}],
                "index_location": "end",
            });
            let shards = json!({"name": "sharding_indexed", "configuration": configuration});
            (data.shard, json!([shards]))
        }
    };
    let metadata: ArrayMetadata = serde_json::from_value(json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": data.shape,
        "data_type": data.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
    }))?;
    let array = Array::new_with_metadata(Arc::new(Store::new(directory)?), "/a", metadata)?;
    array.store_metadata()?;
    Ok(array)
}

/// Makes everything durable, which the crate does not do.
fn sync(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}
