//! Runs the blocking parser on a thread of its own, and answers its reads from a store.
//!
//! The HDF5 parser follows addresses from structure to structure and blocks on each read; a store is
//! asynchronous. So the parser runs on a thread for blocking calls, its reads travel through a channel
//! to the task that called [`inspect`], and that task waits for the store. Neither needs to know the
//! other, and any store will do: a directory, a bucket, a web server.
//!
//! Structures are small and lie together, so reads are rounded out to blocks and the blocks are kept.
//! Panics of the parser end here too: they become [`Error::Corrupt`].

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::quietly;
use chunkyard_store::{Error, Guard, Result, Store};
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::{BlockCacheStorage, Hdf5File, OpenOptions, Storage, StorageBuffer};
use tokio::sync::{mpsc, oneshot};

/// Bytes that the parser may ask for at once. No structure that we let it read is nearly as large.
const READ_BYTES_MAX: usize = 256 << 20;
/// Memory for the blocks of one file.
const CACHE_BYTES: usize = 64 << 20;

/// A file in a store, and a guard that tells whether it has changed since.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) store: Store,
    pub(super) path: Arc<str>,
    pub(super) size: u64,
    /// Makes reads fail once the object has been replaced.
    pub(super) guard: Option<Guard>,
}

impl Object {
    /// Looks at the file without reading it.
    pub(super) async fn find(store: &Store, path: &str) -> Result<Self> {
        let meta = store.head(path).await?;
        let guard = Guard::of(&meta);
        Ok(Self { store: store.clone(), path: path.into(), size: meta.size, guard })
    }

    /// The name of the file in messages.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.store.url().trim_end_matches('/'), self.path)
    }

    /// The error of a file that contradicts itself.
    pub(super) fn corrupt(&self, what: &str, found: impl ToString) -> Error {
        Error::Corrupt {
            file: self.name(),
            what: what.to_owned(),
            expected: "HDF5".to_owned(),
            found: found.to_string(),
        }
    }
}

/// Runs `work` on the parsed file, on a thread for blocking calls, and serves its reads meanwhile.
pub(super) async fn inspect<T: Send + 'static>(
    object: &Object,
    work: impl FnOnce(&Hdf5File) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, mut asked) = mpsc::channel::<Ask>(1);
    let failure = Arc::new(Mutex::new(None));
    let parser = {
        let (object, failure) = (object.clone(), Arc::clone(&failure));
        tokio::task::spawn_blocking(move || parse(&object, sender, failure, work))
    };
    // Ends when the parser drops its end of the channel. If the caller goes away, this end is dropped:
    // the parser's next read fails, and its thread is free again.
    while let Some(ask) = asked.recv().await {
        let range = ask.offset..ask.offset.saturating_add(ask.len as u64);
        let read = object.store.get_ranges(&object.path, &[range], object.guard.as_ref()).await;
        // The parser cannot be gone while it waits.
        drop(ask.reply.send(read.map(|mut parts| parts.pop().unwrap_or_default())));
    }
    let outcome = parser.await.map_err(|cause| Error::store("parse", object.name(), cause))?;
    // An error of the store explains why the parser failed, if it did.
    let refused = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    match refused {
        Some(error) => Err(error),
        None => outcome,
    }
}

fn parse<T>(
    object: &Object,
    ask: mpsc::Sender<Ask>,
    failure: Arc<Mutex<Option<Error>>>,
    work: impl FnOnce(&Hdf5File) -> Result<T>,
) -> Result<T> {
    let remote = Arc::new(Remote { len: object.size, ask, failure });
    let caught = quietly(|| {
        let block_bytes = object.store.block_bytes();
        let blocks = BlockCacheStorage::new(
            Arc::clone(&remote) as _,
            block_bytes,
            CACHE_BYTES / block_bytes,
        );
        let storage = Arc::new(Blocks { remote, blocks, block_bytes });
        let options = OpenOptions::default().with_max_read_bytes(READ_BYTES_MAX);
        let file = Hdf5File::from_storage_with_options(storage, options)
            .map_err(|cause| object.corrupt("superblock", cause))?;
        work(&file)
    });
    caught.unwrap_or_else(|message| {
        Err(object.corrupt("structure", message.unwrap_or_else(|| "nonsense".to_owned())))
    })
}

/// One read of the parser.
struct Ask {
    offset: u64,
    len: usize,
    reply: oneshot::Sender<Result<Bytes>>,
}

/// The parser's view of the store.
struct Remote {
    len: u64,
    ask: mpsc::Sender<Ask>,
    /// The first error of the store; the parser's own errors cannot carry it.
    failure: Arc<Mutex<Option<Error>>>,
}

impl Storage for Remote {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_range(&self, offset: u64, len: usize) -> ParserResult<StorageBuffer> {
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.len);
        if !inside || len > READ_BYTES_MAX {
            let available = self.len.saturating_sub(offset);
            return Err(ParserError::UnexpectedEof { offset, needed: len as u64, available });
        }
        let gone = || ParserError::Io(io::Error::from(io::ErrorKind::BrokenPipe));
        let (reply, answer) = oneshot::channel();
        self.ask.blocking_send(Ask { offset, len, reply }).map_err(|_| gone())?;
        match answer.blocking_recv().map_err(|_| gone())? {
            Ok(bytes) => StorageBuffer::from_shared_owner(Arc::new(bytes), 0, len),
            Err(error) => {
                let cause = io::Error::other(error.to_string());
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                Err(ParserError::Io(cause))
            }
        }
    }
}

/// Small reads by way of blocks that are kept, large ones directly.
struct Blocks {
    remote: Arc<Remote>,
    blocks: BlockCacheStorage,
    block_bytes: usize,
}

impl Storage for Blocks {
    fn len(&self) -> u64 {
        self.remote.len
    }

    fn read_range(&self, offset: u64, len: usize) -> ParserResult<StorageBuffer> {
        if len > self.block_bytes {
            return self.remote.read_range(offset, len);
        }
        self.blocks.read_range(offset, len)
    }
}
