//! array-format 0.9: plays scripts, and checks the content of a container.

mod check;
mod elements;
mod play;
mod raw;
mod words;

use std::sync::Arc;

use array_format::{ArrayFile, FileConfig, Lz4Codec, NoCompression, ZstdCodec};
use object_store_array_format::ObjectStore;
use object_store_array_format::local::LocalFileSystem;
use object_store_array_format::path::Path;

use crate::matrix::Case;

/// A container in a directory, as array-format sees it.
pub(crate) struct Peer {
    store: Arc<dyn ObjectStore>,
    codec: &'static str,
    block: usize,
}

/// Its base, in every test.
pub(crate) const BASE: &str = "c.af";

impl Peer {
    /// The container of a case.
    pub(crate) fn of(case: &Case) -> Self {
        let store = Arc::new(LocalFileSystem::new_with_prefix(case.directory()).unwrap());
        Self { store, codec: case.codec, block: case.block }
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
