//! BLZ as a source and as a target of conversions.

mod link;
mod shapes;
mod single;
// Helpers of the tests of the format itself.
#[expect(dead_code, reason = "conversions need a part of it")]
#[path = "../../../../format/tests/superchunk/support.rs"]
mod support;

use std::sync::Arc;

use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::superchunk::{BlzSource, Style};
use chunkyard_engine::format::{OpenOptions, Place, Source};
use chunkyard_engine::pipeline::{Movement, Wishes};
use chunkyard_engine::store::Store;
use futures::TryStreamExt;

use crate::convert::crash::Work;
use crate::convert::formats::{Entry, named, sinks};
use crate::convert::sample::Sample;
use crate::convert::support::{PATH, Yard, convert, opened, options, read, read_back};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/superchunk");

fn wishes(codec: &str) -> Wishes {
    Wishes { codec: Some(codec.to_owned()), shards: Some(None), ..Wishes::default() }
}

/// The matrix has names that end in `blz`.
#[tokio::test]
async fn arrays_become_directories_of_bcolz_and_go_on() {
    for yard in Yard::both() {
        for (label, chunks) in [("rows", [4, 11, 7]), ("boxes", [4, 4, 3])] {
            let sample = Sample::new(&[13, 11, 7], &chunks, "int32");
            let source = named("zarr3").write(&yard, label, &sample).await;
            for (number, codec) in ["zstd:1", "blosc:lz4:5", "none"].into_iter().enumerate() {
                let target = format!("{label}-{number}.bcolz");
                convert(&source, &yard.at(&target), "blz", &wishes(codec)).await;
                assert!(read_back(&yard, &target).await == sample.array, "{target} differs");
                let bcolz = opened(&yard.at(&target)).await;
                for to in sinks() {
                    let on = to.called(&format!("{target}-{to:?}"));
                    convert(&bcolz, &yard.at(&on), to.format, &to.fitting(&sample)).await;
                    assert!(read_back(&yard, &on).await == sample.array, "{on} differs");
                }
                let again = format!("{target}-again.blz");
                let done = convert(&bcolz, &yard.at(&again), "blz", &Wishes::default()).await;
                assert_eq!(done.movement(), Movement::Copy, "{again}");
            }
        }
    }
}

#[tokio::test]
async fn chunks_that_are_not_stored_become_chunks_of_the_fill_value() {
    for yard in Yard::both() {
        let sample = Sample::new(&[43, 5], &[4, 5], "int32").sparse(|index| index[0] % 3 == 1);
        let source = named("zarr3").write(&yard, "source", &sample).await;
        let wishes = Wishes { shards: Some(Some(vec![12, 5])), ..wishes("blosc:lz4:5") };
        convert(&source, &yard.at("x.blz"), "blz", &wishes).await;
        assert!(read_back(&yard, "x.blz").await == sample.array);
        let files = yard.store("x.blz/data/group/t").list_dir("").await.unwrap().objects;
        // Ten full chunks, three to a file, and the rows behind them.
        assert_eq!(files.len(), 5, "{files:?}");
    }
}

#[tokio::test]
async fn directories_of_bcolz_and_blz_become_superchunks_without_being_decoded() {
    let mut seen = 0;
    for family in ["bcolz", "blz"] {
        let Ok(found) = std::fs::read_dir(format!("{GOLDEN}/{family}")) else { continue };
        for entry in found.map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
            let yard = Yard::memory();
            let url = entry.path().to_str().unwrap().to_owned();
            let source = opened(&url).await;
            let done = convert(&source, &yard.at("x.blz"), "blz", &Wishes::default()).await;
            let target = opened(&yard.at("x.blz")).await;
            for (path, _) in source.dataset().arrays() {
                assert!(read(&source, path).await == read(&target, path).await, "{url}{path}");
            }
            for array in &done.plan.arrays {
                assert_eq!(array.movement, Movement::Copy, "{url}: {}", array.why);
                same_chunks(&source, &target, &array.target).await;
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

/// Compares all chunks but the last, byte by byte.
async fn same_chunks(one: &Arc<dyn Source>, other: &Arc<dyn Source>, path: &str) {
    let whole = chunkyard_array::Region::whole(one.dataset().array(path).unwrap().spec.shape());
    let mut all = Vec::new();
    for source in [one, other] {
        let found: Vec<_> = source.chunks(path, &whole).try_collect().await.unwrap();
        let mut bytes = Vec::new();
        for (_, reference) in &found[..found.len().saturating_sub(1)] {
            bytes.extend(source.fetcher().fetch(&[reference]).await.unwrap());
        }
        all.push(bytes);
    }
    assert!(all[0] == all[1], "{path}");
}

#[tokio::test]
async fn a_name_that_ends_in_bcolz_is_what_bcolz_writes() {
    let yard = Yard::directory();
    let sample = Sample::new(&[25, 3], &[4, 3], "float64");
    let source = named("zarr3").write(&yard, "source", &sample).await;
    for (name, style, file) in
        [("x.blz", Style::Superchunk, "data/__1__.bin"), ("x.bcolz", Style::Bcolz, "data/__0.blp")]
    {
        let wishes = Wishes { arrays: vec![PATH.into()], ..wishes("blosc:blosclz:5") };
        convert(&source, &yard.at(name), "blz", &wishes).await;
        let member = if style == Style::Bcolz { "/group/t" } else { "" };
        let place = Place::new(&yard.at(&format!("{name}{member}")), &options()).unwrap();
        let blz = BlzSource::open(&place, &OpenOptions::default()).await.unwrap();
        assert_eq!(blz.blz().unwrap().style(), style);
        let folder = if style == Style::Bcolz { "" } else { "group/t/" };
        let file = file.replace("data/", &format!("data/{folder}"));
        assert!(place.directory().head(&file).await.is_ok(), "{name}: {file}");
    }
}

#[tokio::test]
async fn single_bloscpack_files_are_arrays() {
    let mut shapes = Vec::new();
    for entry in std::fs::read_dir(format!("{GOLDEN}/bloscpack")).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "blp") {
            continue;
        }
        let yard = Yard::memory();
        let source = opened(path.to_str().unwrap()).await;
        convert(&source, &yard.at("x.blz"), "blz", &Wishes::default()).await;
        let target = opened(&yard.at("x.blz")).await;
        assert!(read(&source, "/").await == read(&target, "/").await, "{path:?}");
        shapes.push(source.dataset().array("/").unwrap().spec.data_type_name());
    }
    assert!(shapes.len() > 5, "{shapes:?}");
    assert!(shapes.iter().any(|name| name != "uint8"), "{shapes:?}");
}

/// Replaces the target if told to; gives the error for a target of another kind.
async fn replace(to: &'static Entry, spoil: impl AsyncFn(&Store)) -> String {
    let yard = Yard::directory();
    let store = yard.store("place");
    let mut work = Work::new(&yard, to).await;
    work.run(&store).await.unwrap();
    let refused = work.run(&store).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    work.overwrite = true;
    work.run(&store).await.unwrap();
    assert!(work.is_there(&store, "replaced").await);
    // Nothing is left beside it.
    let found = store.list_dir("").await.unwrap();
    assert_eq!(found.objects.len() + found.dirs.len(), 1, "{found:?}");
    spoil(&store).await;
    work.run(&store).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_target_is_replaced_only_when_told_to() {
    let refused = replace(named("superchunk"), async |store| {
        store.delete(&["target.blz/meta/sizes".to_owned()]).await.unwrap();
    });
    let refused = refused.await;
    assert!(refused.contains("no BLZ"), "{refused}");
    let refused = replace(named("bloscpack"), async |store| {
        store.put("target.blp", vec!["no such file".into()]).await.unwrap();
    });
    let refused = refused.await;
    assert!(refused.contains("no Bloscpack"), "{refused}");
}
