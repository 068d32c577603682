//! Merges all layers into one: the new base is written first, the merged files are deleted last.
//!
//! ```text
//!  1  the new base, in a temporary file   all readers see the old state
//!  2  one step replaces the base         it holds all layers up to n, and says so
//!  3  layers 1 … n are deleted, oldest first
//! ```
//!
//! Killed before 2, nothing has happened. Killed after it, the remaining layers are recognised as held
//! by the base; other programs, which do not know that, read them over it and see the same, since only
//! the newest of them remain. A layer that another writer adds meanwhile has a higher number, stays,
//! and means the same over the new base as over the old layers.

pub(crate) mod merge;

use std::ops::Range;
use std::sync::Arc;

use chunkyard_store::{Error, Result};

use super::handle::{Container, ContainerOptions, OpenContainer};
use super::model::{ArrayMeta, ArrayStats};
use crate::Meter;
use crate::container::bytes::footer;
use crate::container::layers::files::{Files, fresh_id};
use crate::container::layers::stack::{Id, Reason, Search, Stack};
use crate::container::read::committed::Committed;
use crate::container::write::draft::{Draft, Identity};
use crate::container::write::publish;

/// How a container is compacted.
#[derive(Debug, Clone, Default)]
pub struct CompactOptions {
    /// There is no other writer: needed for large containers on object stores, which cannot replace a
    /// large object only if it is unchanged.
    pub alone: bool,
    /// Pack all blocks anew by the codec of the container's options.
    pub repack: bool,
    /// Counts the bytes of chunks, unpacked.
    pub meter: Arc<Meter>,
}

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Layers that became one, the base included.
    pub layers: u64,
    /// Bytes of all of them before.
    pub bytes_before: u64,
    /// Bytes of the base now.
    pub bytes_after: u64,
}

impl Container {
    /// Merges all layers into the base. Changes that wait are flushed first.
    pub async fn compact(&self, options: &CompactOptions) -> Result<Compacted> {
        let open: &OpenContainer = &self.open;
        open.refuse_changes()?;
        self.flush().await?;
        let _alone = open.writers.exclude(true).await;
        let lock = open.files.lock_upkeep().await?;
        let compacted = open.compact_alone(options).await?;
        open.files.unlock_upkeep(lock).await?;
        Ok(compacted)
    }
}

impl OpenContainer {
    async fn compact_alone(&self, options: &CompactOptions) -> Result<Compacted> {
        let search = Search { strict: true, ..self.search() };
        let committed = Committed::open(&self.files, search).await?;
        let stack = &committed.stack;
        let bytes_before = stack.layers.iter().map(|layer| layer.size).sum();
        let layers = stack.layers.len() as u64;
        let left_over: Vec<String> = stack
            .ignored
            .iter()
            .filter(|file| file.reason == Reason::Merged)
            .map(|file| file.path.clone())
            .collect();
        let done = layers == 1 && !options.repack && stack.container().is_some();
        if done {
            self.files.delete_in_order(&left_over).await?;
            return Ok(Compacted { layers, bytes_before, bytes_after: bytes_before });
        }
        let written = committed.write_base(options, &self.options).await;
        let (statistics, absorbed) = written.map_err(|error| self.files.explain(error))?;
        let paths = absorbed.iter().map(|(number, _)| self.files.names.layer(*number));
        let stale: Vec<String> = left_over.into_iter().chain(paths).collect();
        self.files.write_statistics_file(&statistics).await?;
        self.files.delete_in_order(&stale).await?;
        let committed = Committed::open(&self.files, self.search()).await?;
        let bytes_after = committed.stack.layers.first().map_or(0, |base| base.size);
        self.state().committed = committed;
        Ok(Compacted { layers, bytes_before, bytes_after })
    }
}

impl Committed {
    /// Writes and publishes a base that holds all layers; returns the statistics and the list of layers
    /// it holds.
    async fn write_base(
        &self,
        options: &CompactOptions,
        packing: &ContainerOptions,
    ) -> Result<(Vec<ArrayStats>, Vec<(u64, Id)>)> {
        let (stack, Files { store, names, fetcher, .. }) = (&self.stack, &*self.files);
        let layer = fresh_id()?;
        let numbered = stack.layers.iter().filter(|layer| layer.number > 0);
        let absorbed: Vec<(u64, Id)> = numbered.map(|layer| (layer.number, layer.id())).collect();
        let base = stack.layers.first();
        let before = base.and_then(|base| Some(base.seal.as_ref()?.sequence));
        let top = absorbed.iter().map(|(number, _)| *number).max();
        let identity = Identity {
            container: stack.container().map_or_else(fresh_id, Ok)?,
            layer,
            parent: Id::default(),
            sequence: top.max(before).unwrap_or(0),
            absorbed: grounds(stack, &absorbed),
            overlay_index: 0,
            base_file_hint: String::new(),
        };
        let temporary = self.files.temporary_path()?;
        let (codec, block_bytes) = (packing.codec.clone(), packing.block_bytes);
        let mut draft = Draft::new(store, temporary.clone(), codec, block_bytes);
        let mut statistics = Vec::new();
        for name in stack.names().await? {
            let Some(array) = stack.array(&name).await? else { continue };
            let described = &array.described;
            let meta = ArrayMeta { deleted: false, ..described.meta.clone() };
            draft.begin_array(meta, described.attributes.clone());
            merge::push_all(&mut draft, fetcher, &array, options.repack, &options.meter).await?;
            statistics.extend(match self.known_statistics(&name).await? {
                Some(known) => Some(known),
                None => match self.statistics_anew(&array).await {
                    // Statistics of chunks with an unknown codec stay unknown.
                    Err(Error::Unsupported { .. }) => None,
                    anew => Some(anew?),
                },
            });
        }
        let finished = draft.finish(&identity, &statistics).await?;
        publish::replace_base(
            store,
            names,
            &stack.base,
            layer,
            finished,
            &temporary,
            options.alone,
        )
        .await?;
        Ok((statistics, absorbed))
    }
}

/// The layers that a new base says it holds: the merged layers; those that the old base held and were
/// never deleted; and any other layer that a writer may build the next layer on without having seen the
/// new base. That is the old base, if no layer is over it, and the layers that it held.
fn grounds(stack: &Stack, absorbed: &[(u64, Id)]) -> Vec<(u64, Id)> {
    let mut all = absorbed.to_vec();
    let Some(base) = stack.layers.first() else { return all };
    let left_over = |number| {
        stack.ignored.iter().any(|file| file.number == number && file.reason == Reason::Merged)
    };
    let held = base.seal.iter().flat_map(|seal| seal.absorbed.iter().copied());
    all.extend(held.filter(|(number, _)| absorbed.is_empty() || left_over(*number)));
    if absorbed.is_empty() {
        all.push((0, base.id()));
    }
    all
}

/// Facts about a layer of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerInfo {
    /// Its number; 0 is the base.
    pub number: u64,
    /// Its file.
    pub path: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Arrays that it touches.
    pub arrays: u64,
    /// How many of them it deletes.
    pub deleted: u64,
    /// Chunks that it holds.
    pub chunks: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Version of its footer.
    pub version: u32,
    /// Whether it carries checksums.
    pub sealed: bool,
    /// Layers that were merged into it and are gone.
    pub absorbed: Option<Range<u64>>,
}

impl Container {
    /// The layers, oldest first.
    pub async fn layers(&self) -> Result<Vec<LayerInfo>> {
        let stack = self.open.committed().stack;
        let mut layers = Vec::with_capacity(stack.layers.len());
        for layer in &stack.layers {
            let (mut deleted, mut chunks) = (0, 0);
            for position in 0..layer.root.arrays.len {
                let head = layer.parse(|view| footer::array(view, &layer.root, position)).await?;
                deleted += u64::from(head.meta.deleted);
                chunks += head.chunks.len;
            }
            let sequence = layer.seal.as_ref().map_or(0, |seal| seal.sequence);
            layers.push(LayerInfo {
                number: layer.number,
                path: layer.path.to_string(),
                bytes: layer.size,
                arrays: layer.root.arrays.len,
                deleted,
                chunks,
                blocks: layer.root.blocks.len,
                version: layer.root.version,
                sealed: layer.seal.is_some(),
                absorbed: (layer.number == 0 && sequence > 0)
                    .then(|| 1..sequence.saturating_add(1)),
            });
        }
        Ok(layers)
    }
}
