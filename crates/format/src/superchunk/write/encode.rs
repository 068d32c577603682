//! Encodes full chunks while more rows arrive.
//!
//! ```text
//!  rows ─▶ Rows::bytes, a chunk long ─ full: swapped, not copied ─▶ Rows::full ─▶ a compute thread each
//!                                                                                   │ in their order
//!                                             ColumnWriting::pending ◀──────────────┘
//! ```
//!
//! An append waits for none of this, unless too many chunks are waiting already. A reader finds a chunk as
//! rows until its encoded form is in place. If encoding fails, or the call that waits for it is cancelled,
//! the chunk stays among the rows and is encoded again: the call that needs the chunk gets the error.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use chunkyard_array::codec::blosc::{self, Params};
use chunkyard_store::{Result, Started, cpu, start};

use super::Writing;
use super::append::{PENDING_BYTES_MAX, chunk_len};
use super::partial_chunk::PartialChunk;
use crate::encode_with;
use crate::superchunk::model::Column;

/// Bytes of full chunks that may wait to be encoded.
const AHEAD_BYTES_MAX: usize = 16 << 20;
/// Full chunks that may wait, however small they are.
const AHEAD_CHUNKS_MAX: usize = 1024;

/// Rows behind the last encoded chunk, in the byte order of the file.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The number of the first chunk here.
    pub(crate) chunk: u64,
    /// The full chunks.
    full: VecDeque<Full>,
    /// The rows of the chunk behind them, which is not full.
    pub(crate) bytes: PartialChunk,
}

/// A full chunk.
#[derive(Debug)]
struct Full {
    plain: Bytes,
    /// Its encoding; `None` before it starts, and while a caller waits for it.
    job: Option<Job>,
}

/// An encoding under way.
type Job = Started<Result<Bytes>>;

/// How a chunk is encoded.
trait Encode: Fn(&[u8]) -> Result<Bytes> + Clone + Send + 'static {}

impl<F: Fn(&[u8]) -> Result<Bytes> + Clone + Send + 'static> Encode for F {}

/// Locks the rows. No code that can fail runs under this lock.
pub(crate) fn rows_of(rows: &Mutex<Rows>) -> MutexGuard<'_, Rows> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rows {
    /// The first rows of a chunk.
    pub(crate) fn new(chunk: u64, rows: &[u8]) -> Result<Self> {
        Ok(Self { chunk, full: VecDeque::new(), bytes: PartialChunk::of(rows)? })
    }

    /// Takes rows until none are left or the most chunks are full. Whether a chunk became full.
    fn fill(&mut self, rest: &mut Bytes, whole: usize) -> Result<bool> {
        let had = self.full.len();
        while !rest.is_empty() && self.full.len() < ahead_max(whole) {
            if self.bytes.is_empty() && rest.len() >= whole {
                self.full.push_back(Full { plain: rest.split_to(whole), job: None });
                continue;
            }
            let some = rest.len().min(whole.saturating_sub(self.bytes.len()));
            self.bytes.push(rest.get(..some).unwrap_or_default(), whole)?;
            rest.advance(some);
            if self.bytes.len() >= whole {
                self.full.push_back(Full { plain: self.bytes.take(), job: None });
            }
        }
        Ok(self.full.len() > had)
    }

    /// Starts to encode the full chunks whose encoding has not started.
    fn start(&mut self, encode: impl Encode) {
        for full in self.full.iter_mut().filter(|full| full.job.is_none()) {
            full.job = Some(full.start(encode.clone()));
        }
    }

    /// The encoding of a full chunk, for a caller that waits for it.
    fn job(&mut self, at: usize, encode: impl Encode) -> Option<Job> {
        let full = self.full.get_mut(at)?;
        Some(full.job.take().unwrap_or_else(|| full.start(encode)))
    }

    /// Drops the first full chunks.
    fn forget(&mut self, count: usize) {
        self.full.drain(..count);
        self.chunk += count as u64;
    }

    /// The first bytes of a chunk, if it is here.
    pub(crate) fn start_of(&self, chunk: u64, bytes: usize) -> Option<Bytes> {
        let at = usize::try_from(chunk.checked_sub(self.chunk)?).ok()?;
        match self.full.get(at) {
            Some(Full { plain, .. }) => (bytes <= plain.len()).then(|| plain.slice(..bytes)),
            None if at == self.full.len() => self.bytes.get(..bytes).map(Bytes::copy_from_slice),
            None => None,
        }
    }
}

impl Full {
    fn start(&self, encode: impl Encode) -> Job {
        let plain = self.plain.clone();
        start(move || encode(&plain))
    }
}

/// Waits until at most `left_max` full chunks are not encoded; `done` gets the encoded ones, also those before
/// an error.
async fn encoded(
    rows: &Mutex<Rows>,
    left_max: usize,
    encode: impl Encode,
    done: &mut Vec<Bytes>,
) -> Result<()> {
    loop {
        let job = {
            let mut rows = rows_of(rows);
            match rows.full.len() > done.len() + left_max {
                true => rows.job(done.len(), encode.clone()),
                false => None,
            }
        };
        let Some(job) = job else { return Ok(()) };
        done.push(job.wait().await??);
    }
}

/// How many chunks of `whole` bytes may wait to be encoded.
fn ahead_max(whole: usize) -> usize {
    (AHEAD_BYTES_MAX / whole.max(1)).clamp(1, AHEAD_CHUNKS_MAX)
}

impl Writing {
    /// Adds rows to a column, in the byte order of the file. The caller may lend the memory: after this
    /// returns, only copies are used.
    pub(super) async fn append_column(&mut self, at: usize, mut rest: Bytes) -> Result<()> {
        let committed = self.committed();
        let Some(column) = committed.columns.get(at) else { return Ok(()) };
        let whole = chunk_len(column)?;
        let lent = rest.len() >= whole;
        let mut tried = None;
        loop {
            let Some(mine) = self.column(at) else { return Ok(()) };
            let rows = mine.rows.clone();
            let fuller = rows_of(&rows).fill(&mut rest, whole)?;
            if rest.is_empty() && !fuller && !lent {
                return Ok(());
            }
            if column.params.is_none() && tried.is_none() {
                let first = rows_of(&rows).full.front().map(|full| full.plain.clone());
                tried = Some(self.try_codecs(at, first.as_ref()).await?);
            }
            rows_of(&rows).start(encoder(tried.as_ref().unwrap_or(column)));
            let left_max = match (rest.is_empty(), lent) {
                (true, false) => return Ok(()),
                (true, true) => 0,
                (false, _) => ahead_max(whole) / 2,
            };
            // Encoded chunks are written while the next ones are encoded.
            self.take_encoded(at, left_max).await?;
            self.write_some(at, PENDING_BYTES_MAX).await?;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Moves encoded chunks to those that wait for a file, until at most `left_max` full ones are not encoded.
    pub(super) async fn take_encoded(&mut self, at: usize, left_max: usize) -> Result<()> {
        let committed = self.committed();
        let mine = self.columns.as_mut().and_then(|all| all.get_mut(at));
        let (Some(column), Some(mine)) = (committed.columns.get(at), mine) else {
            return Ok(());
        };
        let mut done = Vec::new();
        let outcome = encoded(&mine.rows, left_max, encoder(column), &mut done).await;
        let count = done.len();
        if count > 0 {
            mine.add_chunks(done);
            self.current.show(at, mine.waiting());
            // Only now can readers find them encoded.
            rows_of(&mine.rows).forget(count);
        }
        outcome
    }
}

/// Encodes a chunk on a compute thread.
pub(crate) async fn encode(column: &Column, plain: Bytes) -> Result<Bytes> {
    encode_from(column, plain, Bytes::new()).await
}

/// The same, given the last encoding of its first rows.
pub(crate) async fn encode_from(column: &Column, plain: Bytes, before: Bytes) -> Result<Bytes> {
    let (params, slack) = (column.params_or_default(), column.slack);
    cpu(move || encode_one(&params, slack, &plain, &before)).await?
}

/// How the chunks of a column are encoded.
fn encoder(column: &Column) -> impl Encode + use<> {
    let (params, slack) = (column.params_or_default(), column.slack);
    move |plain: &[u8]| encode_one(&params, slack, plain, &[])
}

fn encode_one(params: &Params, slack: u64, plain: &[u8], before: &[u8]) -> Result<Bytes> {
    encode_with(|encoded| {
        blosc::encode_onto_from(params, plain, before, encoded)?;
        if slack > 0 {
            blosc::with_slack(encoded, usize::try_from(slack).unwrap_or(0))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use chunkyard_store::Error;

    use super::*;

    const WHOLE: usize = 4;

    fn twice(plain: &[u8]) -> Result<Bytes> {
        Ok(plain.repeat(2).into())
    }

    #[test]
    fn chunks_are_filled_in_the_order_of_their_rows() {
        let mut rows = Rows::new(7, b"ab").unwrap();
        let mut more = Bytes::from_static(b"cdefghijk");
        assert!(rows.fill(&mut more, WHOLE).unwrap() && more.is_empty());
        assert_eq!(rows.start_of(7, 4).as_deref(), Some(&b"abcd"[..]));
        assert_eq!(rows.start_of(8, 3).as_deref(), Some(&b"efg"[..]));
        assert_eq!(rows.start_of(9, 3).as_deref(), Some(&b"ijk"[..]));
        let elsewhere = [rows.start_of(6, 1), rows.start_of(9, 4), rows.start_of(10, 0)];
        assert_eq!(elsewhere, [None, None, None]);
        assert!(!rows.fill(&mut Bytes::new(), WHOLE).unwrap());
    }

    #[test]
    fn the_number_of_waiting_chunks_is_limited() {
        let mut rows = Rows::default();
        let whole = AHEAD_BYTES_MAX / 2;
        let mut more = Bytes::from(vec![1; 3 * whole]);
        assert!(rows.fill(&mut more, whole).unwrap());
        assert_eq!((rows.full.len(), more.len()), (2, whole));
        rows.forget(1);
        assert!(rows.fill(&mut more, whole).unwrap() && more.is_empty());
    }

    #[tokio::test]
    async fn a_chunk_that_could_not_be_encoded_is_encoded_again() {
        let rows = Mutex::new(Rows::default());
        rows_of(&rows).fill(&mut Bytes::from_static(b"abcdefghij"), WHOLE).unwrap();
        let fails = |plain: &[u8]| match plain.first() {
            Some(b'a') => twice(plain),
            _ => Err(Error::invalid("no memory")),
        };
        rows_of(&rows).start(fails);
        let mut done = Vec::new();
        assert!(encoded(&rows, 0, fails, &mut done).await.is_err());
        assert_eq!(done, ["abcdabcd"]);
        rows_of(&rows).forget(1);
        assert_eq!(rows_of(&rows).start_of(1, 4).as_deref(), Some(&b"efgh"[..]));
        done.clear();
        encoded(&rows, 0, twice, &mut done).await.unwrap();
        assert_eq!(done, ["efghefgh"]);
    }

    #[tokio::test]
    async fn a_chunk_is_not_lost_when_its_waiter_is_cancelled() {
        let rows = Mutex::new(Rows::default());
        rows_of(&rows).fill(&mut Bytes::from_static(b"abcd"), WHOLE).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let receiver = std::sync::Arc::new(Mutex::new(receiver));
        let waits = move |plain: &[u8]| {
            receiver.lock().unwrap().recv().ok();
            twice(plain)
        };
        let mut done = Vec::new();
        let waiting = encoded(&rows, 0, waits, &mut done);
        assert!(futures::FutureExt::now_or_never(waiting).is_none());
        drop(sender);
        encoded(&rows, 0, twice, &mut done).await.unwrap();
        assert_eq!(done, ["abcdabcd"]);
    }
}
