//! Arrays with room for far more chunks than they store: work costs only the stored ones.
//!
//! Every store dies when it is asked too often, so that work that goes through the whole grid fails
//! instead of running forever.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, Codecs, ElementsBuf, GroupSpec, Region};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source, check};
use chunkyard_engine::open::{format_named, recognise};
use chunkyard_engine::pipeline::{
    Conversion, Coordinator, Outcome, Plan, Request, RunOptions, Wishes, link, run,
};
use chunkyard_engine::repo::Level;
use chunkyard_engine::store::fault::{self, Fault, Mode};
use chunkyard_engine::{ErrorKind, Meter};

use super::formats::{Entry, named, sparse_sinks};
use super::support::{PATH, Yard, opened, options, stored};
use super::workers::elsewhere;

/// 2^40 elements in 2^38 chunks.
const SHAPE: [u64; 2] = [1 << 20, 1 << 20];
const CHUNK: [u64; 2] = [2, 2];
/// The chunks that are stored: neighbours, one alone, the last one.
const STORED: [[u64; 2]; 5] =
    [[0, 0], [0, 1], [5, 77], [1 << 18, 3], [(1 << 19) - 1, (1 << 19) - 1]];
/// How many requests a store takes in one piece of work.
const OPERATIONS_MAX: usize = 1000;

/// The element at a place.
fn element(y: u64, x: u64) -> i32 {
    let at = STORED.iter().position(|chunk| *chunk == [y / CHUNK[0], x / CHUNK[1]]);
    at.map_or(0, |at| (at as i32 + 1) * 100 + (y % 2) as i32 * 10 + (x % 2) as i32)
}

/// The elements of a box.
fn elements(region: &Region) -> Vec<u8> {
    let (origin, end) = (region.origin(), region.end());
    let rows = (origin[0]..end[0]).flat_map(|y| (origin[1]..end[1]).map(move |x| (y, x)));
    rows.flat_map(|(y, x)| element(y, x).to_le_bytes()).collect()
}

/// Writes the array as plain Zarr.
async fn write(yard: &Yard, name: &str) {
    let store = yard.store(name);
    let group = GroupSpec::new(Attributes::new()).render();
    for path in ["zarr.json", "group/zarr.json"] {
        store.put(path, vec![group.clone().into()]).await.unwrap();
    }
    let spec = ArraySpec::builder(&SHAPE, &CHUNK, "int32").build().unwrap();
    store.put("group/t/zarr.json", vec![spec.render().into()]).await.unwrap();
    let (codecs, grid) = (Codecs::new(&spec).unwrap(), spec.grid().unwrap());
    for index in STORED {
        let decoded = ElementsBuf::Fixed(elements(&grid.chunk_region(&index)));
        let encoded = codecs.encode(decoded.as_ref()).unwrap();
        let path = format!("group/t/c/{}/{}", index[0], index[1]);
        store.put(&path, vec![encoded.into()]).await.unwrap();
    }
}

/// A place in a store that dies after too many requests.
fn place(yard: &Yard, name: &str) -> (Place, Arc<Fault>) {
    let often = fault::Plan::new(OPERATIONS_MAX, Mode::Die).with_reads();
    let (store, fault) = Fault::wrap(&yard.store(""), often);
    (Place::within(store, name).unwrap(), fault)
}

async fn source(place: &Place) -> Arc<dyn Source> {
    let options = OpenOptions { store: options(), ..OpenOptions::default() };
    recognise(place).await.unwrap().open(place, &options).await.unwrap()
}

/// Converts and reads back, in stores that die after too many requests.
async fn convert(
    yard: &Yard,
    from: &str,
    name: &str,
    to: &'static Entry,
    chunks: &[u64],
) -> Outcome {
    let ((from, _), (target, _)) = (place(yard, from), place(yard, name));
    let source = source(&from).await;
    let format = format_named(to.format).unwrap();
    let plan = Plan::new(&source, &to.wishes(chunks), format, "").await.unwrap();
    let create = CreateOptions { plan: plan.name.clone(), ..CreateOptions::default() };
    let sink = format.create(&target, plan.dataset.clone(), create).await.unwrap();
    let meter = Arc::<Meter>::default();
    let how = RunOptions { verify: true, meter: meter.clone(), ..RunOptions::default() };
    let done = run(&source, sink, &plan, &how).await;
    let done = done.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(meter.packs(), (2 * done.packs, 2 * done.packs), "{name}");
    assert_eq!(meter.done(), meter.total(), "{name}");
    done
}

/// Fails if the array is not as it was written, around all its stored chunks.
async fn is_whole(source: &Arc<dyn Source>, what: &str) {
    let reader = Reader::new(source, PATH).unwrap();
    let everything = Region::whole(&SHAPE);
    for [y, x] in STORED {
        let origin = [(2 * y).saturating_sub(9), (2 * x).saturating_sub(9)];
        let near = Region::new(origin, [20, 20]).unwrap().intersect(&everything).unwrap();
        let found = reader.read_region(&near).await.unwrap();
        assert!(found.to_vec() == elements(&near), "{what}: {near}");
    }
}

#[tokio::test]
async fn a_conversion_visits_only_stored_chunks_in_any_format() {
    let yard = Yard::memory();
    write(&yard, "plain").await;
    for from in sparse_sinks() {
        let source_name = from.called(&format!("source-{from:?}"));
        let done = convert(&yard, "plain", &source_name, from, &CHUNK).await;
        assert_eq!(done.chunks, 5, "{from:?}");
        for to in sparse_sinks() {
            for (number, chunks) in [CHUNK, [3, 5]].iter().enumerate() {
                let name = to.called(&format!("{from:?}-{to:?}-{number}"));
                let done = convert(&yard, &source_name, &name, to, chunks).await;
                assert!(done.packs <= 8, "{name}: {} packs", done.packs);
                let target = opened(&yard.at(&name)).await;
                is_whole(&target, &name).await;
                let kept = stored(&target, PATH).await;
                assert_eq!(kept.len() as u64, done.chunks, "{name}");
                if *chunks == CHUNK {
                    assert_eq!(kept, STORED.map(|index| index.to_vec()), "{name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_region_and_a_cast_of_it_visit_only_stored_chunks() {
    let yard = Yard::memory();
    write(&yard, "plain").await;
    let ((from, _), (target, _)) = (place(&yard, "plain"), place(&yard, "target"));
    let source = source(&from).await;
    let region = Some(format!("3:{},1:{}", SHAPE[0] - 1, SHAPE[1]));
    let wishes = Wishes { region, dtype: Some("int64".into()), ..Wishes::default() };
    let format = format_named("zarr3").unwrap();
    let plan = Plan::new(&source, &wishes, format, "").await.unwrap();
    let sink = format.create(&target, plan.dataset.clone(), CreateOptions::default());
    let how = RunOptions { verify: true, ..RunOptions::default() };
    run(&source, sink.await.unwrap(), &plan, &how).await.unwrap();
    let reader = Reader::new(&opened(&yard.at("target")).await, PATH).unwrap();
    let near = Region::new([5, 150], [6, 6]).unwrap();
    let there = Region::new([8, 151], [6, 6]).unwrap();
    let expected = elements(&there);
    let (expected, _) = expected.as_chunks::<4>();
    let expected: Vec<u8> = expected
        .iter()
        .flat_map(|element| i64::from(i32::from_le_bytes(*element)).to_le_bytes())
        .collect();
    assert!(reader.read_region(&near).await.unwrap().to_vec() == expected);
}

#[tokio::test]
async fn a_check_and_links_look_at_stored_chunks_only() {
    let yard = Yard::memory();
    write(&yard, "plain").await;
    for (number, to) in
        [named("zarr3"), named("shards"), named("container")].into_iter().enumerate()
    {
        let name = to.called(&format!("source-{number}"));
        convert(&yard, "plain", &name, to, &CHUNK).await;
        let (from, _) = place(&yard, &name);
        let source = source(&from).await;
        let report = check(&source, Level::Bytes, &Meter::default()).await.unwrap();
        assert_eq!((report.errors, report.checked.chunks), (0, 5), "{name}");
        if to != named("container") {
            let (repo, _) = place(&yard, &format!("repo-{number}"));
            let wishes = Wishes::default();
            let create = CreateOptions::default();
            let linked = link(&source, &from, &repo, &wishes, "", create, &Meter::default()).await;
            assert_eq!(linked.unwrap().chunks, 5, "{name}");
        }
    }
}

#[tokio::test]
async fn workers_get_only_stored_chunks() {
    let yard = Yard::directory();
    write(&yard, "plain").await;
    for to in sparse_sinks() {
        let target = to.called(&format!("{to:?}"));
        let open = OpenOptions { store: options(), ..OpenOptions::default() };
        let request = Request {
            source: yard.at("plain"),
            target: yard.at(&target),
            open,
            to: Some(to.format.to_owned()),
            wishes: to.wishes(&[3, 5]),
        };
        let conversion = Conversion::prepare(request).await.unwrap();
        let how = RunOptions { verify: true, ..RunOptions::default() };
        let mut coordinator =
            Coordinator::begin(&conversion, CreateOptions::default(), how).await.unwrap();
        let (done, packs) = coordinator.packs();
        assert!(done == 0 && (3..=8).contains(&packs), "{packs} packs");
        let tasks: Vec<_> = coordinator.tasks(4).collect();
        assert!(!tasks.is_empty());
        for task in &tasks {
            assert!(task.packs.iter().all(|range| !range.boxes.is_empty()), "{task:?}");
            coordinator.adopt(&elsewhere(task).await.unwrap()).await.unwrap();
        }
        // A worker cannot be asked for half a chunk.
        let mut wrong = tasks[0].clone();
        wrong.packs[0].boxes[0].1[1] -= 1;
        assert_eq!(elsewhere(&wrong).await.unwrap_err().kind(), ErrorKind::Invalid);
        let outcome = coordinator.finish().await.unwrap();
        assert_eq!(outcome.packs, packs);
        is_whole(&opened(&yard.at(&target)).await, &target).await;
    }
}

#[tokio::test]
async fn an_interrupted_conversion_goes_on_with_stored_chunks_only() {
    let yard = Yard::memory();
    write(&yard, "plain").await;
    let source = opened(&yard.at("plain")).await;
    let format = format_named("zarr3").unwrap();
    let plan = Plan::new(&source, &named("zarr3").wishes(&CHUNK), format, "").await.unwrap();
    for last in 0.. {
        let dies = fault::Plan::new(last, Mode::Die);
        let (store, fault) = Fault::wrap(&yard.store(""), dies);
        let name = format!("target-{last}");
        let place = Place::within(store, &name).unwrap();
        let create = || CreateOptions { plan: plan.name.clone(), ..CreateOptions::default() };
        let attempt = async {
            let sink = format.create(&place, plan.dataset.clone(), create()).await?;
            run(&source, sink, &plan, &RunOptions::default()).await
        };
        if attempt.await.is_ok() && !fault.fired() {
            break;
        }
        let (again, _) = self::place(&yard, &name);
        let sink = match format.create(&again, plan.dataset.clone(), create()).await {
            Ok(sink) => sink,
            // The last step had been taken.
            Err(error) if error.kind() == ErrorKind::Conflict => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let done = run(&source, sink, &plan, &RunOptions::default()).await.unwrap();
        assert_eq!((done.packs, done.chunks), (4, 5), "{name}");
        is_whole(&opened(&yard.at(&name)).await, &name).await;
    }
}

#[tokio::test]
async fn a_format_that_stores_every_chunk_refuses_terabytes_of_nothing() {
    let yard = Yard::memory();
    write(&yard, "plain").await;
    let (from, _) = place(&yard, "plain");
    let source = source(&from).await;
    let blz = format_named("blz").unwrap();
    let plan = Plan::new(&source, &Wishes::default(), blz, "").await.unwrap();
    let error = plan.check_fill(&source).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("fill values"), "{error}");
    let little = Wishes { region: Some("0:100,:".into()), ..Wishes::default() };
    let plan = Plan::new(&source, &little, blz, "").await.unwrap();
    plan.check_fill(&source).await.unwrap();
    let zarr = format_named("zarr3").unwrap();
    let plan = Plan::new(&source, &Wishes::default(), zarr, "").await.unwrap();
    plan.check_fill(&source).await.unwrap();
}
