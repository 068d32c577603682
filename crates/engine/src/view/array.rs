//! One array of a source, as another format stores it.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{Assembly, ElementsBuf};
use chunkyard_format::keys::{ByteRange, StoredValue, fetch_values};
use chunkyard_format::{ArrayNode, ChunkCodecs, Reader, Source, in_chunk};
use chunkyard_labels::Mapping;
use chunkyard_store::{ChunkRef, Error, Result, cpu};

use crate::pipeline::{Encoder, Relabel, rewrite_chunk};

/// One array of a source, as another format stores it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ArrayView(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    source: Arc<dyn Source>,
    path: Arc<str>,
    /// What is shown.
    to: Arc<ArrayNode>,
    way: Way,
    bytes_max: usize,
    has_parts: bool,
}

/// What becomes of the chunks of the source.
#[derive(Debug)]
enum Way {
    /// They are handed out as they are.
    Copied,
    /// The grid is the same, and chunks are made anew; those that no edge clips may still be the same.
    SameGrid { reader: Reader, encoder: Encoder, copies: bool, rewrites: bool },
    /// Chunks are made of other boxes than those of the source.
    Regrid { reader: Reader, encoder: Encoder },
}

impl ArrayView {
    /// Shows an array of a source as another one of the same shape and type.
    pub(super) fn new(
        source: &Arc<dyn Source>,
        path: &str,
        to: Arc<ArrayNode>,
        bodies: Option<&Arc<Mapping>>,
        bytes_max: usize,
    ) -> Result<Self> {
        let from = source.dataset().array(path)?;
        let way = Way::choose(source, path, (from, &to), bodies, bytes_max)
            .map_err(|error| Error::for_array(path, error))?;
        let copied = matches!(way, Way::Copied);
        let codecs = &to.spec.metadata().codecs;
        let has_parts = copied && codecs.iter().any(|codec| codec.name() == "sharding_indexed");
        let (source, path) = (source.clone(), path.into());
        Ok(Self(Arc::new(Shown { source, path, to, way, bytes_max, has_parts })))
    }

    /// Its path in the source.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What is shown.
    pub fn node(&self) -> &Arc<ArrayNode> {
        &self.0.to
    }

    /// Whether chunks are large, are handed out as they are, and have parts that readers ask for: better not read as a whole.
    pub fn has_parts(&self) -> bool {
        self.0.has_parts
    }

    /// Bytes that making a chunk has in hand, as far as that is known in advance.
    pub fn bytes_in_hand(&self) -> usize {
        let decoded = |codecs: &ChunkCodecs| codecs.whole().chunk_bytes().unwrap_or(0);
        match &self.0.way {
            Way::Copied => {
                // A chunk is not much larger when it is encoded.
                let elements = self.0.to.spec.chunk_shape().unwrap_or_default();
                let bytes = elements
                    .iter()
                    .fold(self.0.to.item_bytes(), |bytes, extent| bytes.saturating_mul(*extent));
                usize::try_from(bytes).unwrap_or(usize::MAX)
            }
            Way::SameGrid { reader, encoder, .. } | Way::Regrid { reader, encoder } => {
                decoded(reader.codecs()).saturating_add(decoded(&encoder.codecs))
            }
        }
    }

    /// An encoded chunk; `None` if it holds nothing but the fill value. The grid must have it.
    pub async fn chunk(&self, index: &[u64]) -> Result<Option<Bytes>> {
        let shown = &*self.0;
        match &shown.way {
            Way::Copied => shown.fetch(index).await,
            Way::SameGrid { reader, encoder, copies, rewrites } => {
                let Some(bytes) = shown.fetch(index).await? else { return Ok(None) };
                let (source, target) = (reader.codecs(), &encoder.codecs);
                let same = source.stored_region(index) == target.stored_region(index);
                if *copies && same {
                    return Ok(Some(bytes));
                }
                let rewrite = *rewrites && (same || encoder.codecs.whole().clips_label_blocks());
                let (source, encoder) = (source.clone(), encoder.clone());
                let (path, index) = (shown.path.clone(), index.to_vec());
                cpu(move || match rewrite {
                    true => rewrite_chunk(&source, &encoder, &path, (&index, &index), &bytes),
                    false => transcode(&source, &encoder, &path, &index, &bytes),
                })
                .await?
            }
            Way::Regrid { reader, encoder } => {
                let place = encoder.codecs.grid().clipped_region(index);
                let elements = reader.read_region(&place).await?;
                let (encoder, index) = (encoder.clone(), index.to_vec());
                cpu(move || encoder.encode(&index, &elements, &place)).await?
            }
        }
    }

    /// An encoded chunk of the fill value alone, for formats in which a chunk must not be missing.
    pub fn fill_chunk(&self, index: &[u64]) -> Result<Bytes> {
        let codecs = match &self.0.way {
            Way::Copied => ChunkCodecs::new(&self.0.to)?,
            Way::SameGrid { encoder, .. } | Way::Regrid { encoder, .. } => encoder.codecs.clone(),
        };
        let (codecs, _) = codecs.of(index)?;
        let mut elements = chunkyard_array::codec::zeroed(codecs.chunk_bytes().unwrap_or(0))?;
        chunkyard_array::fill_slice(&mut elements, codecs.fill_element());
        let mut encoded = Vec::new();
        codecs.encode_into(&elements, &mut encoded)?;
        Ok(encoded.into())
    }

    /// Where a chunk is whose stored form is handed out as it is; `None` if it holds nothing but the fill value.
    pub async fn locate(&self, index: &[u64]) -> Result<Option<ChunkRef>> {
        let shown = &*self.0;
        let mut found = shown.source.locate(&shown.path, &[index.to_vec()]).await?;
        Ok(found.pop().flatten())
    }

    /// A range of a chunk that [has parts](Self::has_parts).
    pub async fn part(
        &self,
        index: &[u64],
        reference: ChunkRef,
        range: Option<ByteRange>,
    ) -> Result<Option<Bytes>> {
        let shown = &*self.0;
        let wanted = match (&range, reference.len()) {
            (Some(range), Some(len)) => {
                let range = range.of(len);
                range.end - range.start
            }
            (_, len) => len.unwrap_or(0),
        };
        shown.refuse_large(index, wanted)?;
        let value = StoredValue { reference, range, in_part: true };
        let name = |_| format!("chunk {index:?} of {}", shown.path);
        match fetch_values(shown.source.fetcher(), &[value], name).await {
            Ok(mut found) => Ok(found.pop().flatten()),
            Err(error) => Err(shown.source.explain(error).await),
        }
    }
}

impl Way {
    fn choose(
        source: &Arc<dyn Source>,
        path: &str,
        (from, to): (&Arc<ArrayNode>, &Arc<ArrayNode>),
        bodies: Option<&Arc<Mapping>>,
        bytes_max: usize,
    ) -> Result<Self> {
        let copies = bodies.is_none() && from.spec.same_encoding(&to.spec);
        if copies && from.edges == to.edges {
            return Ok(Self::Copied);
        }
        let reader = Reader::new(source, path)?;
        let codecs = ChunkCodecs::new(to)?;
        let encoder = Encoder {
            relabel: bodies.map(|mapping| Relabel(mapping.clone())),
            cast: None,
            source_fill: codecs.whole().fill_element().to_vec(),
            codecs,
        };
        let (source, target) = (reader.codecs().whole(), encoder.codecs.whole());
        for codecs in [source, target] {
            if codecs.chunk_bytes().is_some_and(|bytes| bytes > bytes_max) {
                return Err(Error::unsupported(format!(
                    "chunks of {:?} elements, which are more than {bytes_max} bytes when decoded",
                    codecs.chunk_shape()
                )));
            }
        }
        if source.chunk_shape() != target.chunk_shape() {
            return Ok(Self::Regrid { reader, encoder });
        }
        let rewrites = source.has_label_blocks() && target.has_label_blocks();
        Ok(Self::SameGrid { reader, encoder, copies, rewrites })
    }
}

impl Shown {
    async fn fetch(&self, index: &[u64]) -> Result<Option<Bytes>> {
        let indices = [index.to_vec()];
        let reference = self.source.locate(&self.path, &indices).await?.pop().flatten();
        let Some(reference) = reference else { return Ok(None) };
        self.refuse_large(index, reference.len().unwrap_or(0))?;
        let name = |_| format!("chunk {index:?} of {}", self.path);
        let fetched = self.source.fetcher().fetch_named(&[&reference], name).await;
        let bytes = match fetched {
            Ok(mut fetched) => fetched.pop().flatten(),
            Err(error) => return Err(self.source.explain(error).await),
        };
        if let Some(bytes) = &bytes {
            self.refuse_large(index, bytes.len() as u64)?;
        }
        Ok(bytes)
    }

    fn refuse_large(&self, index: &[u64], bytes: u64) -> Result<()> {
        if bytes <= self.bytes_max as u64 {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "chunk {index:?} of {} has {bytes} bytes, and {} are handed out at once; ask for ranges",
            self.path, self.bytes_max
        )))
    }
}

/// Decodes and encodes a chunk, whose box of elements may be clipped on one side only; `None` when it is all fill value.
fn transcode(
    source: &ChunkCodecs,
    encoder: &Encoder,
    path: &str,
    index: &[u64],
    bytes: &[u8],
) -> Result<Option<Bytes>> {
    let (codecs, _) = source.of(index)?;
    let decoded = codecs.decode(bytes).map_err(|error| in_chunk(path, index, error))?;
    let place = source.stored_region(index);
    if let ElementsBuf::Fixed(elements) = &decoded {
        return encoder.encode(index, elements, &place);
    }
    let target = encoder.codecs.stored_region(index);
    let (codecs, _) = encoder.codecs.of(index)?;
    if target == place {
        return Ok(Some(codecs.encode(decoded.as_ref())?.into()));
    }
    let mut assembly = Assembly::new(target.shape(), codecs.fill_element())?;
    let Some(part) = target.intersect(&place) else { return Ok(None) };
    let within = part.relative_to(place.origin())?;
    let at = part.relative_to(target.origin())?;
    assembly.place(decoded.as_ref(), place.shape(), &within, at.origin())?;
    Ok(Some(codecs.encode(assembly.finish().as_ref())?.into()))
}
