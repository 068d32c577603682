//! Layers one by one, with chunks as bytes: array-format's way for types without elements.

use std::sync::Arc;

use array_format::delta::{Delta, DeltaImmutable, DeltaMutable};
use array_format::storage::{ObjectStoreBackend, Storage};
use array_format::{CompressionCodec, Lz4Codec, NoCompression, ZstdCodec};
use chunkyard_array_format::{Expected, elements};
use object_store_array_format::path::Path;

use super::check::check_definition;
use super::play::extents;
use super::{BASE, Peer, words};

impl Peer {
    /// Writes arrays as one layer on an empty base, chunk by chunk.
    pub(crate) async fn play_raw(&self, arrays: &[Expected]) {
        self.create().await;
        let codec: Arc<dyn CompressionCodec> = match self.codec {
            "lz4" => Arc::new(Lz4Codec),
            "zstd" => Arc::new(ZstdCodec::default()),
            _ => Arc::new(NoCompression),
        };
        let mut layer = Delta::<DeltaMutable>::new(codec, self.block, 1);
        for array in arrays {
            let definition = &array.definition;
            let (dtype, name) = (words::dtype(&definition.dtype), &definition.name);
            let (shape, chunk) = (extents(&definition.shape), extents(definition.chunk_shape()));
            let (names, fill) = (definition.dimension_names(), definition.fill.as_ref());
            let fill = fill.map(words::fill);
            layer.define_array(name, dtype, shape, names, Some(chunk), fill).unwrap();
            for chunk in &array.chunks {
                let bytes = elements::chunk(&definition.dtype, &array.chunk_elements(chunk));
                layer.write_raw_chunk(name, chunk.clone(), &bytes).unwrap();
            }
        }
        layer.commit(self.storage("c.1.af"), "c.1.af".into(), None, BASE).await.unwrap();
    }

    /// Compares definitions, and chunks as bytes, which must all be in the newest layer.
    pub(crate) async fn check_raw(&self, case: &str, expected: &[Expected]) {
        let file = self.open().await;
        let name = match file.num_layers() {
            1 => BASE.to_owned(),
            layers => format!("c.{}.af", layers - 1),
        };
        let layer = Delta::<DeltaImmutable>::open(self.storage(&name), name.as_str().into(), None);
        let layer = layer.await.unwrap();
        for array in expected {
            check_definition(case, &file, array);
            let (name, dtype) = (&array.definition.name, &array.definition.dtype);
            for chunk in &array.chunks {
                let found = layer.read_raw_chunk(name, chunk).await.unwrap();
                let bytes = elements::chunk(dtype, &array.chunk_elements(chunk));
                assert_eq!(found.as_deref(), Some(&bytes[..]), "chunk {chunk:?} of {name}, {case}");
            }
        }
    }

    fn storage(&self, object: &str) -> Arc<dyn Storage> {
        Arc::new(ObjectStoreBackend::new(self.store.clone(), Path::from(object)))
    }
}
