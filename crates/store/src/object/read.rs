//! Reads from object stores: checked against what was asked, and against what the reply says.

use std::ops::Range;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as Cause, GetOptions, ObjectStore, ObjectStoreExt};

use super::{describe, translate};
use crate::backend::Object;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::local::{check_range, short};

const OP: &str = "read";

/// How many ranges of one call are under way at once.
const RANGES_AT_ONCE: usize = 8;

/// The most memory allocated for a body before any of it arrives, whatever length the reply claims.
const TRUSTED_BYTES: u64 = 16 << 20;

pub(super) async fn whole(store: &dyn ObjectStore, at: &Path, path: &str) -> Result<Object> {
    let reply = store.get(at).await.map_err(|error| translate(OP, path, error))?;
    let meta = describe(path.to_owned(), reply.meta.clone());
    let bytes = collect(reply.into_stream(), path, &(0..meta.size)).await?;
    Ok(Object { bytes, meta })
}

pub(super) async fn ranges(
    store: &dyn ObjectStore,
    at: &Path,
    path: &str,
    ranges: &[Range<u64>],
    guard: Option<&Guard>,
) -> Result<Vec<Bytes>> {
    if ranges.is_empty() {
        // As on a file system, asking for nothing still tells whether the object is there.
        store.head(at).await.map_err(|error| translate(OP, path, error))?;
    }
    stream::iter(ranges.to_vec())
        .map(|range| one(store, at, path, range, guard))
        .buffered(RANGES_AT_ONCE)
        .try_collect()
        .await
}

async fn one(
    store: &dyn ObjectStore,
    at: &Path,
    path: &str,
    range: Range<u64>,
    guard: Option<&Guard>,
) -> Result<Bytes> {
    let range = &range;
    if check_range(path, range, u64::MAX)? == 0 {
        return empty(store, at, path, range, guard).await;
    }
    let options = GetOptions::new().with_range(Some(range.clone()));
    let reply = match store.get_opts(at, options).await {
        Ok(reply) => reply,
        Err(error) => return Err(explain(store, at, path, range, error).await),
    };
    // The guard is checked against this very reply, so there is no moment between check and read.
    if let Some(guard) = guard {
        guard.check(path, &describe(path.to_owned(), reply.meta.clone()))?;
    }
    if reply.range != *range {
        return Err(short(path, range, reply.meta.size));
    }
    collect(reply.into_stream(), path, range).await
}

/// An empty range has no request of its own in HTTP; it is still checked.
async fn empty(
    store: &dyn ObjectStore,
    at: &Path,
    path: &str,
    range: &Range<u64>,
    guard: Option<&Guard>,
) -> Result<Bytes> {
    let meta = store.head(at).await.map_err(|error| translate(OP, path, error))?;
    check_range(path, range, meta.size)?;
    if let Some(guard) = guard {
        guard.check(path, &describe(path.to_owned(), meta))?;
    }
    Ok(Bytes::new())
}

/// Stores have no common error for a range that starts beyond the end. Asking for the size tells
/// this case from a network failure.
async fn explain(
    store: &dyn ObjectStore,
    at: &Path,
    path: &str,
    range: &Range<u64>,
    error: Cause,
) -> Error {
    if matches!(error, Cause::Generic { .. })
        && let Ok(meta) = store.head(at).await
        && meta.size < range.end
    {
        return short(path, range, meta.size);
    }
    translate(OP, path, error)
}

/// The body of a reply, which must be as long as `range`.
async fn collect(
    mut body: BoxStream<'static, object_store::Result<Bytes>>,
    path: &str,
    range: &Range<u64>,
) -> Result<Bytes> {
    let expected = range.end - range.start;
    let mut first = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    let mut received = 0;
    while let Some(part) = body.try_next().await.map_err(|error| translate(OP, path, error))? {
        received += part.len() as u64;
        if received > expected {
            break;
        }
        if first.is_empty() && joined.is_empty() {
            first = part; // most often all of it, and then never copied
            continue;
        }
        if joined.is_empty() {
            joined.reserve(usize::try_from(expected.min(TRUSTED_BYTES)).unwrap_or(0));
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&part);
    }
    if received != expected {
        return Err(Error::Corrupt {
            file: path.to_owned(),
            what: format!("length of the reply for the range {}..{}", range.start, range.end),
            expected: format!("{expected} bytes"),
            found: format!("{received} bytes or more"),
        });
    }
    Ok(if joined.is_empty() { first } else { joined.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(parts: &[&'static str]) -> BoxStream<'static, object_store::Result<Bytes>> {
        let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::from(*part))).collect();
        stream::iter(parts).boxed()
    }

    #[tokio::test]
    async fn a_body_in_parts_is_joined() {
        let bytes = collect(body(&["", "ab", "", "cd", "e"]), "x", &(5..10)).await.unwrap();
        assert_eq!(bytes, "abcde");
    }

    #[tokio::test]
    async fn a_body_of_another_length_is_corrupt() {
        for parts in [&["abc"][..], &["abc", "def"], &[]] {
            let error = collect(body(parts), "x", &(0..4)).await.unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{parts:?}: {error}");
        }
    }

    #[tokio::test]
    async fn a_claimed_length_is_not_believed_before_it_arrives() {
        let error = collect(body(&["a", "b"]), "x", &(0..u64::MAX)).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }));
    }
}
