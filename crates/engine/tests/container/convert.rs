//! Containers as sources and as targets of conversions.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_engine::format::{CreateOptions, Dataset, Node, OpenOptions, Place, Source};
use chunkyard_engine::open::format_named;
use chunkyard_engine::pipeline::{
    Conversion, Coordinator, Done, Outcome, Plan, Request, RunOptions, Task, Wishes, WorkOptions,
    run, work,
};
use chunkyard_engine::store::fault::{self, Fault, Mode, Refusal, Unsynced};
use chunkyard_engine::store::{Limits, Store};
use chunkyard_engine::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::support::{directory, empty_footer, files, furnished, layer_file, memory};
use crate::convert::sample::{Sample, dtypes};
use crate::convert::support::{
    From, PATH, To, Yard, convert, opened, options, read, read_back, try_convert, zarray,
};

/// Wishes for chunks of a shape, packed so.
fn wishes(chunks: &[u64], codec: &str) -> Wishes {
    Wishes {
        chunks: Some(chunks.to_vec()),
        codec: Some(codec.to_owned()),
        shards: Some(None),
        ..Wishes::default()
    }
}

/// Other chunks than these.
fn others(chunks: &[u64]) -> Vec<u64> {
    chunks.iter().map(|extent| extent * 2 / 3 + 1).collect()
}

/// From everything into a container and on into everything.
async fn there_and_on(yard: &Yard, sample: &Sample, label: &str) {
    let chunks = sample.spec.chunk_shape().unwrap().to_vec();
    for from in From::ALL {
        if from == From::Zarr2 && zarray(sample).is_none() {
            continue;
        }
        let name = format!("{label}-{from:?}");
        let source = from.write(yard, &name, sample).await;
        for (number, (shape, codec)) in
            [(chunks.clone(), "zstd:1"), (others(&chunks), "blosc:lz4:5")].into_iter().enumerate()
        {
            let target = format!("{name}-{number}.af");
            convert(&source, &yard.at(&target), "container", &wishes(&shape, codec)).await;
            assert!(read_back(yard, &target).await == sample.array, "{target} differs");
            if from != From::Zarr3 {
                continue;
            }
            let container = opened(&yard.at(&target)).await;
            for to in To::ALL {
                for (number, shape) in [chunks.clone(), others(&chunks)].into_iter().enumerate() {
                    let on = format!("{target}-{to:?}-{number}");
                    convert(&container, &yard.at(&on), to.format(), &to.wishes(&shape)).await;
                    assert!(read_back(yard, &on).await == sample.array, "{on} differs");
                }
            }
            let again = format!("{name}-{number}-again.af");
            convert(&container, &yard.at(&again), "container", &Wishes::default()).await;
            assert!(read_back(yard, &again).await == sample.array, "{again} differs");
        }
    }
}

#[tokio::test]
async fn everything_goes_into_a_container_and_on() {
    for yard in Yard::both() {
        there_and_on(&yard, &Sample::new(&[13, 11, 7], &[4, 4, 3], "int32"), "t").await;
    }
}

#[tokio::test]
async fn odd_shapes_go_into_a_container_and_on() {
    for (label, shape, chunks) in [
        ("0d", &[][..], &[][..]),
        ("prime", &[101], &[7]),
        ("four", &[5, 3, 7, 2], &[2, 3, 4, 1]),
        ("empty", &[0, 5], &[2, 3]),
        ("nothing", &[0], &[1]),
        ("larger", &[3, 5], &[16, 16]),
        ("single", &[3, 4], &[1, 1]),
    ] {
        there_and_on(&Yard::memory(), &Sample::new(shape, chunks, "uint16"), label).await;
    }
}

#[tokio::test]
async fn every_data_type_goes_into_a_container_and_on_or_is_refused() {
    let mut refused = Vec::new();
    for dtype in dtypes() {
        let label = dtype.get("name").unwrap_or(&dtype).as_str().unwrap().to_owned();
        let yard = Yard::memory();
        let sample = Sample::new(&[7, 11], &[3, 4], dtype).sparse(|index| index != [1, 1]);
        let source = From::Zarr3.write(&yard, "source", &sample).await;
        match try_convert(&source, &yard.at("x.af"), "container", &Wishes::default()).await {
            Ok(_) => there_and_on(&yard, &sample, &label).await,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{label}: {error:?}");
                assert!(yard.store("").list_dir("").await.unwrap().objects.is_empty(), "{label}");
                refused.push(label);
            }
        }
    }
    // Those of numbers, strings and bytes, that a container has a type for.
    for kept in ["bool", "int8", "int64", "uint64", "float32", "float64", "string", "bytes"] {
        assert!(!refused.iter().any(|label| label == kept), "{refused:?}");
    }
}

/// A hierarchy with groups that say something, groups that do not, and arrays at several depths.
async fn hierarchy(store: &Store) {
    let document = |value: Value| -> Attributes { value.as_object().unwrap().clone() };
    let group = |value: Value| GroupSpec::new(document(value)).render();
    let array = |value: Value| {
        let names = [Some("y".to_owned()), None];
        let spec = ArraySpec::builder(&[3, 5], &[2, 2], "float32").attributes(document(value));
        spec.build().unwrap().with_dimension_names(Some(&names)).unwrap().render()
    };
    for (path, document) in [
        ("zarr.json", group(json!({"title": "ä", "list": [1, 2.5, null], "nested": {"a": []}}))),
        ("g/zarr.json", group(json!({}))),
        ("g/empty/zarr.json", group(json!({}))),
        ("g/said/zarr.json", group(json!({"n": -3, "big": 18446744073709551615_u64}))),
        ("g/a/zarr.json", array(json!({"units": "K", "scale": 0.1, "flag": true}))),
        ("g/h/i/zarr.json", array(json!({}))),
        ("g/h/zarr.json", group(json!({}))),
    ] {
        store.put(path, vec![document.into()]).await.unwrap();
    }
}

fn said(node: &Node) -> &Attributes {
    match node {
        Node::Group(group) => group.attributes(),
        Node::Array(array) => array.spec.attributes(),
    }
}

#[tokio::test]
async fn a_hierarchy_comes_back_as_it_was() {
    for yard in Yard::both() {
        hierarchy(&yard.store("source")).await;
        let source = opened(&yard.at("source")).await;
        convert(&source, &yard.at("x.af"), "container", &Wishes::default()).await;
        let container = opened(&yard.at("x.af")).await;
        convert(&container, &yard.at("back"), "zarr3", &Wishes::default()).await;
        let back = opened(&yard.at("back")).await;
        for found in [&container, &back] {
            let (expected, found) = (source.dataset(), found.dataset());
            let paths =
                |dataset: &Dataset| -> Vec<String> { dataset.nodes.keys().cloned().collect() };
            assert_eq!(paths(found), paths(expected));
            for (path, node) in &expected.nodes {
                assert_eq!(said(&found.nodes[path]), said(node), "{path}");
            }
            for (path, array) in expected.arrays() {
                let spec = &found.array(path).unwrap().spec;
                assert_eq!(spec.shape(), array.spec.shape());
                assert_eq!(spec.dimension_names(), array.spec.dimension_names(), "{path}");
            }
        }
    }
}

/// A conversion into a container, of several packs.
struct Work {
    source: Arc<dyn Source>,
    sample: Sample,
    overwrite: bool,
}

const TARGET: &str = "x.af";

impl Work {
    async fn new() -> Self {
        let spec = ArraySpec::builder(&[5, 5], &[2, 2], "int32").build().unwrap();
        let sample = Sample::of(spec).sparse(|index| (index[0] + index[1]) % 2 == 0);
        let source = From::Shards.write(&Yard::memory(), "source", &sample).await;
        Self { source, sample, overwrite: false }
    }

    async fn run(&self, store: &Store) -> Result<Outcome> {
        let format = format_named("container")?;
        let wishes = Wishes { pack_bytes: Some(1), ..wishes(&[2, 1], "zstd:1") };
        let plan = Plan::new(&*self.source, &wishes, format, "")?;
        let place = Place::within(store.clone(), TARGET)?;
        let options = CreateOptions {
            plan: plan.name.clone(),
            overwrite: self.overwrite,
            ..CreateOptions::default()
        };
        let sink = format.create(&place, plan.dataset.clone(), options).await?;
        // One pack at a time, so that the same number is the same operation.
        let limits = Limits { packs_in_flight: 1, ..Limits::default() };
        run(&self.source, sink, &plan, &RunOptions { limits, ..RunOptions::default() }).await
    }

    /// Whether the target is there; if it looks so, it is complete.
    async fn is_there(&self, store: &Store, what: &str) -> bool {
        let place = Place::within(store.clone(), TARGET).unwrap();
        let format = format_named("container").unwrap();
        match format.open(&place, &OpenOptions::default()).await {
            Ok(source) if source.dataset().array(PATH).is_err() => false,
            Ok(source) => {
                assert!(read(&source, PATH).await == self.sample.array, "{what}: not complete");
                true
            }
            Err(Error::NotFound { .. }) => false,
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// After whatever happened: not there or complete, and the next attempt finishes.
    async fn goes_on(&self, store: &Store, what: &str) {
        let complete = self.is_there(store, what).await;
        match self.run(store).await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. }) if complete => {}
            Err(error) => panic!("{what}: {error:?}"),
        }
        assert!(self.is_there(store, what).await, "{what}");
        let left: Vec<_> = files(store).await.into_iter().filter(|n| n.starts_with('x')).collect();
        if complete {
            // Killed between the container and what only other programs read.
            assert!(left.starts_with(&[TARGET.to_owned()]) && left.len() <= 2, "{what}: {left:?}");
        } else {
            assert_eq!(left, [TARGET, "x.stats"], "{what}");
        }
        let dirs = store.list_dir("").await.unwrap().dirs;
        assert!(dirs.is_empty(), "{what}: {dirs:?}");
    }
}

const DEATHS: [(Mode, Unsynced); 6] = [
    (Mode::Die, Unsynced::Kept),
    (Mode::Die, Unsynced::Reverted),
    (Mode::DieAfter, Unsynced::Kept),
    (Mode::DieAfter, Unsynced::Emptied),
    (Mode::Tear, Unsynced::Kept),
    (Mode::Tear, Unsynced::Emptied),
];

async fn interrupt_everywhere(local: bool, deaths: &[(Mode, Unsynced)]) {
    let work = Work::new().await;
    for &(mode, unsynced) in deaths {
        for n in 0.. {
            let (_temp, here) = directory();
            let store = if local { here } else { memory() };
            let plan = fault::Plan::new(n, mode).with_power_cut(unsynced);
            let (faulty, fault) = Fault::wrap(&store, plan);
            let outcome = work.run(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{plan:?}: {outcome:?} {:#?}", fault.log());
            assert!(outcome.is_ok() <= work.is_there(&store, &what).await, "{what}");
            work.goes_on(&store, &what).await;
            if !fault.fired() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn every_operation_of_a_conversion_can_be_the_last() {
    interrupt_everywhere(true, &DEATHS).await;
}

#[tokio::test]
async fn every_operation_of_a_conversion_can_be_the_last_on_an_object_store() {
    interrupt_everywhere(false, &[DEATHS[0], DEATHS[2]]).await;
}

#[tokio::test]
async fn a_refusal_at_any_operation_of_a_conversion_is_no_loss() {
    let work = Work::new().await;
    for refusal in [Refusal::NoSpace, Refusal::ReadOnly] {
        for n in 0.. {
            let (_temp, store) = directory();
            let plan = fault::Plan::new(n, Mode::Refuse(refusal));
            let (faulty, fault) = Fault::wrap(&store, plan);
            let outcome = work.run(&faulty).await;
            let what = format!("{plan:?}: {outcome:?} {:#?}", fault.log());
            if let Err(error) = &outcome {
                assert_eq!(error.kind(), ErrorKind::Store, "{what}");
            }
            work.goes_on(&store, &what).await;
            if !fault.fired() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn packs_that_were_recorded_are_not_moved_again() {
    let work = Work::new().await;
    let (_temp, store) = directory();
    let (counted, fault) = Fault::wrap(&store, fault::Plan::never());
    work.run(&counted).await.unwrap();
    let recorded = |op: &String| op.starts_with("put") && op.contains("/journal/0");
    let last = fault.log().iter().rposition(recorded).unwrap();
    let (_temp, store) = directory();
    let (faulty, _) = Fault::wrap(&store, fault::Plan::new(last + 2, Mode::Die));
    work.run(&faulty).await.unwrap_err();
    let outcome = work.run(&store).await.unwrap();
    assert_eq!(outcome.resumed, outcome.packs);
    assert!(work.is_there(&store, "resumed").await);
}

/// What is replaced is the old one, layers and all, until it is the new one.
#[tokio::test]
async fn every_operation_of_replacing_a_container_can_be_the_last() {
    let work = Work { overwrite: true, ..Work::new().await };
    for foreign in [false, true] {
        for mode in [Mode::Die, Mode::DieAfter] {
            for n in 0.. {
                let (_temp, store) = directory();
                furnished(&store).await;
                if foreign {
                    // A layer of another program, which does not say which container it belongs to.
                    let layer = layer_file(&[], &empty_footer(9, TARGET));
                    store.put("x.9.af", vec![layer]).await.unwrap();
                }
                let (faulty, fault) = Fault::wrap(&store, fault::Plan::new(n, mode));
                let outcome = work.run(&faulty).await;
                let what = format!("{mode:?} {n} {foreign}: {outcome:?} {:#?}", fault.log());
                let container = super::support::open(&store).await;
                let names = container.names().await.unwrap();
                match names.len() {
                    1 => assert_eq!(names, [PATH.trim_start_matches('/')], "{what}"),
                    _ => assert_eq!(names, ["a/b", "c", "text"], "{what}"),
                }
                let layers = container.layers().await.unwrap().len();
                let expected = if names.len() == 1 { 1 } else { 3 + usize::from(foreign) };
                assert_eq!(layers, expected, "{what}");
                work.goes_on(&store, &what).await;
                if !fault.fired() {
                    break;
                }
            }
        }
    }
}

/// Whoever still has the old container open cannot write into the new one, and is told so.
#[tokio::test]
async fn a_writer_of_a_container_that_was_replaced_gets_a_conflict() {
    let (_temp, store) = directory();
    let old = furnished(&store).await;
    old.define(super::support::definition("late", &[1], &[1])).await.unwrap();
    let work = Work { overwrite: true, ..Work::new().await };
    work.run(&store).await.unwrap();
    for _ in 0..2 {
        let error = old.flush().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let error = old.refresh().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    assert!(work.is_there(&store, "after").await);
    assert_eq!(files(&store).await, [TARGET, "x.stats"]);
}

#[tokio::test]
async fn a_conversion_does_not_replace_a_container_unless_it_is_told_to() {
    for store in [memory(), directory().1] {
        let work = Work::new().await;
        work.run(&store).await.unwrap();
        let error = work.run(&store).await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        assert!(work.is_there(&store, "once").await);
    }
}

/// A container with layers, deleted arrays and strings is converted as it is read.
#[tokio::test]
async fn a_container_with_layers_is_a_source() {
    let (temp, store) = directory();
    let container = furnished(&store).await;
    container.delete("c").await.unwrap();
    container.flush().await.unwrap();
    let url = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let source = opened(&url(TARGET)).await;
    convert(&source, &url("y.zarr"), "zarr3", &Wishes::default()).await;
    convert(&opened(&url("y.zarr")).await, &url("z.af"), "container", &Wishes::default()).await;
    let back = Place::within(store.clone(), "z.af").unwrap();
    let back = Container::open(&back, ContainerOptions::default()).await.unwrap();
    let expected = super::support::contents(&container).await.unwrap();
    assert_eq!(super::support::contents(&back).await.unwrap(), expected);
    for name in ["a/b", "text"] {
        let stats = back.statistics(name).await.unwrap().unwrap();
        let expected = container.statistics(name).await.unwrap().unwrap();
        assert_eq!((&stats.min, &stats.max), (&expected.min, &expected.max), "{name}");
    }
    // What came by a conversion is a container like any other.
    back.set_attribute("text", "k", super::defects::text("v")).await.unwrap();
    back.flush().await.unwrap();
    back.compact(&CompactOptions::default()).await.unwrap();
}

/// Does a task as another process would, which knows nothing but what it is sent.
async fn elsewhere(task: &Task) -> Result<Done> {
    let sent: Task = serde_json::from_slice(&serde_json::to_vec(task).unwrap()).unwrap();
    let done = work(&sent, &WorkOptions { store: options(), ..WorkOptions::default() }).await?;
    Ok(serde_json::from_slice(&serde_json::to_vec(&done).unwrap()).unwrap())
}

#[tokio::test]
async fn many_workers_make_one_container() {
    for yard in Yard::both() {
        let sample = Sample::new(&[23, 13], &[4, 3], "int32").sparse(|index| index[0] != 2);
        From::Zarr3.write(&yard, "source", &sample).await;
        let open = OpenOptions { store: options(), ..OpenOptions::default() };
        let to = Some("container".to_owned());
        let wishes = Wishes { pack_bytes: Some(1), ..wishes(&[3, 2], "zstd:1") };
        let (source, target) = (yard.at("source"), yard.at(TARGET));
        let request = Request { source, target, open, to, wishes };
        let conversion = Conversion::prepare(request).await.unwrap();
        let run = RunOptions { verify: true, ..RunOptions::default() };
        let mut first =
            Coordinator::begin(&conversion, CreateOptions::default(), run.clone()).await.unwrap();
        let tasks: Vec<Task> = first.tasks(64).collect();
        assert!(tasks.len() > 3, "{}", tasks.len());
        // Done twice at the same time, adopted once; the last is lost with its coordinator.
        let mut adopted = 0;
        for task in &tasks[1..] {
            let (one, two) = futures::future::join(elsewhere(task), elsewhere(task)).await;
            adopted += first.adopt(&two.unwrap()).await.unwrap();
            assert_eq!(first.adopt(&one.unwrap()).await.unwrap(), 0, "adopted twice");
        }
        elsewhere(&tasks[0]).await.unwrap();
        first.pause().await.unwrap();
        drop(first);
        let mut second =
            Coordinator::begin(&conversion, CreateOptions::default(), run).await.unwrap();
        assert_eq!(second.packs().0, adopted);
        for task in second.tasks(64).collect::<Vec<_>>() {
            second.adopt(&elsewhere(&task).await.unwrap()).await.unwrap();
        }
        assert!(yard.store("").head(TARGET).await.is_err(), "visible before the end");
        second.finish().await.unwrap();
        assert!(read_back(&yard, TARGET).await == sample.array);
        yard.holds_only(&["source", TARGET, "x.stats"]);
        let error = elsewhere(&tasks[0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}
