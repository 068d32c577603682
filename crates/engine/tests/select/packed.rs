//! Reading arrays whose chunks are clipped at the edges and packed into blocks, as in containers.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_engine::format::{ArrayNode, ChunkCodecs, Edges, Locate, Reader};
use chunkyard_engine::store::{Block, ChunkRef, Fetcher, Options, Remotes, Store, block_codec};
use chunkyard_engine::{ErrorKind, Result};
use proptest::prelude::*;
use serde_json::json;

use super::model::{Extent, dtype, extents, sample_of};
use super::read::{block_on, read, some_picked};
use crate::convert::naive::indices;
use crate::convert::sample::Sample;
use chunkyard_test_support::cases;

/// Chunks in blocks of one object.
#[derive(Debug)]
struct Blocks {
    chunks: HashMap<ChunkIndex, ChunkRef>,
    fetcher: Fetcher,
}

#[async_trait]
impl Locate for Blocks {
    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(chunks.iter().map(|index| self.chunks.get(index).cloned()).collect())
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

/// How chunks are put into blocks.
#[derive(Debug, Clone, Copy)]
struct Packing {
    codec: &'static str,
    chunks_per_block: usize,
    checked: bool,
    edges: Edges,
}

async fn packed(sample: &Sample, packing: Packing) -> (Arc<Blocks>, ChunkCodecs) {
    let node = ArrayNode { edges: packing.edges, ..ArrayNode::new(&sample.spec).unwrap() };
    let codecs = ChunkCodecs::new(&node).unwrap();
    let url = format!("memory://packed-{}", Block::new_owner());
    let store = Store::open(&url, &Options::default()).unwrap();
    let (mut file, mut chunks, owner) = (Vec::new(), HashMap::new(), Block::new_owner());
    // Every third chunk is not stored.
    let all = indices(&codecs.grid().grid_shape());
    let stored: Vec<_> = all.into_iter().filter(|at| at.iter().sum::<u64>() % 3 != 2).collect();
    for group in stored.chunks(packing.chunks_per_block) {
        let (mut plain, mut places) = (Vec::new(), Vec::new());
        for index in group {
            let region = codecs.stored_region(index);
            let (codecs, _) = codecs.of(index).unwrap();
            let elements = sample.array.region(&region, codecs.fill_element());
            let elements = elements.to_elements(codecs.item_size());
            let start = plain.len() as u64;
            plain.extend(codecs.encode(elements.as_ref()).unwrap());
            places.push((index.clone(), start..plain.len() as u64));
        }
        let bytes = block_codec(packing.codec).unwrap().pack(&plain).unwrap();
        let start = file.len() as u64;
        file.extend_from_slice(&bytes);
        let block = Arc::new(Block {
            path: "a.af".into(),
            range: start..file.len() as u64,
            guard: None,
            crc32c: packing.checked.then(|| crc32c::crc32c(&bytes)),
            codec: (packing.codec != "none").then(|| packing.codec.into()),
            len: plain.len() as u64,
            owner,
        });
        chunks.extend(
            places
                .into_iter()
                .map(|(index, within)| (index, ChunkRef::Slice { block: block.clone(), within })),
        );
    }
    store.put("a.af", vec![file.into()]).await.unwrap();
    let nowhere = Arc::new(Remotes::new(Vec::new(), Options::default()));
    let fetcher = Fetcher::new(store.clone(), nowhere, *store.limits(), true);
    (Arc::new(Blocks { chunks, fetcher }), codecs)
}

fn packings() -> impl Strategy<Value = Packing> {
    let codec = prop::sample::select(vec!["lz4", "zstd", "none"]);
    let edges = prop::sample::select(vec![Edges::Clipped, Edges::Padded]);
    (codec, 1usize..4, any::<bool>(), edges).prop_map(
        |(codec, chunks_per_block, checked, edges)| Packing {
            codec,
            chunks_per_block,
            checked,
            edges,
        },
    )
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn any_selection_of_packed_chunks_equals_indexing(
        (axes, picks) in extents().prop_flat_map(some_picked),
        dtype in dtype(),
        codecs in prop::sample::select(vec![Some("none"), Some("none"), None]),
        packing in packings(),
    ) {
        let sample = sample_of(&axes, &dtype, codecs);
        let sample = sample.sparse(|index| index.iter().sum::<u64>() % 3 != 2);
        block_on(async {
            let (blocks, codecs) = packed(&sample, packing).await;
            let reader = Reader::of(blocks, "/a", codecs);
            for picked in &picks {
                let found = read(&reader, picked).await;
                assert_eq!(found, picked.take(&sample.array), "{packing:?} {picked:?}");
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_do_not_hold_a_chunk_are_corrupt_and_named() {
    let axes = |chunk| [Extent { extent: 7, chunk }, Extent { extent: 5, chunk: 3 }];
    let [right, wrong] =
        [4, 3].map(|chunk| sample_of(&axes(chunk), &json!("uint32"), Some("none")));
    for codec in ["lz4", "zstd", "none"] {
        let packing = Packing { codec, chunks_per_block: 1, checked: true, edges: Edges::Clipped };
        let node = ArrayNode { edges: Edges::Clipped, ..ArrayNode::new(&wrong.spec).unwrap() };
        let (blocks, _) = packed(&right, packing).await;
        let reader = Reader::of(blocks, "/a", ChunkCodecs::new(&node).unwrap());
        let error = reader.read_region(&Region::whole(&[7, 5])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec}: {error}");
        assert!(error.to_string().contains("of /a"), "{codec}: {error}");
    }
}
