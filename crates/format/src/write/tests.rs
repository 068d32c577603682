//! Random writes to an array with clipped edges, compared with writing one element after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ArraySpec, Axis, ChunkIndex, ElementsBuf, Points, Region, Selection, codec};
use chunkyard_store::{ChunkRef, Fetcher, Options, Result, Store};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Accept, Exclusion, Writer, Writers};
use crate::read::Reader;
use crate::{ArrayNode, ChunkCodecs, Edges, Locate};

/// Encoded chunks in memory.
#[derive(Debug)]
struct Chunks {
    stored: Mutex<HashMap<ChunkIndex, Bytes>>,
    fetcher: Fetcher,
    writers: Writers,
}

#[async_trait]
impl Locate for Chunks {
    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let stored = self.stored.lock().unwrap();
        let of = |index| stored.get(index).map(|bytes: &Bytes| ChunkRef::Inline(bytes.clone()));
        Ok(chunks.iter().map(of).collect())
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

#[async_trait]
impl Accept for Chunks {
    async fn accept(&self, chunks: Vec<(ChunkIndex, Option<Bytes>)>) -> Result<()> {
        let mut stored = self.stored.lock().unwrap();
        for (index, bytes) in chunks {
            match bytes {
                Some(bytes) => drop(stored.insert(index, bytes)),
                None => drop(stored.remove(&index)),
            }
        }
        Ok(())
    }

    async fn exclude(&self, alone: bool) -> Exclusion<'_> {
        self.writers.exclude(alone).await
    }
}

fn clipped(spec: &ArraySpec) -> (Arc<Chunks>, Writer) {
    let node = ArrayNode { edges: Edges::Clipped, ..ArrayNode::new(spec).unwrap() };
    let store = Store::open("memory://clipped-writes", &Options::default()).unwrap();
    let fetcher = Fetcher::within(&store);
    let writers = Writers::default();
    let chunks = Arc::new(Chunks { stored: Mutex::default(), fetcher, writers });
    let reader = Reader::of(chunks.clone(), "/a", ChunkCodecs::new(&node).unwrap());
    (chunks.clone(), Writer::new(reader, chunks))
}

/// Where something is written: indices along each axis, or points.
#[derive(Debug, Clone)]
enum Where {
    Box(Vec<(u64, u64)>),
    Lists(Vec<Vec<u64>>),
    Points(Vec<Vec<u64>>),
}

#[derive(Debug, Clone)]
struct Write {
    place: Where,
    /// One value everywhere, rather than rising ones.
    one: bool,
    first: u16,
}

impl Where {
    /// The positions, in the order of the elements.
    fn positions(&self) -> Vec<Vec<u64>> {
        let axes: Vec<Vec<u64>> = match self {
            Self::Points(points) => return points.clone(),
            Self::Lists(axes) => axes.clone(),
            Self::Box(axes) => axes.iter().map(|&(start, end)| (start..end).collect()).collect(),
        };
        axes.iter().fold(vec![Vec::new()], |all, axis| {
            all.iter().flat_map(|at| axis.iter().map(|&i| [&at[..], &[i]].concat())).collect()
        })
    }

    fn selection(&self) -> Selection {
        Selection::new(match self {
            Self::Box(axes) => axes
                .iter()
                .map(|&(start, end)| Axis::range(start, 1, end - start).unwrap())
                .collect(),
            Self::Lists(axes) => axes.iter().map(|axis| Axis::list(axis.clone())).collect(),
            Self::Points(_) => Vec::new(),
        })
    }

    fn points(&self, rank: usize) -> Option<Points> {
        let Self::Points(points) = self else { return None };
        let axis = |axis: usize| points.iter().map(|point| point[axis]).collect();
        Some(Points::new((0..rank).map(axis).collect()).unwrap())
    }
}

fn place(shape: Vec<u64>) -> impl Strategy<Value = Where> {
    let bounds: Vec<_> = shape.iter().map(|&n| (0..n, 1..=n)).collect();
    let bounds = bounds.prop_map(|axes| {
        Where::Box(axes.into_iter().map(|(a, b)| (a.min(b), (a + 1).max(b))).collect())
    });
    let all = Just(Where::Box(shape.iter().map(|&n| (0, n)).collect()));
    let lists: Vec<_> = shape.iter().map(|&n| prop::collection::vec(0..n, 1..6)).collect();
    let point: Vec<_> = shape.iter().map(|&n| 0..n).collect();
    let points = prop::collection::vec(point, 1..20).prop_map(Where::Points);
    prop_oneof![3 => bounds, 1 => all, 2 => lists.prop_map(Where::Lists), 2 => points]
}

fn arrays() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<Write>)> {
    prop::collection::vec((1u64..10, 1u64..6), 1..4).prop_flat_map(|axes| {
        let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
        let write = (place(shape.clone()), any::<bool>(), prop_oneof![Just(0), 1u16..500])
            .prop_map(|(place, one, first)| Write { place, one, first });
        (Just(shape), Just(chunk), prop::collection::vec(write, 1..6))
    })
}

/// Element `value` of an array of numbers or of text.
fn element(value: u16, text: bool) -> Vec<u8> {
    match (text, value) {
        (false, _) => value.to_le_bytes().to_vec(),
        (true, 0) => Vec::new(),
        (true, _) => "x".repeat(usize::from(value % 7)).into_bytes(),
    }
}

fn elements(cells: &[Vec<u8>], text: bool) -> ElementsBuf {
    if !text {
        return ElementsBuf::Fixed(cells.concat());
    }
    let ends = cells.iter().scan(0, |end, cell| {
        *end += cell.len() as u64;
        Some(*end)
    });
    ElementsBuf::Variable {
        bytes: cells.concat(),
        offsets: std::iter::once(0).chain(ends).collect(),
    }
}

async fn check(shape: &[u64], chunk: &[u64], dtype: Value, writes: &[Write]) {
    let text = dtype == "string";
    let spec = ArraySpec::builder(shape, chunk, dtype).build().unwrap();
    let plain = codec::parse_shorthand("none", &spec.dtype().unwrap()).unwrap();
    let spec = spec.with_codecs(plain).unwrap();
    let (chunks, writer) = clipped(&spec);
    let count = shape.iter().product::<u64>() as usize;
    let mut expected = vec![element(0, text); count];
    for write in writes {
        let positions = write.place.positions();
        let value = |at: usize| if write.one { write.first } else { write.first + at as u16 };
        let cells: Vec<Vec<u8>> = (0..positions.len()).map(|at| element(value(at), text)).collect();
        for (position, cell) in positions.iter().zip(&cells) {
            let at = position.iter().zip(shape).fold(0, |at, (&i, &extent)| at * extent + i);
            expected[at as usize].clone_from(cell);
        }
        let one = (write.one && !text).then(|| Bytes::from(element(write.first, text)));
        let given = elements(&cells, text);
        let selection = write.place.selection();
        match (write.place.points(shape.len()), one) {
            (Some(points), Some(one)) => writer.fill_points(&points, one).await.unwrap(),
            (Some(points), None) => writer.write_point_elements(&points, given).await.unwrap(),
            (None, Some(one)) => writer.fill_selection(&selection, one).await.unwrap(),
            (None, None) => writer.write_selected_elements(&selection, given).await.unwrap(),
        }
        let read = writer.reader().read_elements(&Region::whole(shape)).await.unwrap();
        assert_eq!(read, elements(&expected, text), "{write:?}");
    }
    if !text {
        let grid = spec.grid().unwrap();
        for (index, bytes) in &*chunks.stored.lock().unwrap() {
            let inside = grid.clipped_region(index).num_bytes(2).unwrap();
            assert_eq!(bytes.len(), inside, "chunk {index:?} of {shape:?} by {chunk:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn writes_to_clipped_chunks_equal_plain_assignment(
        (shape, chunk, writes) in arrays(),
        dtype in prop::sample::select(vec![json!("uint16"), json!("string")]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&shape, &chunk, dtype, &writes));
    }
}
