//! Workers that die, sleep, or lose replies at every operation of the store.

use chunkyard_store::Uid;
use chunkyard_store::atomic::Outcome;
use chunkyard_store::fault::{self, Fault, Mode, Plan, Unsynced, at_every_operation, overlap};
use chunkyard_test_support::Place;

use super::super::entry::Entry;
use super::*;

const TASKS: u64 = 3;

/// One lane, so that the operations come in the same order every time.
fn one_by_one() -> WorkerOptions {
    WorkerOptions { tasks_in_flight: 1, wait: true }
}

/// A worker goes wrong at operation 0, 1, 2, …; another one does the rest.
#[tokio::test]
async fn every_operation_of_a_worker_can_be_its_last() {
    let cases = [
        (
            Place::Memory,
            support::deaths().into_iter().filter(|death| death.1 == Unsynced::Kept).collect(),
        ),
        (Place::Local, support::deaths()),
    ];
    for (place, deaths) in cases {
        for (mode, unsynced) in deaths {
            let plan = Plan::new(0, mode).with_power_cut(unsynced);
            for attempt in at_every_operation(plan) {
                let (_guard, store) = place.open();
                let job = new_job(&store, TASKS).await;
                let (faulty, fault) = attempt.wrap(&store);
                let first = Echo::named("first");
                let what = format!("{place:?} {:?}", attempt.plan());
                let died =
                    async { run(&Job::open(faulty.clone()).await?, &first, &one_by_one()).await };
                let died = died.await;
                fault.die().await.unwrap();
                assert!(died.is_ok() || fault.fired(), "{what}: {died:?}");
                bury(&store).await;
                let second = Echo::named("second");
                let done = run(&job, &second, &one_by_one()).await.unwrap();
                assert_eq!(done.outcome, Some(json!({"results": TASKS})), "{what}");
                is_complete(&job).await;
                assert_eq!(done.refused, 0, "{what}");
                // A result that was noted is not made again.
                let (one, two) = (first.begun.lock().unwrap(), second.begun.lock().unwrap());
                let twice = one.keys().filter(|task| two.contains_key(*task)).count();
                assert!(twice <= 1, "{what}: {one:?} and {two:?}");
            }
        }
    }
}

/// Replies get lost and requests arrive late; the worker lives on, and nothing is done twice.
#[tokio::test]
async fn lost_replies_and_late_requests_change_nothing() {
    for mode in [Mode::LoseReply, Mode::Late(0), Mode::Late(1)] {
        for attempt in at_every_operation(Plan::new(0, mode)) {
            let store = support::memory();
            let job = new_job(&store, TASKS).await;
            let (faulty, fault) = attempt.wrap(&store);
            let work = Echo::named("only");
            let done = run(&Job::open(faulty).await.unwrap(), &work, &one_by_one()).await;
            let what = format!("{:?}: {:#?}", attempt.plan(), fault.log());
            match done {
                Ok(done) => assert_eq!((done.tasks, done.refused), (TASKS, 0), "{what}"),
                // Joining failed: its only put is not tried again.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Store, "{what}: {error}");
                    let done = run(&job, &work, &one_by_one()).await.unwrap();
                    assert_eq!(done.tasks, TASKS, "{what}");
                }
            }
            is_complete(&job).await;
            let begun = work.begun.lock().unwrap();
            assert!(begun.values().all(|&times| times == 1), "{what}: {begun:?}");
        }
    }
}

/// Requests time out until the worker gives up on knowing. A claim or a note lands after all, when it has gone on or ended.
#[tokio::test]
async fn what_lands_when_its_worker_has_given_up_is_counted_once() {
    for attempt in at_every_operation(Plan::new(0, Mode::Late(5))) {
        let store = support::memory();
        let job = new_job(&store, TASKS).await;
        let (faulty, fault) = attempt.wrap(&store);
        let work = Echo::named("first");
        let first = run(&Job::open(faulty).await.unwrap(), &work, &one_by_one()).await;
        fault.relent();
        bury(&store).await;
        let second = Echo::named("second");
        let done = run(&job, &second, &one_by_one()).await.unwrap();
        let what = format!("{:?}: {first:?} {:#?}", attempt.plan(), fault.log());
        assert_eq!(done.outcome, Some(json!({"results": TASKS})), "{what}");
        is_complete(&job).await;
        if let Ok(first) = &first {
            assert_eq!((first.tasks, done.tasks), (TASKS, 0), "{what}");
        }
    }
}

/// Each of two workers falls asleep at one of its operations, in all pairs.
#[tokio::test]
async fn two_workers_that_sleep_anywhere_do_each_task_once() {
    let ops = {
        let job = new_job(&support::memory(), TASKS).await;
        let (store, fault) = Fault::wrap(job.store(), Plan::never());
        run(&Job::open(store).await.unwrap(), &Echo::default(), &one_by_one()).await.unwrap();
        fault.ops()
    };
    let most = support::repetitions(90, 30);
    for mode in [Mode::Sleep, Mode::SleepAfter] {
        for (one, two) in fault::pairs(ops, ops, most) {
            let store = support::memory();
            let job = new_job(&store, TASKS).await;
            let (early, first) = Fault::wrap(&store, Plan::new(one, mode));
            let (late, second) = Fault::wrap(&store, Plan::new(two, mode));
            let works = [Echo::named("early"), Echo::named("late")];
            let (early, late) = (Job::open(early).await.unwrap(), Job::open(late).await.unwrap());
            let options = one_by_one();
            let (a, b) = overlap(
                (&first, run(&early, &works[0], &options)),
                (&second, run(&late, &works[1], &options)),
            )
            .await;
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(a.tasks + b.tasks, TASKS, "{mode:?} {one} {two}: {a:?} {b:?}");
            assert_eq!((a.outcome.is_some(), b.outcome.is_some()), (true, true));
            is_complete(&job).await;
        }
    }
}

/// A worker is stopped with any number of claims, for longer than its lease, and goes on.
#[tokio::test]
async fn a_worker_that_is_stopped_is_taken_over_and_refused() {
    for stop_after in 0..TASKS {
        let store = support::memory();
        let short = Planned { lease: Duration::from_millis(100), ..planned() };
        let (job, _) = Job::create(store, short, tasks(TASKS)).await.unwrap();
        let sleeper = Worker::join(&job).await.unwrap();
        let mut claims = Vec::new();
        for _ in 0..=stop_after {
            let Next::Claimed(claim) = sleeper.next().await.unwrap() else { panic!("no task") };
            claims.push(claim);
        }
        let quick = Echo::named("quick");
        let done = run(&job, &quick, &WorkerOptions::default()).await.unwrap();
        assert_eq!((done.tasks, done.refused), (TASKS, 0));
        for claim in &claims {
            assert!(!sleeper.note(claim, Bytes::new()).await.unwrap());
            assert!(!sleeper.fail(claim, &Error::invalid("late")).await.unwrap());
        }
        assert_eq!(sleeper.next().await.unwrap(), Next::Over);
        is_complete(&job).await;
    }
}

/// Creating a job dies anywhere: there is a whole job or none, and creating it again makes it whole.
#[tokio::test]
async fn a_job_is_there_as_a_whole_or_not_at_all() {
    for place in [Place::Memory, Place::Local] {
        for (mode, unsynced) in support::deaths() {
            let plan = Plan::new(0, mode).with_power_cut(unsynced);
            for attempt in at_every_operation(plan) {
                let (_guard, store) = place.open();
                let (faulty, fault) = attempt.wrap(&store);
                let created = Job::create(faulty, planned(), tasks(TASKS)).await;
                fault.die().await.unwrap();
                let what = format!("{place:?} {plan:?} {:?}", fault.log());
                match Job::open(store.clone()).await {
                    Ok(job) => assert_eq!(job.task(2).await.unwrap(), "task 2", "{what}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
                        assert!(created.is_err(), "{what}");
                    }
                }
                let (job, _) = Job::create(store, planned(), tasks(TASKS)).await.unwrap();
                run(&job, &Echo::default(), &WorkerOptions::default()).await.unwrap();
                is_complete(&job).await;
            }
        }
    }
}

/// Two programs make the same job at once, asleep at any operation: one of them makes it, both have it.
#[tokio::test]
async fn of_two_that_create_a_job_one_does() {
    let ops = {
        let (store, fault) = Fault::wrap(&support::memory(), Plan::never());
        new_job(&store, TASKS).await;
        fault.ops()
    };
    for (one, two) in fault::pairs(ops, ops, usize::MAX) {
        let store = support::memory();
        let (early, first) = Fault::wrap(&store, Plan::new(one, Mode::Sleep));
        let (late, second) = Fault::wrap(&store, Plan::new(two, Mode::Sleep));
        let (a, b) = overlap(
            (&first, Job::create(early, planned(), tasks(TASKS))),
            (&second, Job::create(late, planned(), tasks(TASKS))),
        )
        .await;
        let ((_, a), (_, b)) = (a.unwrap(), b.unwrap());
        assert!(a != b, "{one} {two}");
        let job = Job::open(store).await.unwrap();
        assert_eq!(job.task(1).await.unwrap(), "task 1", "{one} {two}");
    }
}

/// What a store says of a step decides, not what the worker hoped.
#[tokio::test]
async fn a_step_is_created_once() {
    let job = new_job(&support::memory(), 1).await;
    let (steps, worker) = (job.steps(), Uid::fresh().unwrap());
    let claim = Entry::Claim { worker };
    assert!(matches!(steps.create(0, 0, &claim).await.unwrap(), Outcome::Done(())));
    // The same bytes again are the same step: its reply was lost.
    assert!(matches!(steps.create(0, 0, &claim).await.unwrap(), Outcome::Done(())));
    let other = Entry::Claim { worker: Uid::fresh().unwrap() };
    assert!(matches!(steps.create(0, 0, &other).await.unwrap(), Outcome::Lost));
}
