//! Where containers are: a directory or memory, behind a store that counts requests.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bench_measure::Options;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// A container's base object.
pub const BASE: &str = "c.af";

/// A store for one container, in a directory or in memory.
#[derive(Clone)]
pub struct Place {
    /// The store for the crate.
    pub store: Arc<Counted>,
    /// The base object.
    pub base: Path,
}

impl Place {
    /// The directory, or memory with the files of the directory: `store=memory`.
    pub async fn open(options: &Options) -> std::result::Result<Self, Box<dyn Error>> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory)?;
        let inner: Arc<dyn ObjectStore> = if options.text("store") == "memory" {
            let memory = InMemory::new();
            for entry in std::fs::read_dir(directory)? {
                let entry = entry?;
                let name = Path::from(entry.file_name().to_string_lossy().as_ref());
                memory.put(&name, std::fs::read(entry.path())?.into()).await?;
            }
            Arc::new(memory)
        } else {
            Arc::new(LocalFileSystem::new_with_prefix(directory)?)
        };
        let store = Arc::new(Counted { inner, requests: AtomicU64::new(0) });
        Ok(Self { store, base: Path::from(BASE) })
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.store.requests.load(Ordering::Relaxed)
    }
}

/// Every call that a remote store would see as one request, counted.
#[derive(Debug)]
pub struct Counted {
    inner: Arc<dyn ObjectStore>,
    requests: AtomicU64,
}

impl Counted {
    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counted {}", self.inner)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Counted {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.count();
        self.inner.put_opts(location, payload, options).await
    }

    /// Parts are not counted.
    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.count();
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.count();
        self.inner.get_opts(location, options).await
    }

    /// As many as there are ranges: the crate asks for one at a time.
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().for_each(|_| self.count());
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.count();
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count();
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.count();
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.count();
        self.inner.copy_opts(from, to, options).await
    }
}
