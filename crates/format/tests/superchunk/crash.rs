//! At any operation of any change to a dataset, a process is killed, a machine loses power, a reply is lost or
//! the disk is full.
//!
//! The same work runs again and again with the fault at operation 0, 1, 2, … until the fault is no longer
//! reached. Afterwards the dataset has the last acknowledged rows, or the rows of the commit that was under
//! way; a writer can go on, and leaves files as if nothing had happened.

use chunkyard_array::Region;
use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Style};
use chunkyard_store::fault::{Mode, Plan, Refusal, Unsynced, at_every_operation};
use chunkyard_store::{Error, Result, Store};
use futures::{StreamExt, stream};

use super::support::{creation, numbers, open, rows, tidy, within};
use chunkyard_test_support::{Place as At, duplicate};

const CHUNKLEN: u64 = 10;
const SUPERCHUNK: u64 = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    Append(usize),
    Flush,
    Trim(usize),
    Resize(usize),
    /// First row and number of rows that get new values.
    Change(usize, usize),
}

use Step::{Append, Change, Flush, Resize, Trim};

/// The rows that the handle sees, and those that others see.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    rows: Vec<i64>,
    seen: Vec<i64>,
}

impl Model {
    /// Rows that no other step adds.
    fn more(number: usize, count: usize) -> std::ops::Range<i64> {
        let first = 1000 * (number as i64 + 1);
        first..first + count as i64
    }

    fn step(&mut self, number: usize, step: Step) {
        match step {
            Append(count) => self.rows.extend(Self::more(number, count)),
            Flush => self.seen.clone_from(&self.rows),
            Trim(count) => {
                self.rows.truncate(self.rows.len() - count);
                self.seen.clone_from(&self.rows);
            }
            Resize(len) if len < self.rows.len() => {
                self.rows.truncate(len);
                self.seen.clone_from(&self.rows);
            }
            Resize(len) => self.rows.resize(len, 0),
            Change(start, count) => {
                let rows = self.rows.iter_mut().skip(start).zip(Self::more(number, count));
                rows.for_each(|(row, new)| *row = new);
            }
        }
    }
}

async fn apply(blz: &Blz, number: usize, step: Step) -> Result<()> {
    match step {
        Append(count) => blz.append(vec![rows(Model::more(number, count))]).await,
        Flush => blz.flush().await,
        Trim(count) => blz.trim(count as u64).await,
        Resize(len) => blz.resize(len as u64).await,
        Change(start, count) => {
            let region = Region::new([start as u64], [count as u64])?;
            blz.writer("/")?.write_region(&region, rows(Model::more(number, count))).await
        }
    }
}

fn mutable() -> BlzOptions {
    BlzOptions { mutable: true, ..BlzOptions::default() }
}

/// The steps that prepare a dataset, and the steps that are interrupted.
const WORKS: &[(&[Step], &[Step])] = &[
    (&[], &[Append(4), Flush, Append(50), Flush]),
    (&[Append(25), Flush], &[Append(3), Flush, Append(4), Flush]),
    (&[Append(45), Flush], &[Append(5), Flush, Append(1), Flush]),
    (&[Append(45), Flush], &[Append(20), Flush, Append(40), Flush]),
    (&[Append(35), Flush], &[Append(40), Flush]),
    (&[Append(60), Flush], &[Append(30), Flush, Trim(90), Append(5), Flush]),
    (&[Append(85), Flush], &[Trim(12), Trim(30), Append(1), Flush]),
    (&[Append(85), Flush, Trim(40)], &[Append(2), Flush, Append(40), Flush]),
    (&[Append(85), Flush, Trim(45)], &[Append(10), Flush]),
    (&[Append(47), Flush], &[Append(60), Trim(70), Resize(77), Flush, Resize(31)]),
];

/// The same with changes of rows.
const CHANGES: &[(&[Step], &[Step])] = &[
    (&[Append(75), Flush], &[Change(12, 5), Flush, Change(61, 2), Flush]),
    (&[Append(75), Flush], &[Change(72, 2), Flush, Change(5, 60), Append(9), Flush]),
    (&[Append(75), Flush, Trim(12)], &[Change(62, 1), Change(0, 1), Flush, Append(1), Flush]),
    (&[Append(45), Flush], &[Change(30, 15), Trim(2), Change(0, 43), Flush]),
];

async fn template(
    at: At,
    style: Style,
    steps: &[Step],
) -> (Option<tempfile::TempDir>, Store, Model) {
    let (guard, store) = at.open();
    let mut wanted = creation("<i8", CHUNKLEN, SUPERCHUNK);
    wanted.style = style;
    wanted.slack = 40;
    let blz = Blz::create(&within(&store), &wanted, mutable()).await.unwrap();
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        apply(&blz, 100 + number, *step).await.unwrap();
        model.step(100 + number, *step);
    }
    (guard, store, model)
}

/// Does the steps, and gives the states that may be found afterwards.
async fn run(place: &Place, model: &Model, steps: &[Step]) -> (Vec<Vec<i64>>, Result<()>) {
    let mut model = model.clone();
    let blz = match Blz::open(place, mutable()).await {
        Ok(blz) => blz,
        Err(error) => return (vec![model.seen], Err(error)),
    };
    for (number, step) in steps.iter().enumerate() {
        let before = model.clone();
        model.step(number, *step);
        if let Err(error) = apply(&blz, number, *step).await {
            // A trim commits waiting rows first.
            let committed = match step {
                Append(_) | Change(..) => Vec::new(),
                _ => vec![before.rows.clone(), model.seen],
            };
            let found = [vec![before.seen], committed].concat();
            return (found, Err(error));
        }
    }
    (vec![model.seen], Ok(()))
}

/// Whether these are the rows of an allowed state; chunks change one by one.
fn is_one_of(found: &[i64], allowed: &[Vec<i64>]) -> bool {
    let by_chunk = |state: &Vec<i64>| {
        let chunks = found.chunks(CHUNKLEN as usize).enumerate();
        state.len() == found.len()
            && chunks.into_iter().all(|(number, chunk)| {
                let start = number * CHUNKLEN as usize;
                let in_state =
                    |state: &Vec<i64>| state.get(start..start + chunk.len()) == Some(chunk);
                allowed.iter().any(in_state)
            })
    };
    allowed.iter().any(by_chunk)
}

async fn survives(store: &Store, allowed: &[Vec<i64>], what: &str) {
    let place = within(store);
    let blz = Blz::open(&place, BlzOptions::default()).await;
    let blz = blz.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut now = super::support::try_numbers(&blz, "/").await;
    let found = now.as_mut().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(is_one_of(found, allowed), "{what}\n{found:?}\n{allowed:?}");
    for count in [13, 2] {
        let first = -1000 - found.len() as i64;
        let more = first..first + count;
        let added = blz.append(vec![rows(more.clone())]).await;
        added.unwrap_or_else(|error| panic!("{what}: {error}"));
        let flushed = blz.flush().await;
        flushed.unwrap_or_else(|error| panic!("{what}: {error}"));
        found.extend(more);
        assert_eq!(numbers(&open(&place).await, "/").await, *found, "{what}");
        tidy(&place, CHUNKLEN, SUPERCHUNK, what).await;
    }
}

/// The ways to die: only file systems tear files and lose bytes that were not synced.
pub(super) fn deaths(at: At) -> Vec<(Mode, Unsynced)> {
    let mut deaths = vec![(Mode::Die, Unsynced::Kept), (Mode::DieAfter, Unsynced::Kept)];
    if at == At::Local {
        let mixed = |bits: u64| Unsynced::Mixed(bits | bits << 16 | bits << 32);
        let cuts = [0x5555, 0xaaaa, 0x3333, 0xcccc, 0x6db6, 0x9249].map(mixed).into_iter();
        let cuts = cuts.chain([Unsynced::Reverted, Unsynced::Emptied]);
        deaths.extend(cuts.clone().map(|unsynced| (Mode::DieAfter, unsynced)));
        deaths.extend(cuts.map(|unsynced| (Mode::Tear, unsynced)));
        deaths.push((Mode::Tear, Unsynced::Kept));
    }
    deaths
}

/// The ones that do not take minutes.
pub(super) fn some_deaths(at: At) -> Vec<(Mode, Unsynced)> {
    match at {
        At::Local => vec![
            (Mode::DieAfter, Unsynced::Kept),
            (Mode::Tear, Unsynced::Kept),
            (Mode::DieAfter, Unsynced::Emptied),
            (Mode::Tear, Unsynced::Mixed(0x6db6_9249_6db6_9249)),
        ],
        _ => deaths(at),
    }
}

type Works<'a> = &'a [(&'a [Step], &'a [Step])];

async fn interrupt_everywhere(
    at: At,
    style: Style,
    works: Works<'_>,
    deaths: Vec<(Mode, Unsynced)>,
) {
    for (before, steps) in works {
        let (_guard, template, model) = template(at, style, before).await;
        for (mode, unsynced) in deaths.clone() {
            // Without writes in place, no file can be half written.
            if style != Style::Superchunk && matches!(unsynced, Unsynced::Mixed(_)) {
                continue;
            }
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, at).await;
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let (allowed, outcome) = run(&within(&faulty), &model, steps).await;
                fault.die().await.unwrap();
                let what = format!(
                    "{at:?} {style:?} {before:?} {steps:?} {plan:?}: {outcome:?} {:#?}",
                    fault.log()
                );
                survives(&store, &allowed, &what).await;
                assert!(fault.fired() || (outcome.is_ok() && n > 1), "{what}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last() {
    let (at, style) = (At::Local, Style::Superchunk);
    interrupt_everywhere(at, style, WORKS, some_deaths(at)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last_on_an_object_store() {
    for style in [Style::Superchunk, Style::Document, Style::Bcolz] {
        interrupt_everywhere(At::Memory, style, WORKS, deaths(At::Memory)).await;
        interrupt_everywhere(At::Memory, style, CHANGES, deaths(At::Memory)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_changing_rows_can_be_the_last() {
    let (at, style) = (At::Local, Style::Superchunk);
    interrupt_everywhere(at, style, CHANGES, some_deaths(at)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; run by `make stress`"]
async fn stress_every_operation_can_be_the_last_in_every_way() {
    let mut runs = Vec::new();
    for style in [Style::Superchunk, Style::Document, Style::Bcolz] {
        for works in [WORKS, CHANGES] {
            runs.extend(deaths(At::Local).into_iter().map(|death| (style, works, death)));
        }
    }
    // Each run waits for the disk most of the time.
    let run = |(style, works, death)| {
        tokio::spawn(interrupt_everywhere(At::Local, style, works, vec![death]))
    };
    let mut runs = stream::iter(runs).map(run).buffer_unordered(4);
    while let Some(done) = runs.next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn every_operation_of_creating_a_dataset_can_be_the_last() {
    for at in [At::Local, At::Memory] {
        for (mode, unsynced) in deaths(at) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let (_guard, store) = at.open();
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let wanted = creation("<i8", CHUNKLEN, SUPERCHUNK);
                let options = BlzOptions::default;
                let outcome = Blz::create(&within(&faulty), &wanted, options()).await;
                fault.die().await.unwrap();
                let what = format!("{at:?} {plan:?}: {:#?}", fault.log());
                match Blz::open(&within(&store), options()).await {
                    Ok(blz) => assert!(blz.is_empty(), "{what}"),
                    Err(Error::NotFound { .. }) => {
                        assert!(outcome.is_err(), "acknowledged and lost: {what}");
                        let created = Blz::create(&within(&store), &wanted, options()).await;
                        created.unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
                assert!(fault.fired() || outcome.is_ok(), "{what}");
            }
        }
    }
}

/// One request, perhaps a read, fails or its reply is lost, and the client lives on.
async fn one_request_goes_wrong(at: At, mode: Mode) {
    for (before, more) in [(45, 40), (30, 30), (58, 2), (0, 95)] {
        let (_guard, template, model) =
            template(at, Style::Superchunk, &[Append(before), Flush]).await;
        let mut after = model.rows.clone();
        after.extend(Model::more(0, more));
        for attempt in at_every_operation(Plan::new(0, mode).with_reads()) {
            let (_guard, store) = duplicate(&template, at).await;
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let what = |step: &str| format!("{at:?} {plan:?} {step}: {:#?}", fault.log());
            let opened = Blz::open(&within(&faulty), BlzOptions::default()).await;
            let Ok(blz) = opened else { continue };
            while apply(&blz, 0, Append(more)).await.is_err() {}
            let outcome = blz.flush().await;
            fault.relent();
            let now = numbers(&open(&within(&store)).await, "/").await;
            match &outcome {
                Ok(()) => assert_eq!(now, after, "{}", what("acknowledged")),
                Err(Error::OutcomeUnknown { .. }) => {
                    assert!(now == after || now == model.rows, "{}", what("unknown"));
                }
                Err(error) => assert_eq!(now, model.rows, "{} {error:?}", what("failed")),
            }
            if outcome.is_err() && now != after {
                if blz.len() == before as u64 {
                    apply(&blz, 0, Append(more)).await.unwrap();
                }
                let again = blz.flush().await;
                assert!(again.is_ok(), "{} {again:?}", what("again"));
            }
            survives(&store, &[after.clone()], &what("went on")).await;
            assert!(fault.fired() || outcome.is_ok(), "{}", what("undisturbed"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_acknowledged_exactly_if_they_are_there() {
    one_request_goes_wrong(At::Memory, Mode::LoseReply).await;
    one_request_goes_wrong(At::Memory, Mode::FailOnce).await;
    one_request_goes_wrong(At::Local, Mode::FailOnce).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_wait_until_there_is_room() {
    for refusal in [Refusal::NoSpace, Refusal::ReadOnly, Refusal::TooManyFiles] {
        let (_guard, template, model) =
            template(At::Local, Style::Superchunk, &[Append(45), Flush, Trim(3)]).await;
        let mut after = model.rows.clone();
        after.extend(Model::more(0, 40));
        for attempt in at_every_operation(Plan::new(0, Mode::Refuse(refusal))) {
            let n = attempt.at();
            let (_guard, store) = duplicate(&template, At::Local).await;
            let (faulty, fault) = attempt.wrap(&store);
            let blz = open(&within(&faulty)).await;
            let added = apply(&blz, 0, Append(40)).await;
            let flushed = blz.flush().await;
            let what = format!("{refusal:?} at {n}: {added:?} {flushed:?} {:#?}", fault.log());
            fault.relent();
            if added.is_err() {
                apply(&blz, 0, Append(40)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            if added.is_err() || flushed.is_err() {
                if blz.len() == model.rows.len() as u64 {
                    blz.refresh().await.unwrap();
                }
                if blz.len() == model.rows.len() as u64 {
                    apply(&blz, 0, Append(40)).await.unwrap();
                }
                blz.flush().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            survives(&store, &[after.clone()], &what).await;
        }
    }
}
