//! An open file: its arrays, and where each chunk of them is.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ArraySpec, ChunkIndex, Codecs, Grid, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Noun, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::OnceCell;

use super::bridge::{self, Object};
use super::contents::{self, Array};
use super::index::Stored;
use super::metadata::Chunks;
use super::text;
use crate::space::{unit, with_units};
use crate::{ArrayNode, Axis, ChunkStream, Dataset, Locate, Node, Occupied, Source, Survey};

/// An HDF5 or NetCDF-4 file. Its structure and chunk indexes have been read, but none of its data.
#[derive(Debug)]
pub struct Hdf5Source {
    object: Object,
    dataset: Dataset,
    arrays: BTreeMap<String, Open>,
    fetcher: Fetcher,
}

/// An array, and its text once it has been read.
#[derive(Debug)]
struct Open {
    array: Array,
    grid: Grid,
    text: OnceCell<Bytes>,
}

impl Hdf5Source {
    /// Reads the structure of the file at `path` in `store`, and all of its chunk indexes.
    pub async fn open(store: &Store, path: &str) -> Result<Self> {
        let object = Object::find(store, path).await?;
        let named = object.clone();
        let contents = bridge::inspect(&object, move |file| {
            contents::read(file).map_err(|why| named.corrupt("structure", why))
        });
        let contents = contents.await?;
        let mut dataset = Dataset { losses: contents.losses, ..Dataset::default() };
        for (path, group) in contents.groups {
            dataset.insert(path, Node::Group(group));
        }
        let mut arrays = BTreeMap::new();
        for array in contents.arrays {
            let node = ArrayNode::new(&array.spec)?;
            let grid = node.grid()?;
            dataset.insert(array.path.clone(), Node::Array(Arc::new(node)));
            arrays.insert(array.path.clone(), Open { array, grid, text: OnceCell::new() });
        }
        state_units(&mut dataset, &arrays)?;
        let fetcher = Fetcher::within(store);
        Ok(Self { object, dataset, arrays, fetcher })
    }

    fn array(&self, path: &str) -> Result<&Open> {
        let missing = || Error::NotFound { what: Noun::Array, name: path.to_owned() };
        self.arrays.get(path).ok_or_else(missing)
    }

    async fn locate_one(&self, open: &Open, index: &[u64]) -> Result<Option<ChunkRef>> {
        let Some(chunk) = open.grid.number_of(index) else { return Ok(None) };
        Ok(match &open.array.chunks {
            Chunks::Fill => None,
            Chunks::Inline(bytes) => Some(ChunkRef::Inline(bytes.clone())),
            Chunks::Slabs { start, bytes } => {
                let start = start.saturating_add(chunk.saturating_mul(*bytes));
                Some(self.reference(Stored { chunk, start, bytes: *bytes }))
            }
            Chunks::Stored { table, odd } => match table.find(chunk) {
                None => None,
                Some((stored, skipped)) if skipped == table.skipped => Some(self.reference(stored)),
                Some((stored, skipped)) => {
                    let spec = odd.iter().find(|(known, _)| *known == skipped);
                    let spec = spec.map_or(&open.array.spec, |(_, spec)| spec);
                    Some(ChunkRef::Inline(self.recode(stored, spec, &open.array.spec).await?))
                }
            },
            Chunks::Text => {
                let text = open.text.get_or_try_init(|| self.text(&open.array)).await?;
                Some(ChunkRef::Inline(text.clone()))
            }
        })
    }

    fn reference(&self, stored: Stored) -> ChunkRef {
        ChunkRef::Object {
            path: Arc::clone(&self.object.path),
            range: stored.start..stored.start.saturating_add(stored.bytes),
            guard: self.object.guard.clone(),
            check: None,
        }
    }

    /// A chunk with other filters than most, encoded anew like the rest.
    async fn recode(&self, stored: Stored, from: &ArraySpec, to: &ArraySpec) -> Result<Bytes> {
        let (from, to) = (Codecs::new(from)?, Codecs::new(to)?);
        let encoded = self.fetcher.fetch(&[&self.reference(stored)]).await?;
        let encoded = encoded.into_iter().next().flatten().unwrap_or_default();
        let recoded = chunkyard_store::cpu(move || {
            let elements = from.decode(&encoded)?;
            to.encode(elements.as_ref())
        });
        Ok(recoded.await?.map(Bytes::from)?)
    }

    async fn text(&self, array: &Array) -> Result<Bytes> {
        let (path, codecs) = (array.hard_path.clone(), Codecs::new(&array.spec)?);
        let object = self.object.clone();
        let read = move |file: &_| {
            text::chunk(file, &path, &codecs).map_err(|why| object.corrupt(&path, why))
        };
        bridge::inspect(&self.object, read).await
    }
}

/// Other formats find the unit of an axis by its name. Where that leads elsewhere, because the scale
/// of the axis has another name or lies in another group, the array states the unit itself.
fn state_units(dataset: &mut Dataset, arrays: &BTreeMap<String, Open>) -> Result<()> {
    let survey = Survey::of(dataset);
    for (path, open) in arrays {
        let unit_of = |scale: &Option<String>| {
            let scale = dataset.array(scale.as_deref()?).ok()?;
            unit(scale.spec.attributes().get("units")?).ok()
        };
        let axes = survey.space(path).map(|space| space.axes.as_slice()).unwrap_or_default();
        let stated =
            |(axis, scale): (&Axis, _)| unit_of(scale).filter(|_| axis.unit != unit_of(scale));
        let units: Vec<_> = axes.iter().zip(&open.array.scales).map(stated).collect();
        if units.iter().any(Option::is_some)
            && let Some(Node::Array(node)) = dataset.nodes.get_mut(path)
        {
            let spec = with_units(&node.spec, &units)?;
            Arc::make_mut(node).spec = spec;
        }
    }
    Ok(())
}

#[async_trait]
impl Locate for Hdf5Source {
    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let open = self.array(array)?;
        let mut located = Vec::with_capacity(chunks.len());
        for index in chunks {
            located.push(self.locate_one(open, index).await?);
        }
        Ok(located)
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

impl Source for Hdf5Source {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let Object { size, guard, .. } = &self.object;
        format!("{} {size} {guard:?}", self.object.name())
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let open = match self.array(array) {
            Ok(open) => open,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let indices: Box<dyn Iterator<Item = ChunkIndex> + Send + 'a> = match &open.array.chunks {
            Chunks::Fill => Box::new(std::iter::empty()),
            Chunks::Stored { table, .. } => {
                let touches = |index: &ChunkIndex| {
                    open.grid.clipped_region(index).intersect(within).is_some()
                };
                let indices = table.numbers().filter_map(|number| open.grid.index_of(number));
                Box::new(indices.filter(touches))
            }
            _ => Box::new(open.grid.chunks_in(within)),
        };
        stream::iter(indices)
            .then(move |index| async move {
                let located = self.locate_one(open, &index).await?;
                Ok(located.map(|reference| (index, reference)))
            })
            .try_filter_map(|located| async move { Ok(located) })
            .boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let open = self.array(array)?;
        let cells = match &open.array.chunks {
            Chunks::Fill => stream::empty().boxed(),
            Chunks::Stored { table, .. } => {
                let indices = table.numbers().filter_map(|number| open.grid.index_of(number));
                stream::iter(indices.map(Ok)).boxed()
            }
            // These lie in one piece, or are a single chunk.
            Chunks::Inline(_) | Chunks::Slabs { .. } | Chunks::Text => return Ok(Occupied::All),
        };
        Ok(Occupied::Cells { grid: open.grid.clone(), cells })
    }
}
