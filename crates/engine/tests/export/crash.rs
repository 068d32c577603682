//! Death at every operation, and a run after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_engine::export::{Emit, Exporter, Plan, Progress, Request};
use chunkyard_engine::format::{MemorySource, Place as At, Source};
use chunkyard_engine::store::fault::{self, Mode, Unsynced};
use chunkyard_engine::store::{Limits, Options, Store, TEMP_PREFIX};
use chunkyard_test_support::{AllPlaces, Place, deaths, repetitions};
use futures::TryStreamExt;
use serde_json::json;

use super::support::spec;

/// Three small blocks, each a shard; one is all 0.
fn source() -> Arc<dyn Source> {
    let label = |n: u64| if n % 160 < 64 { 0 } else { 1 + n % 160 / 32 };
    let voxels: Vec<u8> = (0..5 * 7 * 160).flat_map(|n| label(n).to_le_bytes()).collect();
    let spec = ArraySpec::builder(&[5, 7, 160], &[5, 7, 64], "uint64")
        .fill_value(0)
        .codecs(vec![json!({"name": "bytes", "configuration": {"endian": "little"}})])
        .build()
        .unwrap();
    Arc::new(MemorySource::new("/seg", &spec, voxels.into()).unwrap())
}

fn plan(source: &Arc<dyn Source>, target: &Store) -> Plan {
    let request = Request {
        spec: Some(spec(&[([160, 7, 5], [0; 3], [0, 0, 2])])),
        emit: vec![Emit::Arrow, Emit::Precomputed, Emit::Table],
        ..Request::default()
    };
    let place = At::new("memory://crash-source", &Options::default()).unwrap();
    Plan::of(source, &place, &request, target).unwrap()
}

/// One shard at a time, so that operations come in one order.
async fn run(source: &Arc<dyn Source>, target: &Store) -> chunkyard_engine::Result<()> {
    let limits = Limits { packs_in_flight: 1, ..Limits::default() };
    let exporter =
        Exporter::new(plan(source, target), source.clone(), target.clone(), limits).await?;
    exporter.run(&Progress::default()).await.map(drop)
}

/// All files that a reader looks at. What tells of the run itself differs from run to run.
async fn content(target: &Store) -> BTreeMap<String, Vec<u8>> {
    let metas: Vec<_> = target.list("").await.unwrap().try_collect().await.unwrap();
    let mut all = BTreeMap::new();
    for meta in metas {
        if !matches!(meta.path.as_str(), "export.log.json" | "export.jsonl" | ".export.lock") {
            let bytes = target.get(&meta.path).await.unwrap().bytes.to_vec();
            all.insert(meta.path, bytes);
        }
    }
    all
}

fn fresh(place: Place) -> (Option<tempfile::TempDir>, Store) {
    place.open()
}

#[tokio::test]
async fn a_run_after_death_at_any_operation_writes_the_same_shards() {
    let source = source();
    for place in AllPlaces {
        let (_directory, store) = fresh(place);
        run(&source, &store).await.unwrap();
        let whole = content(&store).await;
        assert!(whole.keys().filter(|path| path.ends_with(".arrow")).count() == 2, "{whole:?}");
        // Only a file system can lose what was not synced.
        let modes = match place {
            Place::Local => deaths(),
            _ => deaths().into_iter().filter(|(_, lost)| *lost == Unsynced::Kept).collect(),
        };
        for (mode, unsynced) in repetitions(modes.clone(), modes[..1].to_vec()) {
            for attempt in
                fault::at_every_operation(fault::Plan::new(0, mode).with_power_cut(unsynced))
            {
                let (_directory, store) = fresh(place);
                let (faulty, fault) = attempt.wrap(&store);
                let outcome = run(&source, &faulty).await;
                if fault.fired() {
                    assert!(outcome.is_err(), "{mode:?} at {}", attempt.at());
                } else {
                    outcome.unwrap();
                }
                // What has its name is whole.
                for (path, bytes) in content(&store).await {
                    if !path.contains(TEMP_PREFIX) && !path.starts_with("export.lines/") {
                        let same = whole.get(&path) == Some(&bytes);
                        assert!(same, "{path} after {mode:?} at {}", attempt.at());
                    }
                }
                run(&source, &store).await.unwrap();
                assert!(content(&store).await == whole, "{mode:?} at {}", attempt.at());
            }
        }
    }
}

#[tokio::test]
async fn a_refused_operation_is_an_error_and_leaves_no_shard_in_part() {
    let source = source();
    let (_directory, store) = fresh(Place::Local);
    run(&source, &store).await.unwrap();
    let whole = content(&store).await;
    for attempt in
        fault::at_every_operation(fault::Plan::new(0, Mode::Refuse(fault::Refusal::NoSpace)))
    {
        let (_directory, store) = fresh(Place::Local);
        let (faulty, fault) = attempt.wrap(&store);
        let outcome = run(&source, &faulty).await;
        assert_eq!(outcome.is_err(), fault.fired(), "at {}", attempt.at());
        for (path, bytes) in content(&store).await {
            if !path.contains(TEMP_PREFIX) && !path.starts_with("export.lines/") {
                assert!(whole.get(&path) == Some(&bytes), "{path} at {}", attempt.at());
            }
        }
        run(&source, &store).await.unwrap();
        assert!(content(&store).await == whole, "at {}", attempt.at());
    }
}
