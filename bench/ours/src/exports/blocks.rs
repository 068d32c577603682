//! Repositories of label blocks of one kind, made without a look at voxels, and shards of them for readers.

use bench_measure::{Answer, Options, Outcome};
use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::encode;
use chunkyard_engine::export::{Codec, Emit};
use chunkyard_engine::repo::CommitOptions;
use chunkyard_engine::store::Durability;
use serde_json::json;

use super::{Result, Wish, chunk_bits, spec};
use crate::commits::create;
use crate::convert::clear;

/// Voxels of a block along each axis, and in all.
const EDGE: u64 = 64;
const VOXELS: usize = 64 * 64 * 64;

/// `data=DIRECTORY name=KIND blocks=N grid=EDGE`: N blocks, which lie in a cube of EDGE blocks along each axis and are the blocks of
/// the kind over and over. `name=solid`: each block is one label. They fill the cube from its beginning; `scattered=yes`: they lie
/// all over it.
pub async fn blocks(options: &Options) -> Outcome {
    make(options, &options.directory).await?;
    Ok(Answer::default())
}

/// The same blocks as Arrow shards of `shard=EDGE` blocks along each axis, a power of two.
pub async fn shards(options: &Options) -> Outcome {
    let (repo, target) =
        (format!("{}/repo", options.directory), format!("{}/shards", options.directory));
    make(options, &repo).await?;
    let size = [options.number("grid", 1)? * EDGE; 3];
    let within = 3 * options.number("shard", 1)?.ilog2();
    let spec = spec(size, within, 0, chunk_bits(size).saturating_sub(within));
    let wish = Wish {
        source: &repo,
        emit: Emit::Arrow,
        codec: Codec::default(),
        spec: Some(spec),
        durability: Durability::None,
    };
    wish.run(&target).await?;
    Ok(Answer::default())
}

async fn make(options: &Options, directory: &str) -> Result<()> {
    let (count, grid) = (options.number("blocks", 1)?, options.number("grid", 1)?);
    if count > grid.saturating_pow(3) {
        return Err(format!("{count} blocks in a cube of {grid} along each axis").into());
    }
    clear(directory)?;
    let session = create(directory).await?.writable_session("main").await?;
    let codecs = vec![
        json!({"name": "chunkyard.label_block"}),
        json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}}),
    ];
    let spec = ArraySpec::builder(&[grid * EDGE; 3], &[EDGE; 3], "uint64")
        .codecs(codecs)
        .dimension_names(["z", "y", "x"])
        .build()?;
    let array = session.create_array("/seg", spec).await?;
    let codecs = array.reader().codecs().whole().clone();
    let kinds = kinds(options)?;
    let mut chunks = Vec::with_capacity(kinds.len());
    for voxels in &kinds {
        let mut block = Vec::new();
        encode(voxels, [64; 3], &mut block)?;
        chunks.push(bytes::Bytes::from(codecs.encode_label_block(&block)?));
    }
    // A step that shares no factor with the number of places visits each of them once.
    let places = grid.pow(3);
    let step = if options.is("scattered") { coprime(places, places / 1000 * 618) } else { 1 };
    for (number, chunk) in (0..count).zip(chunks.iter().cycle()) {
        let place = (u128::from(number) * u128::from(step) % u128::from(places)) as u64;
        let index = [place / grid / grid, place / grid % grid, place % grid];
        session.set_chunk("/seg", &index, chunk.clone()).await?;
    }
    session.commit(CommitOptions::message("blocks")).await?;
    Ok(())
}

/// A number near another one that shares no factor with `places`.
fn coprime(places: u64, near: u64) -> u64 {
    let common = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (near..).find(|step| common(*step, places) == 1).unwrap_or(1)
}

/// The voxels of the blocks of a kind.
fn kinds(options: &Options) -> Result<Vec<Vec<u64>>> {
    let name = options.text("name");
    if name == "solid" {
        return Ok((1..=8).map(|label| vec![label; VOXELS]).collect());
    }
    let bytes = std::fs::read(format!("{}/blocks-{name}", options.text("data")))?;
    let words = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word));
    Ok(words.collect::<Vec<u64>>().chunks_exact(VOXELS).map(<[u64]>::to_vec).collect())
}
