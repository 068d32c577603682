//! Bringing values that are somewhere, or ranges of them.

use std::ops::Range;

use bytes::Bytes;
use chunkyard_store::{ChunkRef, Fetcher, Result};

use super::ByteRange;

/// An encoded chunk as a value, and what of it is wanted.
#[derive(Debug, Clone)]
pub struct StoredValue {
    /// Where it is.
    pub reference: ChunkRef,
    /// The range that is wanted; `None`: all of it.
    pub range: Option<ByteRange>,
    /// Whether a range may be read without the rest. A checksum covers the whole chunk, so a part cannot be checked; the
    /// parts of a shard carry their own checksums.
    pub in_part: bool,
}

impl StoredValue {
    /// The range that is read alone, if that is possible.
    fn part(&self) -> Option<Range<u64>> {
        let (range, length) = (self.range.as_ref()?, self.reference.len()?);
        let within = range.of(length);
        let alone = self.in_part || self.reference.check().is_none();
        (within != (0..length) && alone).then_some(within)
    }
}

/// The bytes of values, in their order; `None` for a whole object that is not there. All are fetched together, and `name`
/// names one whose checksum does not match.
pub async fn fetch_values(
    fetcher: &Fetcher,
    wanted: &[StoredValue],
    name: impl Fn(usize) -> String,
) -> Result<Vec<Option<Bytes>>> {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for (at, value) in wanted.iter().enumerate() {
        match value.part() {
            Some(range) => parts.push((at, (&value.reference, range))),
            None => whole.push((at, &value.reference)),
        }
    }
    let references: Vec<&ChunkRef> = whole.iter().map(|(_, reference)| *reference).collect();
    let ranges: Vec<(&ChunkRef, Range<u64>)> =
        parts.iter().map(|(_, (reference, range))| (*reference, range.clone())).collect();
    let what = |at: usize| whole.get(at).map_or_else(String::new, |(at, _)| name(*at));
    let (fetched, cut) =
        futures::try_join!(fetcher.fetch_named(&references, what), fetcher.fetch_within(&ranges))?;
    let mut answer: Vec<Option<Bytes>> = vec![None; wanted.len()];
    for ((at, _), bytes) in whole.iter().zip(fetched) {
        if let (Some(value), Some(answer)) = (wanted.get(*at), answer.get_mut(*at)) {
            *answer = bytes.map(|bytes| ByteRange::cut(value.range.as_ref(), bytes));
        }
    }
    for ((at, _), bytes) in parts.iter().zip(cut) {
        if let Some(answer) = answer.get_mut(*at) {
            *answer = Some(bytes);
        }
    }
    Ok(answer)
}
