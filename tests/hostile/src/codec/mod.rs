//! Chunks: the decoder of every codec, through the interface that readers use.
//!
//! The first byte of an input picks a [`Case`], an array with a small chunk; the rest is the
//! encoded chunk. If a codec keeps a checksum, the input lacks it: it is computed here, so that the
//! code after the check is reached.

mod cases;

use std::sync::OnceLock;

use chunkyard_array::{ArraySpec, Codecs, Elements, ElementsBuf, Output, Region};

pub use self::cases::{Case, Seal, cases};
use crate::error::is_about_chunk;

/// `bytes` in either order.
pub(crate) fn bytes(data: &[u8]) {
    run("codec_bytes", data);
}

/// `zstd`.
pub(crate) fn zstd(data: &[u8]) {
    run("codec_zstd", data);
}

/// `blosc` with each of its compressors and shuffles.
pub(crate) fn blosc(data: &[u8]) {
    run("codec_blosc", data);
}

/// `gzip`, `zlib`, `bz2`, `lz4`.
pub(crate) fn deflate(data: &[u8]) {
    run("codec_deflate", data);
}

/// `crc32c`, `adler32`, `fletcher32`.
pub(crate) fn checksum(data: &[u8]) {
    run("codec_checksum", data);
}

/// `transpose`.
pub(crate) fn transpose(data: &[u8]) {
    run("codec_transpose", data);
}

/// `sharding_indexed`.
pub(crate) fn shard(data: &[u8]) {
    run("codec_shard", data);
}

/// `vlen-utf8`, `vlen-bytes`, `chunkyard.offsets`.
pub(crate) fn text(data: &[u8]) {
    run("codec_text", data);
}

/// `pcodec`.
pub(crate) fn pcodec(data: &[u8]) {
    run("codec_pcodec", data);
}

/// `chunkyard.label_block`.
pub(crate) fn label_block(data: &[u8]) {
    run("codec_label_block", data);
}

/// `compressed_segmentation`.
pub(crate) fn segmentation(data: &[u8]) {
    run("codec_segmentation", data);
}

/// Pictures.
pub(crate) fn picture(data: &[u8]) {
    run("codec_picture", data);
}

/// A case with its codecs bound.
struct Bound {
    case: Case,
    spec: ArraySpec,
    codecs: Codecs,
}

fn run(target: &str, data: &[u8]) {
    static BOUND: OnceLock<Vec<Bound>> = OnceLock::new();
    let all = BOUND.get_or_init(|| cases().into_iter().map(bind).collect());
    let own: Vec<&Bound> = all.iter().filter(|bound| bound.case.target == target).collect();
    let Some((&choice, chunk)) = data.split_first() else { return };
    let bound = own[usize::from(choice) % own.len()];
    check(bound, &bound.case.seal.close(chunk));
}

fn bind(case: Case) -> Bound {
    let spec = case.spec();
    Bound { codecs: Codecs::new(&spec).expect("a known chain"), case, spec }
}

fn check(bound: &Bound, encoded: &[u8]) {
    let codecs = &bound.codecs;
    let decoded = codecs.decode(encoded);
    if codecs.chunk_bytes().is_some() {
        same_by_all_ways(bound, encoded, decoded.as_ref().ok());
    }
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(error) => return is_about_chunk(&error),
    };
    let encoded = codecs.encode(decoded.as_ref()).expect("decoded bytes can be encoded");
    let again = codecs.decode(&encoded).expect("encoded bytes can be decoded");
    assert_eq!(again, decoded, "{:?}", bound.case);
}

/// Whole, into a buffer, and the middle of it through a view: all succeed or fail alike, except
/// that a view may skip parts that it does not want.
fn same_by_all_ways(bound: &Bound, encoded: &[u8], decoded: Option<&ElementsBuf>) {
    let (codecs, shape) = (&bound.codecs, bound.codecs.chunk_shape());
    let size = codecs.item_size().expect("types of fixed size");
    let mut into = vec![0; codecs.chunk_bytes().expect("types of fixed size")];
    let whole = codecs.decode_into(encoded, &mut into);
    assert_eq!(whole.is_ok(), decoded.is_some(), "{:?} {whole:?}", bound.case);
    if let Some(decoded) = decoded {
        assert_eq!(decoded.as_ref(), Elements::Fixed(&into), "{:?}", bound.case);
    }
    let (origin, extent): (Vec<_>, Vec<_>) =
        shape.iter().map(|&n| (u64::from(n > 2), if n > 2 { n - 2 } else { n })).unzip();
    let middle = Region::new(origin, extent).expect("within the chunk");
    let memory = vec![0u8; middle.num_bytes(size).expect("a small chunk")];
    let mut output = Output::new(memory, middle.shape(), size).expect("memory of that size");
    let grid = bound.spec.grid().expect("a regular grid");
    let mut views = output.views(&grid, &middle).expect("within the array");
    let (_, mut view) = views.next().expect("one chunk");
    let viewed = codecs.decode_view(encoded, &mut view);
    drop((view, views));
    match (viewed, decoded) {
        (Ok(()), Some(decoded)) => {
            let part = decoded.as_ref().gather(shape, &middle).expect("within the chunk");
            let found = output.into_memory().expect("no view is left");
            assert_eq!(part, ElementsBuf::Fixed(found), "{:?}", bound.case);
        }
        (Ok(()), None) => {}
        (Err(error), decoded) => {
            assert!(decoded.is_none(), "{:?}: only a view fails: {error}", bound.case);
            is_about_chunk(&error);
        }
    }
}
