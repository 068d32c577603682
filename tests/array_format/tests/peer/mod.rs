//! array-format 0.9: plays scripts, and checks what a container holds.

mod check;
mod elements;
mod play;
mod raw;
mod words;

use std::path::Path as Directory;
use std::sync::Arc;

use array_format::{ArrayFile, FileConfig, Lz4Codec, NoCompression, ZstdCodec};
use object_store_array_format::ObjectStore;
use object_store_array_format::local::LocalFileSystem;
use object_store_array_format::path::Path;

/// The names of all codecs.
pub(crate) const CODECS: [&str; 3] = ["none", "lz4", "zstd"];

/// A container in a directory, as array-format sees it.
pub(crate) struct Peer {
    store: Arc<dyn ObjectStore>,
    codec: &'static str,
    block: usize,
}

/// Its base, in every test.
pub(crate) const BASE: &str = "c.af";

impl Peer {
    /// With a codec and a target size for what is written.
    pub(crate) fn new(directory: &Directory, codec: &'static str, block: usize) -> Self {
        let store = Arc::new(LocalFileSystem::new_with_prefix(directory).unwrap());
        Self { store, codec, block }
    }

    /// To read.
    pub(crate) fn of(directory: &Directory) -> Self {
        Self::new(directory, "none", 8 << 20)
    }

    async fn create(&self) -> ArrayFile {
        let (store, base, block) = (self.store.clone(), Path::from(BASE), self.block);
        match self.codec {
            "lz4" => ArrayFile::create(store, base, config(Lz4Codec, block)).await,
            "zstd" => ArrayFile::create(store, base, config(ZstdCodec::default(), block)).await,
            _ => ArrayFile::create(store, base, config(NoCompression, block)).await,
        }
        .unwrap()
    }

    pub(crate) async fn open(&self) -> ArrayFile {
        let (store, base, block) = (self.store.clone(), Path::from(BASE), self.block);
        match self.codec {
            "lz4" => ArrayFile::open(store, base, config(Lz4Codec, block)).await,
            "zstd" => ArrayFile::open(store, base, config(ZstdCodec::default(), block)).await,
            _ => ArrayFile::open(store, base, config(NoCompression, block)).await,
        }
        .unwrap()
    }
}

fn config<C: array_format::CompressionCodec>(codec: C, block: usize) -> FileConfig<C> {
    FileConfig { block_target_size: block, ..FileConfig::new(codec) }
}
