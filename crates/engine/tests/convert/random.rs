//! Any shape, any chunks, any shards, any region: two conversions give the same as indexing.

use chunkyard_array::{ArraySpec, Region, Sharding};
use chunkyard_engine::pipeline::Wishes;
use proptest::prelude::*;
use serde_json::Value;

use super::by_hand::{write_repo, write_zarr3};
use super::formats::{Entry, exact_sinks};
use super::naive::fill_of;
use super::sample::{Sample, dtypes};
use super::support::{PATH, Yard, convert, opened, read, read_back};
use chunkyard_test_support::cases;

/// One axis of an array on its way from A to B to C.
#[derive(Debug, Clone)]
struct Axis {
    extent: u64,
    /// Chunks of A, and how many of them a shard has.
    chunk: u64,
    per_shard: u64,
    /// The part of A that is converted.
    from: u64,
    to: u64,
    next_chunk: u64,
    last_chunk: u64,
}

#[derive(Debug, Clone)]
struct Case {
    axes: Vec<Axis>,
    dtype: Value,
    /// Chunks of A that are missing, by the remainder of the sum of their indices.
    missing: u64,
    in_repo: bool,
    sharded: bool,
    at_start: bool,
    next: &'static Entry,
    last: &'static Entry,
    codec: Option<&'static str>,
}

fn axis() -> impl Strategy<Value = Axis> {
    let extents = (0..12u64, 1..6u64, 1..4u64, 1..9u64, 1..9u64, any::<(u8, u8)>());
    extents.prop_map(|(extent, chunk, per_shard, next_chunk, last_chunk, (a, b))| {
        let (a, b) = (u64::from(a) % (extent + 1), u64::from(b) % (extent + 1));
        Axis { extent, chunk, per_shard, from: a.min(b), to: a.max(b), next_chunk, last_chunk }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let targets = || prop::sample::select(exact_sinks().collect::<Vec<_>>());
    let codecs = [None, Some("none"), Some("zstd:1+crc32c"), Some("blosc:lz4:1:shuffle")];
    let switches = any::<(bool, bool, bool)>();
    let axes = prop::collection::vec(axis(), 0..4);
    let ends = (targets(), targets(), prop::sample::select(codecs.to_vec()));
    (axes, prop::sample::select(dtypes()), 0..4u64, switches, ends).prop_map(
        |(axes, dtype, missing, (in_repo, sharded, at_start), (next, last, codec))| Case {
            axes,
            dtype,
            missing,
            in_repo,
            sharded,
            at_start,
            next,
            last,
            codec,
        },
    )
}

impl Case {
    fn each(&self, of: impl Fn(&Axis) -> u64) -> Vec<u64> {
        self.axes.iter().map(of).collect()
    }

    async fn check(&self) {
        let yard = Yard::memory();
        let spec = ArraySpec::builder(
            &self.each(|axis| axis.extent),
            &self.each(|axis| axis.chunk),
            self.dtype.clone(),
        );
        let sample = Sample::of(spec.build().unwrap())
            .sparse(|index| index.iter().sum::<u64>() % 4 != self.missing);
        let mut spec = sample.spec.clone();
        if self.sharded {
            let mut sharding = Sharding::new(&self.each(|axis| axis.chunk * axis.per_shard));
            sharding.index_at_start = self.at_start;
            spec = spec.sharded(&sharding).unwrap();
        }
        match self.in_repo {
            true => write_repo(&yard, "a", &spec, &sample.array).await,
            false => write_zarr3(&yard, "a", &spec, &sample.array).await,
        }
        let a = opened(&yard.at("a")).await;
        assert!(read(&a, PATH).await == sample.array, "A");

        let spans: Vec<_> = self.axes.iter().map(|a| format!("{}:{}", a.from, a.to)).collect();
        let region = Region::new(self.each(|a| a.from), self.each(|a| a.to - a.from)).unwrap();
        let expected = sample.array.region(&region, &fill_of(&sample.spec));
        let wishes = Wishes {
            region: (!spans.is_empty()).then(|| spans.join(",")),
            codec: self.codec.or(Some("zstd:1")).map(Into::into),
            ..self.next.wishes(&self.each(|axis| axis.next_chunk))
        };
        convert(&a, &yard.at("b"), self.next.format, &wishes).await;
        assert!(read_back(&yard, "b").await == expected, "B");

        let b = opened(&yard.at("b")).await;
        let wishes = self.last.wishes(&self.each(|axis| axis.last_chunk));
        convert(&b, &yard.at("c"), self.last.format, &wishes).await;
        assert!(read_back(&yard, "c").await == expected, "C");
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn a_box_converted_twice_is_the_box(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(case.check());
    }
}
