//! Sources shown in other formats: every key of a view is stored, what is there is opened by our own reader, and compared.

mod volumes;
mod zarr;

use std::sync::Arc;

use chunkyard_engine::format::{OpenOptions, Source};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::open::open;
use chunkyard_engine::store::{Options, Store};
use chunkyard_engine::view::ViewOptions;

/// Supervoxels, and chunks of a size that nothing here has.
fn plain() -> ViewOptions {
    ViewOptions { ids: Ids::Supervoxels, bytes_max: 1 << 26 }
}

/// Keys and values on their way into a store of their own.
struct Copy {
    url: String,
    store: Store,
}

impl Copy {
    fn new(name: &str) -> Self {
        let url = format!("memory://views-{name}");
        let store = Store::open(&url, &Options::default()).unwrap();
        Self { url, store }
    }

    async fn put(&self, key: &str, value: bytes::Bytes) {
        self.store.put(key, vec![value]).await.unwrap();
    }

    async fn open(&self) -> Arc<dyn Source> {
        open(&self.url, &OpenOptions::default()).await.unwrap().source
    }
}
