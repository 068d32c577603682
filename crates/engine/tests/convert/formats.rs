//! The formats that conversions are tested with, in one list: each suite iterates over a part of it.
//!
//! A new format is one more entry of [`FORMATS`]. It then goes into and comes from every other one, is killed
//! at every operation, refused, resumed, done twice at once and done by workers.

use std::fmt;
use std::sync::Arc;

use chunkyard_engine::format::Source;
use chunkyard_engine::open::format_named;
use chunkyard_engine::pipeline::Wishes;
use futures::future::BoxFuture;

use super::by_hand::{write_repo, write_shards, write_zarr2, write_zarr3, zarray};
use super::naive::fill_of;
use super::sample::Sample;
use super::support::{PATH, Yard, convert, opened};

/// A format, or a variant of one that is written in another way.
pub(crate) struct Entry {
    /// What messages call it.
    pub(crate) name: &'static str,
    /// The format as the user types it.
    pub(crate) format: &'static str,
    /// How the name of a dataset ends, to show its format.
    ending: &'static str,
    /// How a sample gets into it before it is converted.
    origin: Origin,
    /// Whether it can express a sample.
    pub(crate) holds: fn(&Sample) -> bool,
    /// How it is written; `None` if it is only read.
    pub(crate) sink: Option<Sink>,
}

/// Where a source comes from.
enum Origin {
    /// Written without any code of the sinks.
    ByHand(for<'a> fn(&'a Yard, &'a str, &'a Sample) -> BoxFuture<'a, ()>),
    /// Written by its own sink, from Zarr v3.
    BySink,
    /// An array of a file that another program wrote, below `testdata`.
    Golden(&'static str, &'static str),
}

/// What a sink can and cannot do.
#[derive(Clone, Copy)]
pub(crate) struct Sink {
    /// The chunks that it takes.
    chunks: Chunks,
    /// Whether codecs and chunks are what the caller wishes, and missing chunks stay missing.
    exact: bool,
    /// Whether it is a file of one array, in a directory, and the array is its root.
    pub(crate) single: bool,
    /// Whether it holds one array, or the levels of one pyramid, in any group.
    volume: bool,
    /// Whether it keeps the fill value.
    pub(crate) keeps_fill: bool,
    /// How the name of a file ends that lies beside it.
    companion: Option<&'static str>,
    /// Whether there is an empty dataset before the first commit.
    pub(crate) begins_empty: bool,
    /// Whether files are made empty where they cannot be deleted in one step.
    pub(crate) empties: bool,
    /// What a conversion that was killed and repeated has in common with one that was not.
    pub(crate) repeats: Repeats,
}

/// The chunks that a sink takes.
#[derive(Clone, Copy)]
enum Chunks {
    Any,
    /// Any, two along each axis to a shard.
    Sharded,
    /// Whole rows.
    Rows,
}

/// What two conversions of the same have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// All files, byte by byte.
    Bytes,
    /// The names of the files, which have identities of their own.
    Names,
    /// The content of a repository.
    Content,
}

const PLAIN: Sink = Sink {
    chunks: Chunks::Any,
    exact: true,
    single: false,
    volume: false,
    keeps_fill: true,
    companion: None,
    begins_empty: false,
    empties: false,
    repeats: Repeats::Bytes,
};

const ROWS: Sink = Sink { chunks: Chunks::Rows, exact: false, empties: true, ..PLAIN };

const VOLUME: Sink = Sink { exact: false, volume: true, ..PLAIN };

pub(crate) static FORMATS: [Entry; 10] = [
    Entry {
        name: "zarr3",
        format: "zarr3",
        ending: "",
        origin: Origin::ByHand(|yard, name, sample| {
            Box::pin(write_zarr3(yard, name, &sample.spec, &sample.array))
        }),
        holds: |_| true,
        sink: Some(PLAIN),
    },
    Entry {
        name: "shards",
        format: "zarr3",
        ending: "",
        origin: Origin::ByHand(|yard, name, sample| Box::pin(write_shards(yard, name, sample))),
        holds: |_| true,
        sink: Some(Sink { chunks: Chunks::Sharded, ..PLAIN }),
    },
    Entry {
        name: "zarr2",
        format: "zarr2",
        ending: "",
        origin: Origin::ByHand(|yard, name, sample| Box::pin(write_zarr2(yard, name, sample))),
        holds: |sample| zarray(sample).is_some(),
        sink: None,
    },
    Entry {
        name: "repo",
        format: "repo",
        ending: "",
        origin: Origin::ByHand(|yard, name, sample| {
            Box::pin(write_repo(yard, name, &sample.spec, &sample.array))
        }),
        holds: |_| true,
        sink: Some(Sink { begins_empty: true, repeats: Repeats::Content, ..PLAIN }),
    },
    Entry {
        name: "container",
        format: "container",
        ending: ".af",
        origin: Origin::BySink,
        holds: |sample| {
            let dtype = sample.spec.dtype().unwrap();
            let integer = dtype.name().trim_start_matches('u').starts_with("int");
            integer || ["bool", "float32", "float64", "string", "bytes"].contains(&dtype.name())
        },
        sink: Some(Sink {
            exact: false,
            companion: Some(".stats"),
            repeats: Repeats::Names,
            ..PLAIN
        }),
    },
    Entry {
        name: "superchunk",
        format: "blz",
        ending: ".blz",
        origin: Origin::BySink,
        holds: is_numpy,
        sink: Some(ROWS),
    },
    Entry {
        name: "bloscpack",
        format: "blz",
        ending: ".blp",
        origin: Origin::BySink,
        holds: |sample| is_numpy(sample) && !sample.spec.shape().contains(&0),
        sink: Some(Sink { single: true, keeps_fill: false, ..ROWS }),
    },
    Entry {
        name: "precomputed",
        format: "precomputed",
        ending: ".precomputed",
        origin: Origin::BySink,
        holds: is_volume,
        sink: Some(VOLUME),
    },
    Entry {
        name: "precomputed-shards",
        format: "precomputed",
        ending: ".precomputed",
        origin: Origin::BySink,
        holds: is_volume,
        sink: Some(Sink { chunks: Chunks::Sharded, ..VOLUME }),
    },
    Entry {
        name: "hdf5",
        format: "hdf5",
        ending: ".h5",
        origin: Origin::Golden("hdf5/netcdf.nc", "/temperature"),
        holds: |_| false,
        sink: None,
    },
];

/// Rows have a fixed size, and the types of NumPy.
fn is_numpy(sample: &Sample) -> bool {
    !["bfloat16", "string", "bytes"].contains(&sample.spec.dtype().unwrap().name())
}

/// Voxels of x, y, z and channels, of which there are some, and which are 0 where none are stored.
fn is_volume(sample: &Sample) -> bool {
    let types = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "float32"];
    let shape = sample.spec.shape();
    types.contains(&sample.spec.dtype().unwrap().name())
        && (1..=4).contains(&shape.len())
        && !shape.contains(&0)
        && fill_of(&sample.spec).iter().all(|byte| *byte == 0)
}

/// The entry of a name.
pub(crate) fn named(name: &str) -> &'static Entry {
    FORMATS.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no format {name}"))
}

/// The sources that are written without any code of the sinks.
pub(crate) fn sources_by_hand() -> impl Iterator<Item = &'static Entry> {
    FORMATS.iter().filter(|entry| matches!(entry.origin, Origin::ByHand(_)))
}

/// The sources that only their own sink writes.
pub(crate) fn sources_by_sink() -> impl Iterator<Item = &'static Entry> {
    FORMATS.iter().filter(|entry| matches!(entry.origin, Origin::BySink))
}

/// The arrays of files of other programs: each with its path.
pub(crate) async fn golden() -> Vec<(&'static Entry, Arc<dyn Source>, &'static str)> {
    let mut all = Vec::new();
    for entry in &FORMATS {
        if let Origin::Golden(file, path) = entry.origin {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
            all.push((entry, opened(&format!("{root}/{file}")).await, path));
        }
    }
    all
}

/// The entries that an array in a group is written to.
pub(crate) fn sinks() -> impl Iterator<Item = &'static Entry> {
    every_sink().filter(|entry| !entry.facts().single)
}

/// The entries that any hierarchy of arrays is written to.
pub(crate) fn sinks_of_hierarchies() -> impl Iterator<Item = &'static Entry> {
    sinks().filter(|entry| !entry.facts().volume)
}

/// The sinks whose files have the same names and bytes, or content, by any number of processes.
pub(crate) fn shared_sinks() -> impl Iterator<Item = &'static Entry> {
    sinks().filter(|entry| entry.is_exact() || entry.facts().volume)
}

/// The entries that are written at all.
pub(crate) fn every_sink() -> impl Iterator<Item = &'static Entry> {
    FORMATS.iter().filter(|entry| entry.sink.is_some())
}

/// The sinks that keep chunks of any shape and any codecs as they are wished for, and leave missing chunks out.
pub(crate) fn exact_sinks() -> impl Iterator<Item = &'static Entry> {
    sinks().filter(|entry| entry.facts().exact)
}

/// The sinks that leave missing chunks out.
pub(crate) fn sparse_sinks() -> impl Iterator<Item = &'static Entry> {
    sinks().filter(|entry| !format_named(entry.format).unwrap().stores_every_chunk())
}

impl Entry {
    /// Writes a sample, and opens it.
    pub(crate) async fn write(&self, yard: &Yard, name: &str, sample: &Sample) -> Arc<dyn Source> {
        match self.origin {
            Origin::ByHand(write) => write(yard, &self.called(name), sample).await,
            Origin::BySink => {
                let plain = format!("{name}-plain");
                write_zarr3(yard, &plain, &sample.spec, &sample.array).await;
                let source = self.input(yard, &plain).await;
                let target = yard.at(&self.called(name));
                convert(&source, &target, self.format, &self.fitting(sample)).await;
            }
            Origin::Golden(file, _) => panic!("{file} is there already"),
        }
        opened(&yard.at(&self.called(name))).await
    }

    /// What its sink takes of a Zarr hierarchy: all of it, or the array alone.
    pub(crate) async fn input(&self, yard: &Yard, name: &str) -> Arc<dyn Source> {
        let array = if self.facts().single { PATH } else { "" };
        opened(&yard.at(&format!("{name}{array}"))).await
    }

    /// Where it keeps the array of a sample.
    pub(crate) fn path(&self) -> &'static str {
        if self.sink.is_some_and(|sink| sink.single) { "/" } else { PATH }
    }

    /// A name that shows its format.
    pub(crate) fn called(&self, name: &str) -> String {
        format!("{name}{}", self.ending)
    }

    /// The files of a target with this name.
    pub(crate) fn files(&self, name: &str) -> Vec<String> {
        let companion = self.facts().companion.map(|ending| format!("{name}{ending}"));
        [self.called(name)].into_iter().chain(companion).collect()
    }

    /// What its sink can do.
    pub(crate) fn facts(&self) -> Sink {
        self.sink.unwrap_or_else(|| panic!("{self:?} is only read"))
    }

    /// Whether codecs and chunks are what the caller wishes.
    pub(crate) fn is_exact(&self) -> bool {
        self.facts().exact
    }

    /// Wishes for chunks of a shape.
    pub(crate) fn wishes(&self, chunks: &[u64]) -> Wishes {
        let shards = match self.facts().chunks {
            Chunks::Sharded => Some(twice(chunks)),
            Chunks::Any | Chunks::Rows => None,
        };
        Wishes { chunks: Some(chunks.to_vec()), shards: Some(shards), ..Wishes::default() }
    }

    /// Wishes for an array of a shape with about such chunks, as far as the format has them.
    pub(crate) fn near(&self, shape: &[u64], chunks: &[u64]) -> Wishes {
        match (self.facts().chunks, chunks) {
            (Chunks::Rows, [rows, ..]) => self.wishes(&[&[*rows], &shape[1..]].concat()),
            _ => self.wishes(chunks),
        }
    }

    /// Wishes for about the chunks that a sample has.
    pub(crate) fn fitting(&self, sample: &Sample) -> Wishes {
        self.near(sample.spec.shape(), sample.spec.chunk_shape().unwrap())
    }

    /// Wishes for an array of a shape with about such chunks, in several packs.
    pub(crate) fn packs(&self, shape: &[u64], chunks: &[u64]) -> Wishes {
        let wishes = match self.facts().chunks {
            Chunks::Rows => Wishes {
                shards: Some(Some([&[2 * chunks[0]], &shape[1..]].concat())),
                codec: Some("blosc:lz4:1".to_owned()),
                ..self.near(shape, chunks)
            },
            Chunks::Any | Chunks::Sharded => self.wishes(chunks),
        };
        Wishes { pack_bytes: Some(1), ..wishes }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(crate) fn twice(shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|extent| extent * 2).collect()
}
