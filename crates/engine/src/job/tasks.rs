//! The list of the tasks of a job: one object with all of them, and one that says where each ends.
//!
//! ```text
//!  tasks/ID        task 0, CRC-32C; task 1, CRC-32C; …
//!  tasks/ID.ends   u64 little-endian per task: where it ends in the other object, checksum included
//! ```
//!
//! A worker reads the few bytes of the task it has claimed, so its memory does not grow with the list.

use bytes::{Bytes, BytesMut};
use chunkyard_store::{Error, Result, Store};

/// Bytes of a task at most.
const TASK_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;
const CRC: u64 = 4;

/// Writes a list, durably; gives the number of tasks. Nothing refers to the objects yet.
pub(super) async fn write(
    store: &Store,
    path: &str,
    tasks: impl Iterator<Item = Result<Bytes>> + Send,
) -> Result<u64> {
    let mut upload = store.begin(path).await?;
    let (mut ends, mut buffer, mut position) = (BytesMut::new(), BytesMut::new(), 0_u64);
    for task in tasks {
        let task = task?;
        if task.len() as u64 > TASK_BYTES_MAX {
            let what = format!("a task of {} bytes; the most is {TASK_BYTES_MAX}", task.len());
            return Err(Error::invalid(what));
        }
        buffer.extend_from_slice(&task);
        buffer.extend_from_slice(&crc32c::crc32c(&task).to_le_bytes());
        position += task.len() as u64 + CRC;
        ends.extend_from_slice(&position.to_le_bytes());
        if buffer.len() >= WRITE_BYTES {
            upload.write(vec![buffer.split().freeze()]).await?;
        }
    }
    if !buffer.is_empty() {
        upload.write(vec![buffer.freeze()]).await?;
    }
    upload.finish().await?;
    let (count, ends_path) = (ends.len() as u64 / 8, ends_of(path));
    store.put(&ends_path, vec![ends.freeze()]).await?;
    store.sync(&[path.to_owned(), ends_path]).await?;
    Ok(count)
}

/// Reads one task.
pub(super) async fn read(store: &Store, path: &str, task: u64) -> Result<Bytes> {
    let ends_path = ends_of(path);
    let corrupt = |file: &str, expected: String, found: String| Error::Corrupt {
        file: store.object_url(file),
        what: format!("task {task} of a job"),
        expected,
        found,
    };
    let start = task.saturating_sub(1) * 8;
    let words = store.get_range(&ends_path, start..(task + 1) * 8).await?;
    let word = |at: usize| {
        let word = words.get(at..).and_then(|rest| rest.first_chunk::<8>());
        word.map(|word| u64::from_le_bytes(*word))
    };
    let (begin, end) = match task {
        0 => (Some(0), word(0)),
        _ => (word(0), word(8)),
    };
    let (begin, end) = (begin.unwrap_or_default(), end.unwrap_or_default());
    let length = end.checked_sub(begin).and_then(|length| length.checked_sub(CRC));
    if length.is_none_or(|length| length > TASK_BYTES_MAX) {
        let expected = format!("up to {TASK_BYTES_MAX} bytes and a checksum");
        return Err(corrupt(&ends_path, expected, format!("from byte {begin} to {end}")));
    }
    let bytes = store.get_range(path, begin..end).await?;
    let (content, crc) = bytes.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    let (expected, found) = (u32::from_le_bytes(*crc), crc32c::crc32c(content));
    if expected != found {
        let (expected, found) = (format!("CRC-32C {expected:08x}"), format!("{found:08x}"));
        return Err(corrupt(path, expected, found));
    }
    Ok(bytes.slice_ref(content))
}

/// Deletes a list that no job refers to, as well as possible.
pub(super) async fn discard(store: &Store, path: &str) {
    store.delete(&[path.to_owned(), ends_of(path)]).await.ok();
}

fn ends_of(path: &str) -> String {
    format!("{path}.ends")
}
