//! Checks that no bytes from outside do harm.
//!
//! Each target feeds bytes to one parser or decoder and asserts more than that it returns: a parsed
//! value is rendered and parsed again as the same, a refusal is about the bytes, and neither takes
//! memory because a length field says so.
//!
//! ```text
//!  fuzz/fuzz_targets/<name>.rs ──┐              libFuzzer invents the bytes         make fuzz
//!                                ├──▶ TARGETS ──▶ parser
//!  tests/main.rs ────────────────┘              seeds and regressions, every time   cargo test
//! ```
//!
//! A target gets past the checksums on purpose: it computes them for its input, or enters below the
//! check. An attacker can compute a CRC-32C too.

#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a promise that does not hold must stop the test or the fuzzer"
)]

mod badger;
mod blosc_buffer;
mod choices;
pub mod codec;
mod columns;
mod container;
mod container_elements;
mod coordinate;
mod dvid;
mod dvid_http;
mod error;
mod hdf5;
mod history;
mod label_block;
mod metadata;
mod mutation_log;
mod npy;
mod numpy;
mod pack;
mod parquet;
mod precomputed;
mod space;
mod state;
mod superchunk;
mod text;

pub use self::parquet::split_pages;

/// A parser or decoder, and the rules that it keeps for any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the fuzz target and of the directory of its seeds.
    pub name: &'static str,
    /// Panics when a rule is broken.
    pub check: fn(&[u8]),
}

/// All targets, in the order in which they are reported.
pub const TARGETS: &[Target] = &[
    target("state", state::check),
    target("history", history::check),
    target("structure", parquet::structure),
    target("manifest", parquet::manifest),
    target("manifest_pages", parquet::manifest_pages),
    target("table", parquet::table),
    target("attributes", parquet::attributes),
    target("collection", parquet::collection),
    target("columns", columns::check),
    target("pack", pack::check),
    target("coordinate", coordinate::check),
    target("array_metadata", metadata::array),
    target("group_metadata", metadata::group),
    target("v2_metadata", metadata::v2),
    target("space", space::check),
    target("region", text::region),
    target("shorthand", text::shorthand),
    target("names", text::names),
    target("npy", npy::check),
    target("hdf5", hdf5::check),
    target("container_footer", container::footer),
    target("container_stats", container::statistics),
    target("container_seal", container::seal),
    target("container_elements", container_elements::elements),
    target("bloscpack_head", superchunk::bloscpack_head),
    target("superchunk_meta", superchunk::meta),
    target("numpy_dtype", numpy::dtype),
    target("codec_bytes", codec::bytes),
    target("codec_zstd", codec::zstd),
    target("codec_blosc", codec::blosc),
    target("blosc_buffer", blosc_buffer::check),
    target("codec_deflate", codec::deflate),
    target("codec_checksum", codec::checksum),
    target("codec_transpose", codec::transpose),
    target("codec_shard", codec::shard),
    target("codec_text", codec::text),
    target("codec_pcodec", codec::pcodec),
    target("codec_label_block", codec::label_block),
    target("codec_segmentation", codec::segmentation),
    target("codec_picture", codec::picture),
    target("label_block", label_block::block),
    target("label_block_half", label_block::downsampled),
    target("label_block_segmentation", label_block::segmentation),
    target("label_block_value", label_block::stored),
    target("mutation_log", mutation_log::check),
    target("dvid_key", dvid::key),
    target("dvid_gob", dvid::gob),
    target("dvid_info", dvid::info),
    target("dvid_index", dvid::index),
    target("badger_manifest", badger::manifest),
    target("badger_table", badger::table),
    target("badger_log_entry", badger::entry),
    target("badger_memtable", badger::memtable),
    target("dvid_blocks", dvid_http::blocks),
    target("dvid_indices", dvid_http::indices),
    target("dvid_lists", dvid_http::lists),
    target("dvid_description", dvid_http::description),
    target("precomputed_info", precomputed::info),
    target("precomputed_minishard", precomputed::minishard),
    target("precomputed_properties", precomputed::properties),
];

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// The target with that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
