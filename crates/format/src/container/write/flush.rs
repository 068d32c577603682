//! Turns changes into a layer: complete and durable first, then visible, in one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{Assembly, ChunkIndex, ElementsBuf, fill_slice};
use chunkyard_store::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::changes::{ArrayChange, Changes, Description, PendingChunk};
use super::draft::{Draft, Identity, Piece};
use super::outcome::{FlushFailure, Outcome};
use super::publish;
use crate::ChunkCodecs;
use crate::container::handle::{Container, ContainerOptions, OpenContainer};
use crate::container::layers::files::{Files, fresh_id};
use crate::container::layers::stack::Id;
use crate::container::mapping;
use crate::container::mapping::chunks::{self, grid_of};
use crate::container::model::{ArrayMeta, ArrayStats, to_u32};
use crate::container::read::committed::Committed;

/// Chunks that are fetched at once from temporary files.
const LOADS: usize = 8;

/// The result of a flush.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flushed {
    /// Number of the new layer.
    pub layer: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// A problem although the layer stands: the statistics file, which only other programs read,
    /// could not be updated.
    pub note: Option<String>,
}

/// A layer that was written and counts.
struct Written {
    /// What is committed now, this layer included.
    committed: Committed,
    number: u64,
    bytes: u64,
    /// Statistics of the arrays that it touches.
    statistics: Vec<ArrayStats>,
}

/// A flush under way. If it is dropped before it ended, its changes wait again.
struct Flush<'a> {
    open: &'a OpenContainer,
    changes: Arc<Changes>,
    ended: bool,
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.open.state().uncommitted.take_back();
        }
    }
}

impl Container {
    /// Makes all changes visible to all readers, as one more layer; `None` if there are none. After
    /// an error the changes still wait, and the writes of others are untouched.
    pub async fn flush(&self) -> Result<Option<Flushed>> {
        let open: &OpenContainer = &self.open;
        let _alone = open.writers.exclude(true).await;
        let repeated = match open.resolve_outcome().await? {
            Outcome::Flushed(flushed) => return Ok(Some(flushed)),
            Outcome::Unknown(layer) => Some(layer),
            Outcome::Known => None,
        };
        let (committed, mut flush) = {
            let mut state = open.state();
            let Some(changes) = state.uncommitted.begin_flush() else { return Ok(None) };
            (state.committed.clone(), Flush { open, changes, ended: false })
        };
        open.refuse_changes()?;
        let Written { committed, number, bytes, statistics } =
            match committed.write_layer(&flush.changes, &open.options, repeated).await {
                Ok(written) => written,
                Err(FlushFailure { error, layer }) => {
                    // Only a lost race tells that an earlier request can no longer take effect.
                    let lost = matches!(error, Error::Conflict { .. });
                    if let Some(layer) = layer.or(repeated.filter(|_| !lost)) {
                        // The layer may exist: the changes stay as they are until
                        // `resolve_outcome` has looked.
                        open.state().uncommitted.end_unknown(layer);
                        flush.ended = true;
                    }
                    return Err(open.files.explain(error));
                }
            };
        {
            let mut state = open.state();
            state.committed = committed.clone();
            state.uncommitted.flushed();
            flush.ended = true;
        }
        open.files.forget_spilled(&flush.changes).await;
        let gone: Vec<&str> = flush
            .changes
            .arrays
            .iter()
            .filter(|(_, change)| change.described.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        let written = committed.update_statistics_file(&statistics, &gone).await;
        let note = written.err().map(|error| format!("{}: {error}", open.files.names.statistics()));
        Ok(Some(Flushed { layer: number, bytes, note }))
    }

    /// Looks at the store again. Changes that wait stay, unless another writer changed the same
    /// arrays meanwhile: that is a conflict, and then nothing changes here.
    pub async fn refresh(&self) -> Result<()> {
        let open: &OpenContainer = &self.open;
        let _alone = open.writers.exclude(true).await;
        if let Outcome::Unknown(_) = open.resolve_outcome().await? {
            open.refuse_changes()?;
        }
        let old = open.committed().stack;
        let committed = Committed::open(&open.files, open.search()).await?;
        let new = &committed.stack;
        let changed: Vec<String> =
            open.state().uncommitted.changes.arrays.keys().cloned().collect();
        if !changed.is_empty() && old.container().is_some_and(|id| new.container() != Some(id)) {
            return Err(Error::Conflict {
                message: format!("{} was replaced by another container", open.files.names.base()),
                conflicts: Vec::new(),
            });
        }
        let known = old.known_ids();
        for layer in new.layers.iter().filter(|layer| !known.contains(&layer.id())) {
            // A compacted base says nothing new.
            if layer.number == 0 && layer.seal.as_ref().is_some_and(|seal| old.holds_all_of(seal)) {
                continue;
            }
            for name in &changed {
                if layer.position(name).await?.is_some() {
                    return Err(Error::Conflict {
                        message: format!(
                            "{name:?} was changed here and, by another writer, in {}",
                            layer.path
                        ),
                        conflicts: Vec::new(),
                    });
                }
            }
        }
        open.state().committed = committed;
        Ok(())
    }

    /// Forgets all changes that are not flushed.
    pub async fn discard(&self) {
        let _alone = self.open.writers.exclude(true).await;
        let discarded = self.open.state().uncommitted.discard();
        for changes in discarded {
            self.open.files.forget_spilled(&changes).await;
        }
    }
}

impl Committed {
    /// Writes the next layer: it holds these changes, and is the newest once this returns. If an earlier
    /// attempt at the same changes may still land, it is `repeated` under its identity: then it does not
    /// matter which of the two lands.
    async fn write_layer(
        &self,
        changes: &Changes,
        options: &ContainerOptions,
        repeated: Option<(u64, Id)>,
    ) -> std::result::Result<Written, FlushFailure> {
        let (stack, Files { store, names, .. }) = (&self.stack, &*self.files);
        let number = stack.next;
        let layer = match repeated.filter(|(before, _)| *before == number) {
            Some((_, id)) => id,
            None => fresh_id()?,
        };
        let identity = Identity {
            container: stack.container().map_or_else(fresh_id, Ok)?,
            layer,
            parent: stack.top().map(|top| top.id()).unwrap_or_default(),
            sequence: number,
            absorbed: Vec::new(),
            overlay_index: to_u32(|| "number of the layer".to_owned(), number)?,
            base_file_hint: names.base(),
        };
        let temporary = self.files.temporary_path()?;
        let (codec, block_bytes) = (options.codec.clone(), options.block_bytes);
        let mut draft = Draft::new(store, temporary.clone(), codec, block_bytes);
        let mut statistics = Vec::new();
        for (name, change) in &changes.arrays {
            match &change.described {
                None => {
                    if let Some(gone) = stack.array(name).await? {
                        let meta = ArrayMeta { deleted: true, ..gone.described.meta.clone() };
                        draft.begin_array(meta, Vec::new());
                    }
                }
                Some(described) => {
                    draft.begin_array(described.meta.clone(), described.attributes.clone());
                    self.push_chunks(&mut draft, change, described).await?;
                    statistics.extend(self.statistics_after(change, described).await?);
                }
            }
        }
        let finished = draft.finish(&identity, &statistics).await?;
        let bytes = finished.size;
        match publish::create(store, names, number, layer, finished, &temporary).await {
            Ok(()) => {}
            Err(error @ Error::OutcomeUnknown { .. }) => {
                return Err(FlushFailure { error, layer: Some((number, layer)) });
            }
            Err(error) => return Err(error.into()),
        }
        match self.confirm_layer(number, layer, options.search()).await {
            Ok(committed) => Ok(Written { committed, number, bytes, statistics }),
            Err(error @ Error::Conflict { .. }) => Err(error.into()),
            Err(source) => Err(FlushFailure {
                error: Error::OutcomeUnknown {
                    what: format!("writing {}", names.layer(number)),
                    source: Box::new(source),
                },
                layer: Some((number, layer)),
            }),
        }
    }

    /// Puts the changed chunks of an array into a layer, and the empty chunks that must hide older
    /// ones.
    async fn push_chunks(
        &self,
        draft: &mut Draft,
        change: &ArrayChange,
        described: &Arc<Description>,
    ) -> Result<()> {
        let name = &described.meta.name;
        let grid = grid_of(described)?;
        let fills = change.chunks.values().any(|chunk| matches!(chunk, PendingChunk::Fill));
        let below = match change.fresh || fills {
            true => self.stack.every_index(name).await?,
            false => Default::default(),
        };
        let mut chunks: BTreeMap<&ChunkIndex, &PendingChunk> = BTreeMap::new();
        if change.fresh {
            let stale = below.iter().filter(|index| grid.contains(index));
            chunks.extend(stale.map(|index| (index, &PendingChunk::Fill)));
        }
        // A chunk that holds the fill value only counts if it hides an older one.
        chunks.extend(change.chunks.iter().filter(|(index, chunk)| {
            !matches!(chunk, PendingChunk::Fill) || below.contains(*index)
        }));
        let hides = chunks.values().any(|chunk| matches!(chunk, PendingChunk::Fill));
        let fill = hides.then(|| Fill::new(described)).transpose()?;
        // Collected first: as far as the compiler can tell, a stream that maps references cannot be
        // sent to another thread, and then neither could a flush.
        let loads: Vec<_> = chunks
            .into_iter()
            .map(|(index, chunk)| {
                let fill = &fill;
                async move {
                    let piece = match chunk {
                        PendingChunk::Fill => {
                            let chunk = fill.as_ref().map(|fill| fill.chunk(index)).transpose()?;
                            Piece::Plain(chunk.unwrap_or_default())
                        }
                        other => self.load(other).await?,
                    };
                    Ok::<_, Error>((index, piece))
                }
            })
            .collect();
        let mut pieces = stream::iter(loads).buffered(LOADS);
        while let Some((index, piece)) = pieces.try_next().await? {
            draft.push(&coord(name, index)?, piece).await?;
        }
        Ok(())
    }

    /// The bytes of a chunk that waits.
    async fn load(&self, chunk: &PendingChunk) -> Result<Piece> {
        Ok(match chunk {
            PendingChunk::Fill => Piece::Plain(Bytes::new()),
            PendingChunk::Plain { bytes, .. } => Piece::Plain(bytes.clone()),
            PendingChunk::Packed { bytes, len, codec, .. } => {
                Piece::Packed { bytes: bytes.clone(), len: *len, codec: Some(codec.clone()) }
            }
            PendingChunk::Spilled { path, range, len, codec, .. } => {
                let bytes = self.files.store.get_range(path, range.clone()).await?;
                match codec {
                    None => Piece::Plain(bytes),
                    Some(_) => Piece::Packed { bytes, len: *len, codec: codec.clone() },
                }
            }
        })
    }
}

/// The position of a chunk as the file keeps it.
pub(crate) fn coord(name: &str, index: &[u64]) -> Result<Vec<u32>> {
    index.iter().map(|&c| to_u32(|| format!("{name:?}, position of a chunk"), c)).collect()
}

/// Chunks that hold nothing but the fill value.
pub(crate) struct Fill<'a> {
    described: &'a Description,
    codecs: ChunkCodecs,
}

impl<'a> Fill<'a> {
    pub(crate) fn new(described: &'a Description) -> Result<Self> {
        let codecs = ChunkCodecs::new(&mapping::array_of(described)?)?;
        Ok(Self { described, codecs })
    }

    pub(crate) fn chunk(&self, index: &ChunkIndex) -> Result<Bytes> {
        let rank = self.codecs.grid().rank();
        let (codecs, _) = self.codecs.of(&chunks::extended(index.clone(), rank))?;
        let filled = match codecs.chunk_bytes() {
            Some(size) => {
                let mut bytes = vec![0; size];
                fill_slice(&mut bytes, codecs.fill_element());
                ElementsBuf::Fixed(bytes)
            }
            None => Assembly::new(codecs.chunk_shape(), codecs.fill_element())?.finish(),
        };
        chunks::for_container(self.described, index, codecs.encode(filled.as_ref())?.into())
    }
}
