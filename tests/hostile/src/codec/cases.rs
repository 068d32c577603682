//! The arrays whose chunks are decoded.

use chunkyard_array::ArraySpec;
use serde_json::{Value, json};

/// An array of one chunk.
#[derive(Clone, Debug)]
pub struct Case {
    /// The fuzz target it belongs to.
    pub target: &'static str,
    /// Data type.
    pub dtype: &'static str,
    /// Shape of the chunk and of the array.
    pub shape: Vec<u64>,
    /// The codecs.
    pub codecs: Vec<Value>,
    /// The checksum that an input lacks.
    pub seal: Seal,
}

/// A checksum that is computed for the fuzzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// None.
    Open,
    /// A CRC-32C of everything, at the end.
    Crc,
    /// A CRC-32C after the index of this many bytes, which is at the start.
    IndexFirst(usize),
    /// A CRC-32C after the index of this many bytes, which is at the end.
    IndexLast(usize),
}

impl Seal {
    /// The chunk with its checksum.
    pub fn close(self, chunk: &[u8]) -> Vec<u8> {
        let crc = |bytes: &[u8]| crc32c::crc32c(bytes).to_le_bytes();
        match self {
            Self::Open => chunk.to_vec(),
            Self::Crc => [chunk, &crc(chunk)].concat(),
            Self::IndexFirst(len) => {
                let (index, rest) = chunk.split_at(len.min(chunk.len()));
                [index, &crc(index), rest].concat()
            }
            Self::IndexLast(len) => {
                let index = &chunk[chunk.len().saturating_sub(len)..];
                [chunk, &crc(index)].concat()
            }
        }
    }

    /// The chunk without its checksum, the inverse of [`Seal::close`].
    pub fn open(self, sealed: &[u8]) -> Vec<u8> {
        let mut chunk = sealed.to_vec();
        let at = match self {
            Self::Open => return chunk,
            Self::Crc | Self::IndexLast(_) => chunk.len().saturating_sub(4),
            Self::IndexFirst(len) => len,
        };
        chunk.drain(at..(at + 4).min(sealed.len()));
        chunk
    }
}

impl Case {
    /// Its metadata.
    pub fn spec(&self) -> ArraySpec {
        let builder = ArraySpec::builder(&self.shape, &self.shape, self.dtype);
        let builder = builder.codecs(self.codecs.clone());
        builder.build().expect("the table holds sound metadata")
    }

    fn new(target: &'static str, dtype: &'static str, shape: &[u64], codecs: Vec<Value>) -> Self {
        Self { target, dtype, shape: shape.to_vec(), codecs, seal: Seal::Open }
    }

    fn sealed(self, seal: Seal) -> Self {
        Self { seal, ..self }
    }
}

/// All cases; a byte picks one of a target by its position among the target's cases.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("codec_bytes", "uint32", &[6, 7], vec![bytes("little")]),
        Case::new("codec_bytes", "uint16", &[3, 2, 5], vec![bytes("big")]),
        Case::new("codec_bytes", "complex64", &[5], vec![bytes("big")]),
        Case::new("codec_bytes", "bool", &[9], vec![bytes("little")]),
        Case::new("codec_zstd", "uint32", &[16, 33], then(zstd(false))),
        Case::new("codec_zstd", "float64", &[300], then(zstd(true))),
        Case::new("codec_deflate", "uint16", &[40, 8], then(leveled("gzip"))),
        Case::new("codec_deflate", "uint16", &[40, 8], then(leveled("numcodecs.zlib"))),
        Case::new("codec_deflate", "uint16", &[40, 8], then(leveled("numcodecs.bz2"))),
        Case::new("codec_deflate", "uint16", &[40, 8], then(named("numcodecs.lz4"))),
        Case::new("codec_checksum", "uint8", &[6, 7], then(named("crc32c"))).sealed(Seal::Crc),
        Case::new(
            "codec_checksum",
            "uint32",
            &[16, 9],
            vec![bytes("little"), zstd(false), named("crc32c")],
        )
        .sealed(Seal::Crc),
        Case::new(
            "codec_checksum",
            "uint32",
            &[16, 9],
            vec![bytes("big"), leveled("gzip"), named("crc32c")],
        )
        .sealed(Seal::Crc),
        Case::new("codec_checksum", "uint8", &[8], then(named("numcodecs.adler32"))),
        Case::new("codec_checksum", "uint8", &[8], then(named("numcodecs.fletcher32"))),
        Case::new("codec_transpose", "uint32", &[4, 6], transposed(&[1, 0], None)),
        Case::new("codec_transpose", "uint16", &[2, 3, 4], transposed(&[2, 0, 1], None)),
        Case::new("codec_transpose", "uint16", &[9, 7], transposed(&[1, 0], Some(zstd(false)))),
        Case::new("codec_text", "string", &[7], vec![named("vlen-utf8")]),
        Case::new("codec_text", "bytes", &[3, 3], vec![named("vlen-bytes")]),
        Case::new("codec_text", "string", &[7], vec![named("vlen-utf8"), zstd(false)]),
        Case::new("codec_pcodec", "uint32", &[60], vec![named("numcodecs.pcodec")]),
        Case::new("codec_pcodec", "float64", &[20, 3], vec![named("numcodecs.pcodec")]),
    ];
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
        for (shuffle, dtype, typesize) in
            [("noshuffle", "uint8", 1), ("shuffle", "uint32", 4), ("bitshuffle", "float64", 8)]
        {
            // Two blocks and a bit.
            let codec = blosc(cname, shuffle, typesize, 256);
            cases.push(Case::new("codec_blosc", dtype, &[10, 53], then(codec)));
        }
    }
    let inner = [then(zstd(false)), then(named("crc32c")), vec![bytes("little")]];
    for (location, codecs) in ["start", "end", "end"].into_iter().zip(inner) {
        let index_bytes = 4 * 16;
        let seal = match location {
            "start" => Seal::IndexFirst(index_bytes),
            _ => Seal::IndexLast(index_bytes),
        };
        let codec = shard(&[4, 3], location, codecs);
        cases.push(Case::new("codec_shard", "uint16", &[8, 6], vec![codec]).sealed(seal));
    }
    // A shard of two inner shards, with one inner chunk each.
    let nested = shard(&[2, 3], "end", vec![shard(&[1, 3], "end", vec![bytes("little")])]);
    let nested = Case::new("codec_shard", "uint16", &[4, 3], vec![nested]);
    cases.push(nested.sealed(Seal::IndexLast(2 * 16)));
    let offsets = || named("chunkyard.offsets");
    cases.push(Case::new("codec_text", "string", &[7], vec![offsets()]));
    cases.push(Case::new("codec_text", "bytes", &[7], vec![offsets(), zstd(false)]));
    let labels = || named("chunkyard.label_block");
    let own = |dtype, codecs| Case::new("codec_label_block", dtype, &[8, 8, 16], codecs);
    cases.push(own("uint64", vec![labels()]));
    cases.push(own("uint32", vec![labels(), zstd(false)]));
    cases.push(own("uint64", vec![labels(), named("numcodecs.lz4")]));
    cases.push(own("uint64", vec![labels(), leveled("gzip")]));
    let blocks =
        || json!({"name": "compressed_segmentation", "configuration": {"block_size": [8, 8, 8]}});
    let own = |dtype, shape: &[u64], codecs| Case::new("codec_segmentation", dtype, shape, codecs);
    cases.push(own("uint64", &[9, 8, 17], vec![blocks()]));
    cases.push(own("uint32", &[2, 8, 9, 8], vec![blocks()]));
    cases.push(own("uint64", &[8, 8, 16], vec![blocks(), leveled("gzip")]));
    let own =
        |dtype, shape: &[u64], name| Case::new("codec_picture", dtype, shape, vec![named(name)]);
    cases.push(own("uint8", &[3, 5, 7, 6], "neuroglancer.png"));
    cases.push(own("uint16", &[5, 7, 6], "neuroglancer.png"));
    cases
}

fn named(name: &str) -> Value {
    json!({"name": name})
}

fn leveled(name: &str) -> Value {
    json!({"name": name, "configuration": {"level": 5}})
}

fn bytes(endian: &str) -> Value {
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

fn zstd(checksum: bool) -> Value {
    json!({"name": "zstd", "configuration": {"level": 3, "checksum": checksum}})
}

/// `bytes`, and a codec after it.
fn then(codec: Value) -> Vec<Value> {
    vec![bytes("little"), codec]
}

fn transposed(order: &[u64], after: Option<Value>) -> Vec<Value> {
    let transpose = json!({"name": "transpose", "configuration": {"order": order}});
    [transpose, bytes("little")].into_iter().chain(after).collect()
}

fn blosc(cname: &str, shuffle: &str, typesize: usize, blocksize: usize) -> Value {
    let mut configuration = json!({
        "cname": cname, "clevel": 5, "shuffle": shuffle, "blocksize": blocksize,
    });
    if shuffle != "noshuffle" {
        configuration["typesize"] = json!(typesize);
    }
    json!({"name": "blosc", "configuration": configuration})
}

fn shard(inner: &[u64], location: &str, codecs: Vec<Value>) -> Value {
    let index_codecs = then(named("crc32c"));
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": inner, "index_location": location,
        "index_codecs": index_codecs, "codecs": codecs,
    }})
}
