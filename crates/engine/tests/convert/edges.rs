//! A source whose edge chunks hold only elements inside the array.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Codecs, Region};
use chunkyard_engine::Result;
use chunkyard_engine::format::{
    ArrayNode, ChunkStream, Dataset, Edges, Locate, Node, Reader, Source,
};
use chunkyard_engine::pipeline::Movement;
use chunkyard_engine::store::{ChunkRef, Fetcher, Options, Remotes, Store};
use futures::{StreamExt, stream};

use super::formats::exact_sinks;
use super::naive::indices;
use super::sample::Sample;
use super::support::{PATH, Yard, convert, read, read_back};

/// Clipped chunks in memory.
#[derive(Debug)]
struct Clipped {
    dataset: Dataset,
    chunks: Vec<(ChunkIndex, Bytes)>,
    fetcher: Fetcher,
}

impl Clipped {
    fn source(sample: &Sample) -> Arc<dyn Source> {
        let node = ArrayNode { edges: Edges::Clipped, ..ArrayNode::new(&sample.spec).unwrap() };
        let (codecs, grid) = (Codecs::new(&sample.spec).unwrap(), node.grid().unwrap());
        let chunks = indices(&grid.grid_shape()).into_iter().map(|index| {
            let region = grid.clipped_region(&index);
            let codecs = codecs.with_chunk_shape(region.shape()).unwrap();
            let elements = sample.array.region(&region, &[]).to_elements(codecs.item_size());
            (index.into_iter().collect(), codecs.encode(elements.as_ref()).unwrap().into())
        });
        let chunks = chunks.collect();
        let mut dataset = Dataset::default();
        dataset.insert(PATH, Node::Array(Arc::new(node)));
        let store = Store::open("memory://clipped", &Options::default()).unwrap();
        let nowhere = Arc::new(Remotes::new(Vec::new(), Options::default()));
        let fetcher = Fetcher::new(store.clone(), nowhere, *store.limits(), true);
        Arc::new(Self { dataset, chunks, fetcher })
    }
}

#[async_trait]
impl Locate for Clipped {
    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let of = |index: &ChunkIndex| {
            let (_, bytes) = self.chunks.iter().find(|(known, _)| known == index)?;
            Some(ChunkRef::Inline(bytes.clone()))
        };
        Ok(chunks.iter().map(of).collect())
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

impl Source for Clipped {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        "clipped".into()
    }

    fn chunks<'a>(&'a self, _array: &'a str, _within: &'a Region) -> ChunkStream<'a> {
        let all = self.chunks.iter().cloned();
        stream::iter(all.map(|(index, bytes)| Ok((index, ChunkRef::Inline(bytes))))).boxed()
    }
}

#[tokio::test]
async fn clipped_edge_chunks_are_padded_where_the_target_wants_it() {
    for (shape, chunks) in
        [(vec![13, 11], vec![4, 3]), (vec![5], vec![8]), (vec![8, 6], vec![4, 3])]
    {
        for dtype in ["int32", "string"] {
            let sample = Sample::new(&shape, &chunks, dtype);
            let source = Clipped::source(&sample);
            assert!(read(&source, PATH).await == sample.array);
            let others: Vec<u64> = chunks.iter().map(|extent| extent + 2).collect();
            for to in exact_sinks() {
                for chunks in [&chunks, &others] {
                    let yard = Yard::memory();
                    let wishes = to.wishes(chunks);
                    let done = convert(&source, &yard.at("target"), to.format, &wishes).await;
                    assert_eq!(done.movement(), Movement::Regrid);
                    assert!(read_back(&yard, "target").await == sample.array, "{shape:?} {to:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn any_box_of_clipped_chunks_is_read() {
    let sample = Sample::new(&[7, 5], &[3, 2], "uint16");
    let reader = Reader::new(&Clipped::source(&sample), PATH).unwrap();
    for origin in indices(&[7, 5]) {
        for end in indices(&[8, 6]) {
            let spans = || origin.iter().zip(&end);
            if spans().any(|(from, to)| from > to) {
                continue;
            }
            let shape: Vec<u64> = spans().map(|(from, to)| to - from).collect();
            let region = Region::new(origin.clone(), shape).unwrap();
            let found = reader.read_region(&region).await.unwrap();
            assert_eq!(&found[..], sample.array.region(&region, &[]).cells.concat(), "{region}");
        }
    }
}
