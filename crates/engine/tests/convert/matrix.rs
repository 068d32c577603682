//! Every source into every sink by every movement, in memory and on disk.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{Edges, Source};
use chunkyard_engine::open::format_named;
use chunkyard_engine::pipeline::{Movement, Wishes};
use serde_json::json;

use super::formats::{Entry, every_sink, golden, named, sources_by_hand, sources_by_sink};
use super::naive::{Naive, fill_of};
use super::sample::{Sample, dtypes};
use super::support::{Yard, convert_as, only_array, open_array, opened, read, read_back};

/// An array that is converted.
struct Job<'a> {
    source: Arc<dyn Source>,
    /// Where the array is in it.
    path: &'static str,
    /// The array alone, where it can be opened so.
    alone: Option<Arc<dyn Source>>,
    spec: &'a ArraySpec,
    edges: Edges,
    array: &'a Naive,
    /// What to call targets.
    name: String,
}

/// Wishes that make an array with chunks of `chunks` move this way into a format that can.
fn wishes(to: &Entry, movement: Movement, spec: &ArraySpec) -> Wishes {
    let (shape, chunks) = (spec.shape(), spec.chunk_shape().unwrap());
    match movement {
        Movement::Copy => to.near(shape, chunks),
        // Only label blocks are rewritten: `rewrite.rs` has them.
        Movement::Rewrite | Movement::Transcode => {
            Wishes { codec: Some("blosc:lz4:5+crc32c".into()), ..to.near(shape, chunks) }
        }
        Movement::Regrid => {
            let others: Vec<u64> = chunks.iter().map(|extent| extent * 2 / 3 + 1).collect();
            to.near(shape, &others)
        }
    }
}

impl Job<'_> {
    /// Converts into a format by each of these movements.
    async fn go(&self, yard: &Yard, to: &Entry, movements: &[Movement]) {
        let single = to.facts().single;
        let source = if single { self.alone.as_ref() } else { Some(&self.source) };
        // A file of one array lies in a directory, and takes no group.
        let taken = source.filter(|_| !single || yard.is_directory());
        for &movement in movements {
            let target = to.called(&format!("{}-{to:?}-{movement}", self.name));
            let source = taken.unwrap_or(&self.source);
            let chunks = self.spec.chunk_shape().unwrap();
            let arrays = match taken {
                Some(_) if single => Vec::new(),
                _ => vec![self.path.to_owned()],
            };
            let wishes = Wishes { arrays, ..wishes(to, movement, self.spec) };
            let done = convert_as(source, &yard.at(&target), to.format, &wishes, "t").await;
            let holds = (to.holds)(&Sample { spec: self.spec.clone(), array: self.array.clone() });
            if taken.is_none() || !holds {
                let refused = done.expect_err(&target);
                assert_eq!(refused.kind(), ErrorKind::Unsupported, "{target}: {refused:?}");
                assert!(open_array(&yard.at(&target)).await.is_none(), "{target} is there");
                continue;
            }
            let done = done.unwrap_or_else(|error| panic!("{target}: {error:#?}"));
            // An array of one element per chunk has no other grid to go to, and clipped chunks are never copied.
            let same_grid = wishes.chunks.as_deref() == Some(chunks);
            let moves = self.edges == Edges::Padded && (!same_grid || movement != Movement::Regrid);
            if to.is_exact() && moves {
                assert_eq!(done.movement(), movement, "{target}");
            }
            assert_eq!(done.outcome.bytes, done.plan.bytes(), "{target}");
            assert!(read_back(yard, &target).await == *self.array, "{target} differs");
            self.says_the_same(&opened(&yard.at(&target)).await, to, &target);
        }
    }

    /// Attributes and names of dimensions arrive in every format, and the fill value where it is kept.
    fn says_the_same(&self, target: &Arc<dyn Source>, to: &Entry, name: &str) {
        let found = &target.dataset().array(&only_array(target)).unwrap().spec;
        assert_eq!(found.plain_attributes(), self.spec.plain_attributes(), "{name}");
        assert_eq!(found.dimension_names(), self.spec.dimension_names(), "{name}");
        if to.facts().keeps_fill {
            assert_eq!(fill_of(found), fill_of(self.spec), "{name}");
        }
    }
}

/// Converts a sample from formats into every format.
async fn all_ways(
    yard: &Yard,
    sample: &Sample,
    label: &str,
    from: impl Iterator<Item = &'static Entry>,
    movements: &[Movement],
) {
    for from in from.filter(|from| (from.holds)(sample)) {
        if from.sink.is_some_and(|sink| sink.single) && !yard.is_directory() {
            continue;
        }
        let name = format!("{label}-{from:?}");
        let source = from.write(yard, &name, sample).await;
        let url = yard.at(&from.called(&name));
        let alone = match from.path() {
            "/" => Some(source.clone()),
            path => open_array(&format!("{url}{path}")).await,
        };
        // What the source says of it, so that types with two names have the one of the source.
        let node = source.dataset().array(from.path()).unwrap().clone();
        let (path, array) = (from.path(), &sample.array);
        let job = Job { source, path, alone, spec: &node.spec, edges: node.edges, array, name };
        for to in every_sink() {
            job.go(yard, to, movements).await;
        }
    }
}

const ALL: [Movement; 3] = [Movement::Copy, Movement::Transcode, Movement::Regrid];

#[tokio::test]
async fn every_source_goes_into_every_sink_by_every_movement() {
    let spec = ArraySpec::builder(&[13, 11, 7], &[4, 4, 3], "int32")
        .attributes(json!({"units": "K", "list": [1, 2.5]}).as_object().unwrap().clone())
        .dimension_names(["z", "y", "x"])
        .fill_value(7);
    let sample = Sample::of(spec.build().unwrap()).sparse(|index| index != [1, 1, 1]);
    for yard in Yard::both() {
        all_ways(&yard, &sample, "t", sources_by_hand().chain(sources_by_sink()), &ALL).await;
    }
}

/// Spaces with and without channels, and labels, which are encoded in another way.
#[tokio::test]
async fn volumes_go_all_ways() {
    let shapes: [(&[u64], &[u64], &[&str]); 3] = [
        (&[13, 11, 7], &[4, 4, 3], &["z", "y", "x"]),
        (&[9, 5, 17], &[9, 8, 8], &["x", "z", "y"]),
        (&[2, 6, 7, 9], &[2, 4, 4, 4], &["c", "z", "y", "x"]),
    ];
    let types = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "uint64", "float32"];
    for (number, dtype) in types.into_iter().enumerate() {
        let (shape, chunks, names) = shapes[number % shapes.len()];
        let spec = ArraySpec::builder(shape, chunks, dtype)
            .attributes(json!({"units": "K"}).as_object().unwrap().clone())
            .dimension_names(names.iter().copied());
        let sample =
            Sample::of(spec.build().unwrap()).sparse(|index| index.iter().any(|at| *at != 1));
        let volumes = ["zarr3", "precomputed", "precomputed-shards"].into_iter().map(named);
        all_ways(&Yard::memory(), &sample, dtype, volumes, &[Movement::Copy, Movement::Regrid])
            .await;
    }
}

#[tokio::test]
async fn every_file_of_another_program_goes_into_every_sink() {
    for yard in Yard::both() {
        for (from, source, path) in golden().await {
            let array = read(&source, path).await;
            let node = source.dataset().array(path).unwrap().clone();
            let (name, spec, edges) = (format!("{from:?}"), &node.spec, node.edges);
            let job = Job { source, path, alone: None, spec, edges, array: &array, name };
            for to in every_sink() {
                job.go(&yard, to, &ALL).await;
            }
            assert!(format_named(from.format).is_ok(), "{from:?}");
        }
    }
}

#[tokio::test]
async fn odd_shapes_go_all_ways() {
    for (label, shape, chunks) in [
        ("0d", &[][..], &[][..]),
        ("prime", &[101], &[7]),
        ("primes", &[31, 37], &[8, 5]),
        ("four", &[5, 3, 7, 2], &[2, 3, 4, 1]),
        ("empty", &[0, 5], &[2, 3]),
        ("nothing", &[0], &[1]),
        ("larger", &[3, 5], &[16, 16]),
        ("single", &[3, 4], &[1, 1]),
        ("exact", &[8, 6], &[4, 3]),
    ] {
        let sample = Sample::new(shape, chunks, "uint16");
        all_ways(&Yard::memory(), &sample, label, sources_by_hand(), &ALL).await;
        all_ways(&Yard::memory(), &sample, label, sources_by_sink(), &[Movement::Regrid]).await;
    }
}

#[tokio::test]
async fn every_data_type_goes_all_ways_or_is_refused() {
    for dtype in dtypes() {
        let label = dtype.get("name").unwrap_or(&dtype).as_str().unwrap().to_owned();
        let sample = Sample::new(&[7, 11], &[3, 4], dtype);
        all_ways(&Yard::memory(), &sample, &label, sources_by_hand(), &ALL).await;
        all_ways(&Yard::memory(), &sample, &label, sources_by_sink(), &[Movement::Regrid]).await;
    }
}
