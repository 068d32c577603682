//! Moves the packs of one array: the common part of the movements.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, ElementsBuf, Region};
use chunkyard_format::{ChunkCodecs, PackWriter, Reader, Source, batched, fetch_chunks};
use chunkyard_store::{Error, Result};

use super::budget::Fetching;
use super::damage::{Damage, or_leave_out};
use super::encode::Encoder;
use super::plan::{ArrayPlan, Movement};
use super::rewrite::rewrite_chunk;
use super::transcode::transcode_chunk;

/// Decoded bytes of the chunks that are moved at a time where chunks stay as they are.
pub(super) const BATCH_BYTES: u64 = 8 << 20;
/// Chunks that are moved at a time, however small.
pub(super) const BATCH_CHUNKS: u64 = 1024;

/// Moves an array.
#[derive(Debug)]
pub(super) struct Mover {
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: Arc<ArrayPlan>,
    pub(super) handling: Handling,
    /// Where damaged chunks are noted; without it they are errors.
    pub(super) damage: Option<Arc<Damage>>,
}

/// What the elements of the array need.
#[derive(Debug)]
pub(super) enum Handling {
    /// Nothing: they need no decoding, or this program cannot decode them.
    Opaque,
    /// Elements of fixed size.
    Fixed { reader: Reader, encoder: Box<Encoder> },
    /// Elements of any length.
    Variable { reader: Reader, codecs: ChunkCodecs },
}

/// An encoded chunk of the target.
pub(super) type Encoded = (ChunkIndex, Bytes);

impl Mover {
    pub(super) fn new(
        source: &Arc<dyn Source>,
        plan: &Arc<ArrayPlan>,
        damage: Option<Arc<Damage>>,
    ) -> Result<Self> {
        let handling =
            Handling::new(source, plan).or_else(|error| match (plan.movement, error.kind()) {
                // Bytes are copied verbatim, even if we cannot decode them.
                (Movement::Copy, chunkyard_store::ErrorKind::Unsupported) => Ok(Handling::Opaque),
                _ => Err(Error::for_array(&plan.source, error)),
            })?;
        if damage.is_some() && plan.movement == Movement::Regrid {
            return Err(Error::for_array(
                &plan.source,
                Error::unsupported(format!(
                    "leaving damaged chunks out where {}; convert with the chunks of the source first",
                    plan.why
                )),
            ));
        }
        Ok(Self { source: source.clone(), plan: plan.clone(), handling, damage })
    }

    /// Fills a pack with the content of some of its boxes, each of whole target chunks.
    pub(super) async fn fill(
        &self,
        pieces: &[Region],
        writer: &mut dyn PackWriter,
        fetching: Fetching,
    ) -> Result<()> {
        match (self.plan.movement, &self.handling) {
            (Movement::Copy, _) => self.copy(pieces, writer).await,
            (Movement::Rewrite, Handling::Fixed { encoder, reader }) => {
                self.chunk_by_chunk(pieces, writer, (reader, encoder), rewrite_chunk).await
            }
            (Movement::Transcode, Handling::Fixed { encoder, reader }) => {
                self.chunk_by_chunk(pieces, writer, (reader, encoder), transcode_chunk).await
            }
            (Movement::Regrid, Handling::Fixed { encoder, reader }) => {
                self.regrid(pieces, writer, reader, encoder, fetching).await
            }
            (_, Handling::Variable { reader, codecs }) => {
                self.move_elements(pieces, writer, reader, codecs).await
            }
            (_, Handling::Opaque) => Err(Error::unsupported("decoding this array")),
        }
    }

    /// The chunks of boxes whose grid is the source's, in batches.
    pub(super) fn batches(
        &self,
        pieces: &[Region],
    ) -> Result<impl Iterator<Item = Vec<ChunkIndex>> + use<>> {
        let chunk = Region::whole(self.plan.to.grid()?.chunk_shape()).num_elements();
        let chunk_bytes = chunk.saturating_mul(self.plan.to.item_bytes()).max(1);
        let size = (BATCH_BYTES / chunk_bytes).clamp(1, BATCH_CHUNKS) as usize;
        let (grid, pieces) = (self.plan.to.grid()?, pieces.to_vec());
        Ok(batched(pieces.into_iter().flat_map(move |piece| grid.chunks_in(&piece)), size))
    }

    /// The source's index of a chunk of the target, where their grids are the same.
    pub(super) fn source_index(&self, chunk: &[u64]) -> Result<ChunkIndex> {
        let grid = self.plan.from.grid()?;
        let shift = self.plan.offset.iter().zip(grid.chunk_shape());
        Ok(chunk.iter().zip(shift).map(|(index, (at, n))| index + at / (*n).max(1)).collect())
    }

    /// Locates and fetches chunks of the source, in order.
    pub(super) async fn fetch(&self, indices: &[ChunkIndex]) -> Result<Vec<Option<Bytes>>> {
        let fetched = fetch_chunks(&*self.source, &self.plan.source, indices).await;
        let damage = match (&fetched, &self.damage) {
            (Err(error), Some(damage)) if Damage::explains(error) => damage,
            _ => return fetched,
        };
        let mut chunks = Vec::with_capacity(indices.len());
        for index in indices {
            let one = fetch_chunks(&*self.source, &self.plan.source, std::slice::from_ref(index));
            let one = one.await.map(|mut one| one.pop().flatten());
            chunks.push(or_leave_out(Some(damage), &self.plan.source, index, one)?);
        }
        Ok(chunks)
    }

    /// The slow and general way, for elements of any length: chunk by chunk of the target.
    async fn move_elements(
        &self,
        pieces: &[Region],
        writer: &mut dyn PackWriter,
        reader: &Reader,
        codecs: &ChunkCodecs,
    ) -> Result<()> {
        for index in pieces.iter().flat_map(|piece| codecs.grid().chunks_in(piece)) {
            let inside = codecs.grid().clipped_region(&index);
            let elements = reader.read_elements(&self.plan.in_source(&inside)?).await?;
            let whole = codecs.stored_region(&index);
            let (chunk_codecs, _) = codecs.of(&index)?;
            let mut assembly =
                chunkyard_array::Assembly::new(whole.shape(), chunk_codecs.fill_element())?;
            let everything = Region::whole(inside.shape());
            let at = inside.relative_to(whole.origin())?;
            assembly.place(elements.as_ref(), inside.shape(), &everything, at.origin())?;
            let assembled = assembly.finish();
            if is_fill(&assembled, chunk_codecs.fill_element()) {
                continue;
            }
            let encoded = chunk_codecs.encode(assembled.as_ref())?;
            writer.push(vec![(index, encoded.into())]).await?;
        }
        Ok(())
    }
}

impl Handling {
    fn new(source: &Arc<dyn Source>, plan: &ArrayPlan) -> Result<Self> {
        let reader = Reader::new(source, &plan.source)?;
        let codecs = ChunkCodecs::new(&plan.to)?;
        if reader.codecs().whole().item_size().is_none() {
            return Ok(Self::Variable { reader, codecs });
        }
        let source_fill = reader.codecs().whole().fill_element().to_vec();
        let (relabel, cast) = (plan.relabel.clone(), plan.cast.clone());
        let encoder = Box::new(Encoder { codecs, relabel, cast, source_fill });
        Ok(Self::Fixed { reader, encoder })
    }
}

/// Whether elements of any length are all the fill value, so that they need not be stored.
fn is_fill(elements: &ElementsBuf, fill: &[u8]) -> bool {
    match elements {
        ElementsBuf::Fixed(_) => false,
        ElementsBuf::Variable { offsets, .. } => (0..offsets.len().saturating_sub(1))
            .all(|number| elements.as_ref().get(number) == Some(fill)),
    }
}
