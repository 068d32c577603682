//! Checks the stored chunks of one array, in batches.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_store::{ChunkRef, Error, Result, cpu};
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;

use super::Report;
use super::objects::Objects;
use crate::Meter;
use crate::read::{BATCHES, Reader, in_chunk};
use crate::source::{ChunkStream, Source};

/// Encoded bytes that are fetched at once, unless a single chunk has more.
const FETCH_BYTES: u64 = 16 << 20;

/// Chunks that are located at once, where they are not decoded.
const LOCATED_AT_ONCE: usize = 1024;

/// The most chunks that are asked for one by one, where they cannot be listed.
const UNLISTED_MAX: u64 = 1 << 30;

/// A chunk and where it is, or why that is unknown.
type Located = Result<(ChunkIndex, ChunkRef)>;

/// A chunk that was looked at, or what is wrong with it.
type Verdict = (Option<ChunkIndex>, Result<Seen>);

/// A chunk that is as it should be.
struct Seen {
    /// Its encoded bytes.
    bytes: u64,
    /// Whether it is an object of its own, which only the fetch showed.
    is_object: bool,
    /// Whether something besides decoding shows that its bytes are right.
    is_checked: bool,
    /// Whether the source gave its bytes.
    is_inline: bool,
}

impl Seen {
    fn new(reference: &ChunkRef, bytes: u64) -> Self {
        Self {
            bytes,
            is_object: matches!(reference, ChunkRef::Whole { .. }),
            is_checked: is_checked(reference),
            is_inline: matches!(reference, ChunkRef::Inline(_)),
        }
    }
}

/// Checks where the chunks of an array are, and with a reader also that they decode.
pub(super) async fn check_array(
    source: &Arc<dyn Source>,
    path: &str,
    decode: Option<Reader>,
    objects: &mut Objects,
    meter: &Meter,
    report: &mut Report,
) -> Result<()> {
    let node = source.dataset().array(path)?;
    let checksums = has_checksum(&node.spec.codecs_json());
    let everything = Region::whole(node.spec.shape());
    let mut origins = Vec::new();
    let batch = decode.as_ref().map_or(LOCATED_AT_ONCE, Reader::batch_size);
    let mut checked = stored(&**source, path, &everything)
        .await?
        .inspect(|found| {
            if let Ok((_, reference)) = found {
                objects.see(reference);
                meter.expect(reference.len().unwrap_or(0));
            }
        })
        .chunks(batch)
        .map(|batch| check_batch(source, decode.as_ref(), batch))
        .buffer_unordered(BATCHES);
    while let Some(verdicts) = checked.next().await {
        for (chunk, verdict) in verdicts? {
            match verdict {
                Ok(mut seen) => {
                    if let Some(chunk) = chunk.as_ref().filter(|_| seen.is_inline)
                        && let Some(origin) = source.origin(path, chunk).await?
                    {
                        let bytes = origin.len().unwrap_or(seen.bytes);
                        seen = Seen { bytes, ..Seen::new(&origin, bytes) };
                        origins.push(origin);
                    }
                    report.checked.chunks += 1;
                    let is_checked = seen.is_checked || checksums;
                    report.checked.unchecked += u64::from(decode.is_some() && !is_checked);
                    report.checked.objects += u64::from(seen.is_object);
                    report.checked.bytes += if decode.is_some() { seen.bytes } else { 0 };
                    meter.advance(seen.bytes);
                }
                Err(error) => report.damaged(path, chunk, error)?,
            }
        }
    }
    drop(checked);
    origins.iter().for_each(|origin| objects.see(origin));
    Ok(())
}

/// Whether the reference to a chunk carries, or leads to, a checksum of its bytes.
fn is_checked(reference: &ChunkRef) -> bool {
    match reference {
        ChunkRef::Slice { block, .. } => block.crc32c.is_some(),
        other => other.check().is_some(),
    }
}

/// Whether the codecs of an array compare its chunks with a checksum when they decode.
fn has_checksum(codecs: &[serde_json::Value]) -> bool {
    codecs.iter().any(|codec| {
        let name = codec["name"].as_str().or_else(|| codec.as_str()).unwrap_or_default();
        match name.strip_prefix("numcodecs.").unwrap_or(name) {
            "crc32c" | "crc32" | "adler32" | "fletcher32" | "gzip" | "zlib" | "bz2" | "lzma" => {
                true
            }
            "zstd" => codec["configuration"]["checksum"] == true,
            _ => false,
        }
    })
}

/// The stored chunks of an array: those that the source lists, or, where it cannot list, all that
/// may exist.
async fn stored<'a>(
    source: &'a dyn Source,
    path: &'a str,
    everything: &'a Region,
) -> Result<ChunkStream<'a>> {
    let mut found = source.chunks(path, everything).peekable();
    let unlisted = Pin::new(&mut found).peek().await;
    if !matches!(unlisted, Some(Err(Error::Unsupported { .. }))) {
        return Ok(found.boxed());
    }
    let grid = source.dataset().array(path)?.grid()?;
    if grid.num_chunks() > UNLISTED_MAX {
        return Err(Error::unsupported(format!(
            "checking {path}: it has room for {} chunks, and those that are stored cannot be listed \
             here; check it where it can be listed, or with --level metadata",
            grid.num_chunks()
        )));
    }
    let all = stream::iter(grid.chunks_in(everything)).chunks(LOCATED_AT_ONCE);
    let located = all.then(move |indices| async move {
        let located = source.locate(path, &indices).await?;
        let stored = indices.into_iter().zip(located).filter_map(|(index, at)| Some((index, at?)));
        Ok::<_, Error>(stream::iter(stored.map(Ok).collect::<Vec<_>>()))
    });
    Ok(located.try_flatten().boxed())
}

/// Checks some chunks. Without a reader it is enough that they are located.
async fn check_batch(
    source: &Arc<dyn Source>,
    reader: Option<&Reader>,
    batch: Vec<Located>,
) -> Result<Vec<Verdict>> {
    let (mut verdicts, mut wanted, mut bytes) = (Vec::with_capacity(batch.len()), Vec::new(), 0);
    for found in batch {
        let (index, reference) = match found {
            Ok(found) => found,
            Err(error) => {
                verdicts.push((None, Err(error)));
                continue;
            }
        };
        let length = reference.len().unwrap_or(0);
        let Some(reader) = reader else {
            verdicts.push((Some(index), Ok(Seen::new(&reference, length))));
            continue;
        };
        if bytes + length > FETCH_BYTES && !wanted.is_empty() {
            verdicts.extend(decode(source, reader, std::mem::take(&mut wanted)).await?);
            bytes = 0;
        }
        bytes += length;
        wanted.push((index, reference));
    }
    if let Some(reader) = reader {
        verdicts.extend(decode(source, reader, wanted).await?);
    }
    Ok(verdicts)
}

/// Fetches and decodes chunks.
async fn decode(
    source: &Arc<dyn Source>,
    reader: &Reader,
    chunks: Vec<(ChunkIndex, ChunkRef)>,
) -> Result<Vec<Verdict>> {
    let references: Vec<&ChunkRef> = chunks.iter().map(|(_, reference)| reference).collect();
    let fetched: Vec<Result<Option<Bytes>>> = match source.fetcher().fetch(&references).await {
        Ok(fetched) => fetched.into_iter().map(Ok).collect(),
        Err(error @ Error::Store { .. }) => return Err(error),
        // One of them is damaged: find out which.
        Err(_) => {
            let mut fetched = Vec::with_capacity(references.len());
            for reference in references {
                let one = source.fetcher().fetch(&[reference]).await;
                fetched.push(one.map(|mut bytes| bytes.pop().flatten()));
            }
            fetched
        }
    };
    let (path, codecs) = (reader.path().clone(), reader.codecs().clone());
    cpu(move || {
        let work = chunks.into_par_iter().zip(fetched);
        work.filter_map(|((index, reference), fetched)| {
            let checked = fetched.and_then(|bytes| {
                let Some(bytes) = bytes else { return Ok(None) };
                let (codecs, _) = codecs.of(&index)?;
                let decoded = codecs.check(&bytes).map_err(|error| in_chunk(&path, &index, error));
                decoded.map_err(|error| in_object(&reference, error))?;
                Ok(Some(Seen::new(&reference, bytes.len() as u64)))
            });
            Some((Some(index), checked.transpose()?))
        })
        .collect()
    })
    .await
}

/// Names the object, which a user can look at, and not the chunk, which is in the finding.
fn in_object(reference: &ChunkRef, error: Error) -> Error {
    let object = match reference {
        ChunkRef::Whole { path } | ChunkRef::Object { path, .. } => path,
        ChunkRef::Slice { block, .. } => &block.path,
        ChunkRef::Remote { url, .. } => url,
        ChunkRef::Inline(_) => return error,
    };
    match error {
        Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: object.to_string(), what, expected, found }
        }
        other => Error::Corrupt {
            file: object.to_string(),
            what: "the chunk".to_owned(),
            expected: "one that decodes".to_owned(),
            found: other.to_string(),
        },
    }
}
