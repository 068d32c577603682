//! Putting existing data under version control without copying it.
//!
//! Every stored chunk of the source becomes a reference to its place, guarded by the etag or the
//! time of its object. One commit makes all of them visible. Readers must allow that place; a
//! source that changes afterwards is an error when read, never stale data.

use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_format::{CreateOptions, Meter, Place, Published, Sink, Source};
use chunkyard_repo::{RepoFormat, RepoSink, Virtual};
use chunkyard_store::{Check, ChunkRef, Error, Guard, Result};
use futures::StreamExt;

use super::overlap::refuse_overlap;
use super::plan::Plan;
use super::wishes::Wishes;

/// References that are set in one go.
const BATCH: usize = 1024;

/// What was linked.
#[derive(Debug, Clone, Default)]
pub struct Linked {
    /// Arrays.
    pub arrays: u64,
    /// References into the source.
    pub chunks: u64,
    /// Bytes they refer to.
    pub bytes: u64,
    /// Chunks that lie in the metadata of the source and were copied, and their bytes.
    pub copied: (u64, u64),
    /// The result that was made visible.
    pub published: Published,
}

/// Links the wished part of an open source into the repository at a place, in one commit. Wishes
/// that would change chunks are refused.
pub async fn link(
    source: &Arc<dyn Source>,
    from: &Place,
    place: &Place,
    wishes: &Wishes,
    name: &str,
    options: CreateOptions,
    meter: &Meter,
) -> Result<Linked> {
    refuse_overlap(&**source, from, place.url())?;
    let plan = Plan::new(source, wishes, &RepoFormat, name).await?;
    let changed: Vec<String> = plan
        .arrays
        .iter()
        .filter(|array| array.movement != super::Movement::Copy)
        .map(|array| format!("\n  {}: {}", array.source, array.why))
        .collect();
    if !changed.is_empty() {
        return Err(Error::unsupported(format!(
            "linking chunks that would have to change; convert these instead:{}",
            changed.concat()
        )));
    }
    meter.expect(plan.bytes());
    let sink = RepoSink::create(place, plan.dataset.clone(), options).await?;
    let mut linked = Linked::default();
    for array in &plan.arrays {
        let everything = Region::whole(array.from.spec.shape());
        let mut batches = source.chunks(&array.source, &everything).chunks(BATCH);
        while let Some(batch) = batches.next().await {
            let (mut references, mut copies) = (Vec::new(), Vec::new());
            for found in batch {
                let (index, reference) = found?;
                let bytes = reference.len().unwrap_or(0);
                match point(&**source, reference)? {
                    Pointed::There(reference) => {
                        linked.chunks += 1;
                        linked.bytes += bytes;
                        references.push((index, reference));
                    }
                    Pointed::Inline(bytes) => {
                        linked.copied.0 += 1;
                        linked.copied.1 += bytes.len() as u64;
                        copies.push((index, bytes));
                    }
                }
            }
            sink.refer(&array.target, references, copies).await?;
        }
        linked.arrays += 1;
        meter.advance(array.bytes);
    }
    linked.published = Box::new(sink).finish().await?;
    Ok(linked)
}

/// A chunk as a repository may refer to it.
enum Pointed {
    There(Virtual),
    Inline(bytes::Bytes),
}

fn point(source: &dyn Source, reference: ChunkRef) -> Result<Pointed> {
    let (url, range, guard, check) = match reference {
        ChunkRef::Inline(bytes) => return Ok(Pointed::Inline(bytes)),
        ChunkRef::Whole { path } => {
            return Err(Error::unsupported(format!("linking {path}, whose size is not known")));
        }
        ChunkRef::Slice { block, within } => {
            return match block.plain(&within)? {
                Some(plain) => point(source, plain),
                None => Err(Error::unsupported(format!(
                    "linking chunks of {}, which are packed together into blocks; convert instead",
                    block.path
                ))),
            };
        }
        ChunkRef::Remote { url, range, guard, check } => (url, range, guard, check),
        ChunkRef::Object { path, range, guard, check } => {
            let url = source.fetcher().store().object_url(&path);
            (url.into(), range, guard, check)
        }
    };
    let Guard { etag, not_newer_than_ms } = guard.unwrap_or_default();
    Ok(Pointed::There(Virtual {
        url,
        offset: range.start,
        length: range.end.saturating_sub(range.start),
        etag,
        last_modified_ms: not_newer_than_ms,
        // A repository has no digests behind chunks: the reference covers the chunk's own bytes.
        crc32c: check.and_then(Check::crc32c),
    }))
}
