//! A container as a source of the pipeline.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use crate::container::bytes::footer;
use crate::container::handle::{Container, ContainerOptions, OpenContainer};
use crate::container::layers::stack::Reason;
use crate::container::mapping;
use crate::container::mapping::chunks;
use crate::{ChunkStream, Dataset, Locate, Occupied, OpenOptions, Place, Source};
use crate::{Finding, Level, Version};

/// Chunks whose places are looked up at once.
const LOOKUPS: usize = 64;

/// The content of a container, by path.
#[derive(Debug)]
pub struct ContainerSource {
    container: Container,
    dataset: Dataset,
    /// The packing of its newest block.
    packing: Option<String>,
    /// A warning about attributes that may mean something else.
    mixed: Option<String>,
}

impl ContainerSource {
    /// Opens the container at a place; a version is the number of a layer.
    pub async fn open(place: &Place, options: &OpenOptions) -> Result<Self> {
        let as_of = options.version.as_ref().map(layer_of).transpose()?.flatten();
        let options = ContainerOptions { as_of, ..ContainerOptions::default() };
        Self::new(Container::open(place, options).await?).await
    }

    /// The whole content of a container as of now.
    pub async fn new(container: Container) -> Result<Self> {
        let dataset = container.dataset().await?;
        let stack = container.open.committed().stack;
        let packing = match stack.layers.iter().rev().find(|layer| layer.root.blocks.len > 0) {
            Some(layer) => layer.parse(|view| footer::block(view, &layer.root, 0)).await?.codec,
            None => None,
        };
        let mut mixed = Vec::new();
        for (path, _) in dataset.arrays() {
            mixed.extend(container.mixed(mapping::name_of(path)).await?);
        }
        let mixed = match mixed.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            [first, rest @ ..] => Some(format!("{first} (and {} more)", rest.len())),
        };
        Ok(Self { container, dataset, packing, mixed })
    }

    /// The container.
    pub fn container(&self) -> &Container {
        &self.container
    }

    fn opened(&self) -> &OpenContainer {
        &self.container.open
    }
}

#[async_trait]
impl Locate for ContainerSource {
    fn fetcher(&self) -> &Fetcher {
        self.opened().fetcher()
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        self.opened().locate(mapping::name_of(array), chunks).await
    }

    async fn explain(&self, error: Error) -> Error {
        self.opened().explain(error).await
    }
}

impl Source for ContainerSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let stack = self.opened().committed().stack;
        let id = |layer: &Arc<crate::container::layers::layer::Layer>| {
            format!("{:032x}", u128::from_be_bytes(layer.id()))
        };
        stack.layers.iter().map(id).collect::<Vec<_>>().join(" ")
    }

    fn codecs_elsewhere(&self, _array: &str) -> Option<String> {
        // Codecs that every reader has; the codec of a block may be private to one program.
        let elsewhere = if self.packing.is_some() { "zstd:3" } else { "none" };
        Some(elsewhere.to_owned())
    }

    fn version(&self) -> Option<Version> {
        let stack = self.opened().committed().stack;
        let top = stack.top()?;
        let sequence = top.seal.as_ref().map_or(top.number, |seal| seal.sequence);
        Some(Version::Snapshot(sequence.max(top.number).to_string()))
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let all = async move {
            let grid = self.dataset.array(array)?.grid()?;
            let stack = self.opened().committed().stack;
            let Some(state) = stack.array(mapping::name_of(array)).await? else {
                return Ok(stream::empty().boxed());
            };
            let mut found = state.all().await?;
            // In the order of the blocks in their files.
            found.sort_by_key(|(_, found)| {
                (found.layer.key, found.address.block, found.address.offset)
            });
            let indices: Vec<ChunkIndex> = found
                .into_iter()
                .map(|(at, _)| chunks::extended(state.index(at), grid.rank()))
                .filter(|index| grid.clipped_region(index).intersect(within).is_some())
                .collect();
            let places = stream::iter(indices)
                .map(move |index| {
                    let state = state.clone();
                    async move {
                        let stored = chunks::trimmed(&state.described, &index);
                        let found = state.reference(&stored).await?;
                        let fetcher = self.opened().fetcher();
                        let found = chunks::for_model(fetcher, &state.described, &stored, found);
                        Ok(found.await?.map(|reference| (index, reference)))
                    }
                })
                .buffered(LOOKUPS)
                .filter_map(|found: Result<_>| async move { found.transpose() });
            Ok::<_, Error>(places.boxed())
        };
        stream::once(all).try_flatten().boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let grid = self.dataset.array(array)?.grid()?;
        let (rank, name) = (grid.rank(), mapping::name_of(array).to_owned());
        let all = async move {
            let stack = self.opened().committed().stack;
            chunks::occupied(stack.array(&name).await?, rank).await
        };
        Ok(Occupied::Cells { grid, cells: stream::once(all).try_flatten().boxed() })
    }

    fn inspect(&self, level: Level) -> BoxStream<'_, Result<Finding>> {
        self.opened().committed().inspect(level)
    }

    fn cautions(&self) -> Vec<String> {
        self.container.cautions().into_iter().chain(self.mixed.clone()).collect()
    }
}

impl Container {
    /// Warnings for the reader: that the newest layer is torn.
    pub fn cautions(&self) -> Vec<String> {
        let torn = self.ignored().into_iter().filter(|file| file.reason == Reason::Torn);
        torn.map(|file| {
            format!(
                "{}, the newest layer, cannot be read, so this is the state before it ({})",
                file.path, file.why
            )
        })
        .collect()
    }
}

/// The number of the layer that a version means.
fn layer_of(version: &Version) -> Result<Option<u64>> {
    let (Version::Snapshot(name) | Version::Named(name)) = version else {
        return match version {
            Version::Default => Ok(None),
            other => {
                Err(Error::invalid(format!("a container has layers, by number, and no {other}")))
            }
        };
    };
    name.parse().map(Some).map_err(|_| {
        Error::invalid(format!("a container has layers, by number, and none is called {name:?}"))
    })
}
