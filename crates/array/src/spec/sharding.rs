//! Sharding seen as a packing: chunks, and how many of them share an object.
//!
//! Specification: Zarr v3 `sharding_indexed`. Zarr puts sharding among the codecs, so that the
//! chunk grid of a sharded array describes its objects and the chunks hide in a configuration. Code
//! that moves chunks wants it the other way round: [`ArraySpec::unsharded`] gives an array of inner
//! chunks and a separate [`Sharding`]; [`ArraySpec::sharded`] joins the two again.
//!
//! ```
//! # use chunkyard_array::{ArraySpec, Sharding};
//! let chunks = ArraySpec::builder(&[100, 100], &[10, 10], "uint8").build()?;
//! let shards = chunks.sharded(&Sharding::new(&[50, 50]))?;
//! assert_eq!(shards.grid()?.num_chunks(), 4);
//! assert_eq!(shards.unsharded()?, (chunks, Some(Sharding::new(&[50, 50]))));
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

use serde_json::{Value, json};
use zarrs::metadata::v3::MetadataV3;
use zarrs::metadata_ext::codec::sharding::{ShardingCodecConfigurationV1, ShardingIndexLocation};

use super::ArraySpec;
use crate::{Error, Grid, Result};

const NAME: &str = "sharding_indexed";

/// How chunks are packed into shards, without their content.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharding {
    /// Shape of a shard, in elements.
    pub shard_shape: Vec<u64>,
    /// Codecs of the index, as they stand in the metadata.
    pub index_codecs: Vec<Value>,
    /// Whether the index lies before the chunks; it usually comes after them.
    pub index_at_start: bool,
}

/// A shard with the outermost packing taken off.
pub(crate) struct Unpacked {
    pub(crate) sharding: Sharding,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) codecs: Vec<Value>,
}

impl Sharding {
    /// The usual packing: a little-endian index with a checksum, after the chunks.
    pub fn new(shard_shape: &[u64]) -> Self {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        Self {
            shard_shape: shard_shape.to_vec(),
            index_codecs: vec![little, json!({"name": "crc32c"})],
            index_at_start: false,
        }
    }

    /// The grid of chunks of `chunk_shape` within one shard. Zarr v3 `sharding_indexed`: inner
    /// chunks divide the shard evenly.
    pub fn grid(&self, chunk_shape: &[u64]) -> Result<Grid> {
        let shard_shape = &self.shard_shape;
        let grid = Grid::new(shard_shape, chunk_shape)?;
        // A shard without elements would divide evenly, into nothing.
        if shard_shape.iter().zip(chunk_shape).any(|(n, chunk)| *n == 0 || n % chunk != 0) {
            return Err(Error::invalid(format!(
                "inner chunks of shape {chunk_shape:?} do not divide shards of {shard_shape:?}"
            )));
        }
        Ok(grid)
    }

    /// Takes the packing off a chain that consists of sharding alone; for any other, including one
    /// whose configuration is not understood, there is nothing to take off.
    pub(crate) fn take_off(codecs: &[MetadataV3], shard_shape: &[u64]) -> Result<Option<Unpacked>> {
        let [codec] = codecs else { return Ok(None) };
        if codec.name() != NAME || !codec.must_understand() {
            return Ok(None);
        }
        let Ok(typed) = codec.to_typed_configuration::<ShardingCodecConfigurationV1>() else {
            return Ok(None);
        };
        // The lists keep their spelling: `"crc32c"` stays a string.
        let list = |key: &str| codec.configuration().and_then(|map| map.get(key)?.as_array());
        let (Some(inner), Some(index)) = (list("codecs"), list("index_codecs")) else {
            return Ok(None);
        };
        let sharding = Self {
            shard_shape: shard_shape.to_vec(),
            index_codecs: index.clone(),
            index_at_start: typed.index_location == ShardingIndexLocation::Start,
        };
        let chunk_shape: Vec<u64> = typed.chunk_shape.iter().map(|extent| extent.get()).collect();
        sharding.grid(&chunk_shape)?;
        Ok(Some(Unpacked { sharding, chunk_shape, codecs: inner.clone() }))
    }

    /// The codec, around chunks of `chunk_shape` encoded by `codecs`.
    fn codec(&self, chunk_shape: &[u64], codecs: Vec<Value>) -> Value {
        json!({"name": NAME, "configuration": {
            "chunk_shape": chunk_shape,
            "codecs": codecs,
            "index_codecs": self.index_codecs,
            "index_location": if self.index_at_start { "start" } else { "end" },
        }})
    }
}

impl ArraySpec {
    /// The array of the chunks inside the shards, and how they are packed.
    ///
    /// If the codecs are anything but sharding alone, or the grid is not regular, this is the array
    /// itself. Of nested shards only the outermost are taken off.
    pub fn unsharded(&self) -> Result<(Self, Option<Sharding>)> {
        let unpacked = match self.chunk_shape() {
            Some(shard_shape) => Sharding::take_off(&self.metadata().codecs, shard_shape)?,
            None => None,
        };
        match unpacked {
            Some(Unpacked { sharding, chunk_shape, codecs }) => {
                let spec = self.with_chunk_shape(&chunk_shape)?.with_codecs(codecs)?;
                Ok((spec, Some(sharding)))
            }
            None => Ok((self.clone(), None)),
        }
    }

    /// The array whose objects are shards of this array's chunks. The inverse of
    /// [`ArraySpec::unsharded`].
    pub fn sharded(&self, sharding: &Sharding) -> Result<Self> {
        let grid = self.grid()?;
        sharding.grid(grid.chunk_shape())?;
        let codec = sharding.codec(grid.chunk_shape(), self.codecs_json());
        self.with_chunk_shape(&sharding.shard_shape)?.with_codecs(vec![codec])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::Sharding;
    use crate::{ArraySpec, Attributes, Codecs, codec};

    fn chunks(chunk_shape: &[u64]) -> ArraySpec {
        let shape: Vec<u64> = chunk_shape.iter().map(|extent| extent * 7 + 1).collect();
        let names: Vec<String> = (0..shape.len()).map(|d| format!("d{d}")).collect();
        let attributes = Attributes::from_iter([("zulu".into(), json!([1, null]))]);
        ArraySpec::builder(&shape, chunk_shape, "uint16")
            .fill_value(7)
            .dimension_names(names)
            .attributes(attributes)
            .chunk_key_encoding(json!({"name": "v2", "configuration": {"separator": "/"}}))
            .build()
            .unwrap()
    }

    #[test]
    fn shards_of_zarr_python_are_taken_apart() {
        let crc = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [16, 16], "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0.0,
            "codecs": [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": [4, 2],
                "codecs": [crc, {"name": "zstd", "configuration": {"level": 0, "checksum": false}}],
                "index_codecs": [crc, {"name": "crc32c"}],
                "index_location": "end",
            }}],
            "attributes": {"a": 1}, "storage_transformers": [],
        });
        let spec = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
        let (inner, sharding) = spec.unsharded().unwrap();
        assert_eq!(sharding, Some(Sharding::new(&[8, 8])));
        let mut expected = document.clone();
        expected["chunk_grid"]["configuration"]["chunk_shape"] = json!([4, 2]);
        expected["codecs"] = document["codecs"][0]["configuration"]["codecs"].clone();
        let found: Value = serde_json::from_slice(&inner.render()).unwrap();
        assert_eq!(found, expected);
        assert_eq!(inner.sharded(&sharding.unwrap()).unwrap(), spec);
    }

    #[test]
    fn only_the_outermost_shards_are_taken_off() {
        let once = chunks(&[2, 3]).sharded(&Sharding::new(&[4, 6])).unwrap();
        let twice = once.sharded(&Sharding::new(&[8, 12])).unwrap();
        assert!(Codecs::new(&twice).is_ok());
        assert_eq!(twice.unsharded().unwrap(), (once, Some(Sharding::new(&[8, 12]))));
    }

    #[test]
    fn what_is_not_sharding_alone_stays_as_it_is() {
        let flat = chunks(&[2, 3]);
        assert_eq!(flat.unsharded().unwrap(), (flat.clone(), None));
        let shards = flat.sharded(&Sharding::new(&[4, 6])).unwrap();
        let transpose = json!({"name": "transpose", "configuration": {"order": [0, 1]}});
        let mixed = [vec![transpose], shards.codecs_json()].concat();
        let mixed = shards.with_codecs(mixed).unwrap();
        assert_eq!(mixed.unsharded().unwrap(), (mixed.clone(), None));
        let mut odd = shards.codecs_json();
        odd[0]["configuration"]["novelty"] = json!(1);
        let odd = shards.with_codecs(odd).unwrap();
        assert_eq!(odd.unsharded().unwrap(), (odd.clone(), None));
        let mut document: Value = serde_json::from_slice(&shards.render()).unwrap();
        document["chunk_grid"] =
            json!({"name": "rectangular", "configuration": {"chunk_shape": [[2], 5]}});
        let uneven = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
        assert_eq!(uneven.unsharded().unwrap(), (uneven.clone(), None));
        assert!(uneven.sharded(&Sharding::new(&[4, 6])).is_err());
    }

    #[test]
    fn shards_that_are_not_whole_numbers_of_chunks_are_refused() {
        let flat = chunks(&[2, 3]);
        for shard in [&[4, 7][..], &[1, 3], &[4], &[0, 3], &[4, 6, 1]] {
            assert!(flat.sharded(&Sharding::new(shard)).is_err(), "{shard:?}");
        }
        let mut forged = flat.sharded(&Sharding::new(&[4, 6])).unwrap().codecs_json();
        forged[0]["configuration"]["chunk_shape"] = json!([3, 3]);
        let forged = flat.with_chunk_shape(&[4, 6]).unwrap().with_codecs(forged).unwrap();
        assert!(forged.unsharded().unwrap_err().to_string().contains("do not divide"));
    }

    proptest! {
        #[test]
        fn taking_off_undoes_putting_on(
            extents in prop::collection::vec((1u64..9, 1u64..5), 0..5),
            index_at_start: bool,
            bare: bool,
            compression in prop::sample::select(vec!["none", "zstd:3+crc32c", "blosc:lz4:5"]),
        ) {
            let (chunk_shape, counts): (Vec<_>, Vec<_>) = extents.into_iter().unzip();
            let shard_shape: Vec<_> = chunk_shape.iter().zip(&counts).map(|(c, n)| c * n).collect();
            let mut sharding = Sharding { index_at_start, ..Sharding::new(&shard_shape) };
            if bare {
                sharding.index_codecs[1] = json!("crc32c");
            }
            let flat = chunks(&chunk_shape);
            let codecs = codec::parse_shorthand(compression, &flat.dtype().unwrap()).unwrap();
            let flat = flat.with_codecs(codecs).unwrap();
            let shards = flat.sharded(&sharding).unwrap();
            prop_assert_eq!(shards.chunk_shape(), Some(&shard_shape[..]));
            prop_assert_eq!(shards.attributes(), flat.attributes());
            prop_assert!(Codecs::new(&shards).is_ok());
            let again = ArraySpec::parse(&shards.render()).unwrap();
            prop_assert_eq!(again.unsharded().unwrap(), (flat, Some(sharding)));
        }
    }
}
