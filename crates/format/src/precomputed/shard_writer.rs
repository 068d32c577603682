//! Writing a shard in one pass, in memory that does not grow with it.
//!
//! ```text
//!  index │ chunks of minishard 0 │ its index │ chunks of minishard 1 │ its index │ …
//! ```
//!
//! The index at the front is known last. A file gets zeros there first, and is named when they are overwritten. An
//! object of a bucket cannot be changed, so there the rest waits in memory or in a temporary file.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::codec::gzip_onto;
use chunkyard_store::{Error, Kind, Result, Store, Upload};

use super::sharding::{INDEX_ENTRY_BYTES, Packing, Sharding, Slot};
use super::spool::Spool;

/// Chunks are handed on once they have this many bytes together: 16 of them are on their way at most.
const WRITE_BYTES: usize = 1 << 20;

/// Pieces in which a spooled shard is sent.
const PIECE_BYTES: u64 = 4 << 20;

/// Minishards of a shard that we write at most, as a power of two: 16 MiB of index, in front of every shard.
const MINISHARD_BITS_MAX: u32 = 20;

/// The level at which the indices of minishards are compressed.
const INDEX_LEVEL: u32 = 9;

/// A shard being written. Readers see nothing of it until [`ShardWriter::finish`]. Dropping it leaves nothing.
#[derive(Debug)]
pub struct ShardWriter {
    store: Store,
    path: String,
    sharding: Sharding,
    shard: u64,
    /// Begun with the first chunk: a shard without chunks is no file.
    body: Option<Body>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    /// Bytes behind the index so far.
    length: u64,
    crc: u32,
    open: Option<Minishard>,
    /// Where the index of each complete minishard lies.
    index: BTreeMap<u64, (u64, u64)>,
    last: Option<Slot>,
    chunks: u64,
}

/// The rows of a minishard's index.
#[derive(Debug)]
struct Minishard {
    number: u64,
    /// Where its last chunk ends.
    end: u64,
    last_id: u64,
    ids: Vec<u8>,
    starts: Vec<u8>,
    lengths: Vec<u8>,
}

#[derive(Debug)]
enum Body {
    /// What is written first can be changed.
    Patched(Box<dyn Upload>),
    /// What is written first stays.
    Spooled(Spool),
}

/// A complete shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenShard {
    /// Its object.
    pub path: String,
    /// Chunks in it.
    pub chunks: u64,
    /// Bytes of the object.
    pub bytes: u64,
    /// CRC-32C of all of them.
    pub crc32c: u32,
}

impl ShardWriter {
    /// Begins the shard of a number, as an object of a store. Nothing is done there before the first chunk.
    pub fn new(
        store: Store,
        path: impl Into<String>,
        sharding: Sharding,
        shard: u64,
    ) -> Result<Self> {
        if sharding.minishard_bits > MINISHARD_BITS_MAX {
            return Err(Error::unsupported(format!(
                "writing shards of 2^{} minishards; 2^{MINISHARD_BITS_MAX} is the most",
                sharding.minishard_bits
            )));
        }
        Ok(Self {
            store,
            path: path.into(),
            sharding,
            shard,
            body: None,
            pending: Vec::new(),
            pending_bytes: 0,
            length: 0,
            crc: 0,
            open: None,
            index: BTreeMap::new(),
            last: None,
            chunks: 0,
        })
    }

    /// Adds a chunk, packed as [`Sharding::data_encoding`] says. Chunks come in the order of their minishards, and
    /// of their numbers in each: without a hash, that is in the order of their numbers.
    pub async fn push(&mut self, id: u64, stored: Bytes) -> Result<()> {
        let slot = self.sharding.slot(id);
        if slot.shard != self.shard {
            return Err(Error::invalid(format!(
                "chunk {id} belongs to shard {}, not to {}, which is {}",
                slot.shard, self.shard, self.path
            )));
        }
        if let Some(last) = self.last.filter(|last| *last >= slot) {
            return Err(Error::invalid(format!(
                "chunk {id} of minishard {} after chunk {} of minishard {}, in {}: expected ascending order",
                slot.minishard, last.id, last.minishard, self.path
            )));
        }
        self.last = Some(slot);
        if self.open.as_ref().is_some_and(|open| open.number != slot.minishard) {
            self.close_minishard().await?;
        }
        let end = self.length + stored.len() as u64;
        let open = self.open.get_or_insert_with(|| Minishard::new(slot.minishard));
        open.add(id, self.length, end);
        self.chunks += 1;
        self.write(stored).await
    }

    /// Number of chunks so far.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Bytes so far, that of the index at the front included.
    pub fn bytes(&self) -> u64 {
        self.sharding.index_bytes() + self.length
    }

    /// Makes the shard visible; `None` if it has no chunks, and then there is none. It is durable after
    /// [`sync`](chunkyard_store::Backend::sync) of its object.
    pub async fn finish(mut self) -> Result<Option<WrittenShard>> {
        self.close_minishard().await?;
        self.flush().await?;
        let index = self.render_index();
        let index_crc = crc32c::crc32c(&index);
        let rest = usize::try_from(self.length).unwrap_or(usize::MAX);
        let written = WrittenShard {
            path: self.path.clone(),
            chunks: self.chunks,
            bytes: self.bytes(),
            crc32c: crc32c::crc32c_combine(index_crc, self.crc, rest),
        };
        match self.body {
            None => return Ok(None),
            Some(Body::Patched(mut upload)) => {
                upload.patch(0, index).await?;
                upload.finish().await?;
            }
            Some(Body::Spooled(spool)) => {
                let mut upload = self.store.begin(&self.path).await?;
                upload.write(vec![index]).await?;
                for piece in spool.pieces(PIECE_BYTES) {
                    upload.write(vec![spool.read(piece).await?]).await?;
                }
                upload.finish().await?;
            }
        }
        Ok(Some(written))
    }

    /// Removes what was written, as well as possible.
    pub async fn abort(self) {
        if let Some(Body::Patched(upload)) = self.body {
            upload.abort().await;
        }
    }

    /// Writes the index of the minishard that is complete.
    async fn close_minishard(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let number = open.number;
        let rows = [open.ids, open.starts, open.lengths].concat();
        let packed = match self.sharding.minishard_index_encoding {
            Packing::Raw => rows,
            Packing::Gzip => {
                let mut packed = Vec::new();
                gzip_onto(&rows, INDEX_LEVEL, &mut packed)?;
                packed
            }
        };
        self.index.insert(number, (self.length, self.length + packed.len() as u64));
        self.write(packed.into()).await
    }

    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.length += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, &bytes);
        self.pending_bytes += bytes.len();
        self.pending.push(bytes);
        match self.pending_bytes >= WRITE_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if pending.is_empty() {
            return Ok(());
        }
        let body = match &mut self.body {
            Some(body) => body,
            None => {
                let begun = match self.store.kind() {
                    Kind::Local => {
                        let mut upload = self.store.begin(&self.path).await?;
                        upload.write(vec![self.render_index()]).await?;
                        Body::Patched(upload)
                    }
                    _ => Body::Spooled(Spool::default()),
                };
                self.body.insert(begun)
            }
        };
        match body {
            Body::Patched(upload) => upload.write(pending).await,
            Body::Spooled(spool) => {
                for bytes in pending {
                    spool.append(bytes).await?;
                }
                Ok(())
            }
        }
    }

    /// The index at the front: zeros for a minishard without chunks.
    fn render_index(&self) -> Bytes {
        let bytes = usize::try_from(self.sharding.index_bytes()).unwrap_or(0);
        let mut index = vec![0; bytes];
        for (number, (start, end)) in &self.index {
            let at = number * INDEX_ENTRY_BYTES;
            let range = usize::try_from(at).ok().and_then(|at| {
                index.get_mut(at..)?.first_chunk_mut::<{ INDEX_ENTRY_BYTES as usize }>()
            });
            if let Some(entry) = range {
                let (first, second) = entry.split_at_mut(size_of::<u64>());
                first.copy_from_slice(&start.to_le_bytes());
                second.copy_from_slice(&end.to_le_bytes());
            }
        }
        index.into()
    }
}

impl Minishard {
    fn new(number: u64) -> Self {
        let (ids, starts, lengths) = (Vec::new(), Vec::new(), Vec::new());
        Self { number, end: 0, last_id: 0, ids, starts, lengths }
    }

    /// Ids count from the one before, and positions from the end of the chunk before.
    fn add(&mut self, id: u64, start: u64, end: u64) {
        self.ids.extend((id - self.last_id).to_le_bytes());
        self.starts.extend((start - self.end).to_le_bytes());
        self.lengths.extend((end - start).to_le_bytes());
        self.last_id = id;
        self.end = end;
    }
}
