//! A pipeline of HDF5 filters as a chain of codecs.
//!
//! Both are lists of steps that are applied in order when a chunk is written. Each filter becomes one
//! codec, if a codec reads exactly the bytes that the filter writes. Several filters put a frame of
//! their own around a well-known compression; those are refused by name.

use chunkyard_array::ByteOrder;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use serde_json::{Value, json};

use super::dtype::{ElementClass, ElementType};

/// The identifiers that HDF5 and its registry of filters give.
mod id {
    pub(super) const DEFLATE: u16 = 1;
    pub(super) const SHUFFLE: u16 = 2;
    pub(super) const FLETCHER32: u16 = 3;
    pub(super) const BZIP2: u16 = 307;
    pub(super) const BLOSC: u16 = 32001;
    pub(super) const ZSTD: u16 = 32015;
}

/// Filters that no codec expresses, by their common names.
const REFUSED: &[(u16, &str)] = &[
    (4, "szip"),
    (5, "n-bit"),
    (6, "scale-offset"),
    (305, "lzo"),
    (32000, "lzf"),
    (32004, "lz4, in HDF5's own frame"),
    (32008, "bitshuffle, in its own frame"),
    (32013, "zfp"),
    (32026, "blosc2"),
    (32028, "fpzip"),
];

/// The inner codecs of Blosc, by number.
const BLOSC_CODECS: [&str; 6] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];

/// The codecs of an array whose decoded chunks have `chunk_bytes` bytes.
pub(super) fn codecs(
    element: &ElementType,
    chunk_bytes: u64,
    filters: &[FilterDescription],
) -> Result<Vec<Value>, String> {
    let mut codecs = vec![elements_to_bytes(element)];
    for (at, filter) in filters.iter().enumerate() {
        let parameter = |n: usize| filter.client_data.get(n).copied();
        let codec = match filter.id {
            id::DEFLATE => {
                named("numcodecs.zlib", json!({"level": parameter(0).unwrap_or(6).min(9)}))
            }
            id::SHUFFLE => match shuffle(parameter(0).unwrap_or(0), at, chunk_bytes)? {
                Some(codec) => codec,
                None => continue,
            },
            id::FLETCHER32 => named("numcodecs.fletcher32", json!({})),
            id::BZIP2 => {
                named("numcodecs.bz2", json!({"level": parameter(0).unwrap_or(9).clamp(1, 9)}))
            }
            id::ZSTD => {
                let level = parameter(0).unwrap_or(3).min(22);
                named("zstd", json!({"level": level, "checksum": false}))
            }
            id::BLOSC => blosc(&filter.client_data),
            other => return Err(refused(other, filter.name.as_deref())),
        };
        codecs.push(codec);
    }
    Ok(codecs)
}

fn named(name: &str, configuration: Value) -> Value {
    json!({"name": name, "configuration": configuration})
}

fn elements_to_bytes(element: &ElementType) -> Value {
    let endian = match element.order {
        _ if element.kind == ElementClass::Text => return json!({"name": "vlen-utf8"}),
        _ if element.bytes == 1 || element.kind == ElementClass::Raw => {
            return json!({"name": "bytes"});
        }
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    };
    named("bytes", json!({"endian": endian}))
}

/// HDF5 leaves trailing bytes that fill no element as they are; the codec refuses them. A shuffle that
/// comes before any other filter meets no such bytes.
fn shuffle(element_bytes: u32, at: usize, chunk_bytes: u64) -> Result<Option<Value>, String> {
    if element_bytes <= 1 {
        return Ok(None);
    }
    if at > 0 || !chunk_bytes.is_multiple_of(u64::from(element_bytes)) {
        return Err("a shuffle that is not the first filter".to_owned());
    }
    Ok(Some(named("numcodecs.shuffle", json!({"elementsize": element_bytes}))))
}

/// A chunk is a Blosc buffer, which says itself how it was made; the parameters are for writers.
///
/// They are two versions, the size of an element and of a chunk, level, shuffle, and inner codec.
fn blosc(parameters: &[u32]) -> Value {
    let parameter = |n: usize| parameters.get(n).copied();
    let inner = parameter(6).and_then(|n| BLOSC_CODECS.get(n as usize)).unwrap_or(&"blosclz");
    let element_bytes = parameter(2).unwrap_or(1).max(1);
    let shuffle = match parameter(5) {
        Some(0) => "noshuffle",
        Some(2) => "bitshuffle",
        _ => "shuffle",
    };
    let mut configuration = json!({
        "cname": inner,
        "clevel": parameter(4).unwrap_or(5).min(9),
        "shuffle": shuffle,
        "blocksize": 0,
    });
    if shuffle != "noshuffle" {
        configuration["typesize"] = json!(element_bytes);
    }
    named("blosc", configuration)
}

fn refused(id: u16, name: Option<&str>) -> String {
    let known = REFUSED.iter().find(|(known, _)| *known == id).map(|(_, name)| *name);
    match known.or(name) {
        Some(name) => format!("chunks filtered by {name}"),
        None => format!("chunks filtered by filter {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(id: u16, client_data: &[u32]) -> FilterDescription {
        FilterDescription { id, name: None, client_data: client_data.to_vec() }
    }

    fn floats(order: ByteOrder) -> ElementType {
        let (dtype, kind) = (json!("float32"), ElementClass::Float32);
        ElementType { dtype, kind, bytes: 4, order, members: None }
    }

    #[test]
    fn filters_become_codecs_in_the_same_order() {
        let filters = [filter(2, &[4]), filter(1, &[9]), filter(3, &[])];
        let found = codecs(&floats(ByteOrder::Big), 400, &filters).unwrap();
        let names: Vec<_> = found.iter().map(|codec| codec["name"].as_str().unwrap()).collect();
        let expected = ["bytes", "numcodecs.shuffle", "numcodecs.zlib", "numcodecs.fletcher32"];
        assert_eq!(names, expected);
        assert_eq!(found[0]["configuration"]["endian"], "big");
        assert_eq!(found[1]["configuration"]["elementsize"], 4);
        assert_eq!(found[2]["configuration"]["level"], 9);
    }

    #[test]
    fn a_filter_that_no_codec_reads_is_refused_by_name() {
        let refuse = |filters: &[FilterDescription]| {
            codecs(&floats(ByteOrder::Little), 400, filters).unwrap_err()
        };
        assert!(refuse(&[filter(6, &[])]).contains("scale-offset"));
        assert!(refuse(&[filter(32026, &[])]).contains("blosc2"));
        assert!(refuse(&[filter(40_000, &[])]).contains("40000"));
        assert!(refuse(&[filter(3, &[]), filter(2, &[4])]).contains("first"));
        assert!(refuse(&[filter(2, &[3])]).contains("shuffle"));
    }
}
