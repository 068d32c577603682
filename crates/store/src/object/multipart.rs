//! Objects too large for one request.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, Result};

/// The largest object written by a single request.
pub(super) const SINGLE_PUT_BYTES_MAX: usize = 64 << 20;

/// S3 takes 10,000 parts at most, so this allows for objects of 320 GB.
const PART_BYTES: usize = 32 << 20;

/// How many parts of an object are under way at once.
pub(super) const PARTS_AT_ONCE: usize = 4;

/// Writes an object in parts. It appears when the last step succeeds, and then as a whole.
pub(super) async fn put(store: &dyn ObjectStore, at: &Path, bytes: Vec<Bytes>) -> Result<()> {
    let mut upload = store.put_multipart(at).await?;
    match send(&mut upload, bytes).await {
        Ok(()) => Ok(()),
        Err(error) => {
            // Parts left behind cost money but do no harm; the caller hears the first failure.
            upload.abort().await.ok();
            Err(error)
        }
    }
}

async fn send(upload: &mut Box<dyn MultipartUpload>, bytes: Vec<Bytes>) -> Result<()> {
    // A part's request starts when it is polled, so that few are under way at once.
    let parts: Vec<_> =
        split(bytes, PART_BYTES).into_iter().map(|part| upload.put_part(part)).collect();
    stream::iter(parts).buffer_unordered(PARTS_AT_ONCE).try_collect::<()>().await?;
    upload.complete().await.map(drop)
}

/// Cuts buffers laid back to back into parts of equal size, the last one being the rest, without
/// copying.
fn split(bytes: Vec<Bytes>, part_bytes: usize) -> Vec<PutPayload> {
    let mut rest = VecDeque::from(bytes);
    let mut parts = Vec::new();
    let mut part: Vec<Bytes> = Vec::new();
    let mut room = part_bytes;
    while let Some(mut buffer) = rest.pop_front() {
        if buffer.len() > room {
            rest.push_front(buffer.split_off(room));
        }
        room -= buffer.len();
        part.push(buffer);
        if room == 0 {
            parts.push(part.drain(..).collect());
            room = part_bytes;
        }
    }
    if !part.is_empty() {
        parts.push(part.into_iter().collect());
    }
    parts
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn parts_are_equal_but_for_the_last() {
        let parts = split(vec!["abc".into(), "defghijk".into(), "".into(), "l".into()], 5);
        let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
        assert_eq!(parts, ["abcde", "fghij", "kl"]);
    }

    #[tokio::test]
    async fn parts_are_put_together_in_order() {
        let store = InMemory::new();
        let at = Path::from("large");
        let buffers: Vec<Bytes> =
            (0..5u8).map(|i| Bytes::from(vec![i; PART_BYTES / 2 + 1])).collect();
        let expected = buffers.concat();
        put(&store, &at, buffers).await.unwrap();
        let found = store.get(&at).await.unwrap().bytes().await.unwrap();
        assert!(found == expected);
    }
}
