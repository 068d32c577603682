//! Jobs in memory and in directories, with a clock that the tests drive.

mod crash;
mod model;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::{Error, ErrorKind, Options, Result, Store};
use chunkyard_test_support as support;
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::lease::{Clock, Sign};
use super::*;

/// So long that a test that waits for it to pass never ends.
const LEASE: Duration = Duration::from_secs(80_000);

fn planned() -> Planned {
    Planned { kind: "test".to_owned(), work: json!({"of": "the tests"}), lease: LEASE }
}

fn tasks(count: u64) -> impl Iterator<Item = Result<Bytes>> + Send {
    (0..count).map(|task| Ok(format!("task {task}").into()))
}

async fn new_job(store: &Store, count: u64) -> Job {
    let (job, new) = Job::create(store.clone(), planned(), tasks(count)).await.unwrap();
    assert!(new);
    job
}

/// Answers every task with its name and its own, and remembers what it was asked.
#[derive(Debug, Default)]
struct Echo {
    name: String,
    begun: Mutex<BTreeMap<String, u32>>,
    ended: Mutex<u32>,
    fails_at: Option<&'static str>,
}

impl Echo {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

#[async_trait]
impl Work for Echo {
    async fn task(&self, task: Bytes) -> Result<Bytes> {
        let task = String::from_utf8(task.to_vec()).unwrap();
        *self.begun.lock().unwrap().entry(task.clone()).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
        match self.fails_at == Some(task.as_str()) {
            true => Err(Error::invalid(format!("{task} cannot be done"))),
            false => Ok(format!("{task} by {}", self.name).into()),
        }
    }

    async fn finish(&self, job: &Job, _again: bool) -> Result<Value> {
        *self.ended.lock().unwrap() += 1;
        let results: Vec<(u64, Bytes)> = job.results().await?.try_collect().await?;
        assert_eq!(results.len() as u64, job.tasks());
        Ok(json!({ "results": results.len() }))
    }
}

/// Time passes for those who go by a clock.
fn pass(clock: &Clock, time: Duration) {
    clock.ahead_ms.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
}

/// Says for all workers that they have ended, as the system does where a process is gone.
async fn bury(store: &Store) {
    for (sign, _) in Sign::all(store).await.unwrap() {
        Sign { left: true, ..sign }.put(store).await.unwrap();
    }
}

/// Every task has one result, and it is a result of that task.
async fn is_complete(job: &Job) -> Vec<String> {
    let results: Vec<(u64, Bytes)> = job.results().await.unwrap().try_collect().await.unwrap();
    assert!(results.iter().map(|(task, _)| *task).eq(0..job.tasks()));
    let texts = results.into_iter().map(|(task, result)| {
        let text = String::from_utf8(result.to_vec()).unwrap();
        assert!(text.starts_with(&format!("task {task} by ")), "{text}");
        text
    });
    texts.collect()
}

#[tokio::test]
async fn workers_share_the_tasks_and_one_of_them_ends_the_job() {
    for place in support::Place::ALL {
        let (_guard, store) = place.open();
        let job = new_job(&store, 40).await;
        let works = [Echo::named("a"), Echo::named("b"), Echo::named("c")];
        let options = WorkerOptions::default();
        let [a, b, c] = &works;
        let done =
            futures::join!(run(&job, a, &options), run(&job, b, &options), run(&job, c, &options));
        let done = [done.0.unwrap(), done.1.unwrap(), done.2.unwrap()];
        assert_eq!(done.iter().map(|one| one.tasks).sum::<u64>(), 40, "{done:?}");
        assert!(done.iter().all(|one| one.tasks > 0 && one.refused == 0), "{done:?}");
        assert!(done.iter().all(|one| one.outcome == Some(json!({"results": 40}))), "{done:?}");
        assert_eq!(works.iter().map(|work| *work.ended.lock().unwrap()).sum::<u32>(), 1);
        is_complete(&job).await;
        let status = job.status().await.unwrap();
        assert_eq!((status.done, status.free, status.open.len()), (40, 0, 0));
        assert!(status.workers.len() == 3 && status.workers.iter().all(|worker| worker.gone));
        assert_eq!(status.workers.iter().map(|worker| worker.tasks).sum::<u64>(), 40, "{status:?}");
        // Once more does nothing.
        let more = run(&job, a, &options).await.unwrap();
        assert_eq!((more.tasks, more.outcome), (0, Some(json!({"results": 40}))));
    }
}

#[tokio::test]
async fn a_job_without_tasks_is_ended() {
    let job = new_job(&support::memory(), 0).await;
    let done = run(&job, &Echo::default(), &WorkerOptions::default()).await.unwrap();
    assert_eq!(done.outcome, Some(json!({"results": 0})));
}

#[tokio::test]
async fn the_same_job_is_found_and_another_one_is_refused() {
    for place in support::Place::ALL {
        let (_guard, store) = place.open();
        assert_eq!(Job::open(store.clone()).await.unwrap_err().kind(), ErrorKind::NotFound);
        new_job(&store, 3).await;
        let (again, new) = Job::create(store.clone(), planned(), tasks(3)).await.unwrap();
        assert!(!new);
        assert_eq!(again.task(2).await.unwrap(), "task 2");
        let other = Planned { work: json!({"of": "others"}), ..planned() };
        let error = Job::create(store.clone(), other, tasks(3)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let hasty = Planned { lease: Duration::from_millis(1), ..planned() };
        let error = Job::create(store.clone(), hasty, tasks(3)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn damage_to_a_job_is_an_error_and_no_panic() {
    let store = support::memory();
    let job = new_job(&store, 3).await;
    let worker = Worker::join(&job).await.unwrap();
    let Next::Claimed(claim) = worker.next().await.unwrap() else { panic!("no task") };
    let step = format!("steps/{:010}.0", claim.task);
    let listed: Vec<_> = store.list("").await.unwrap().try_collect().await.unwrap();
    for path in listed.into_iter().map(|meta| meta.path) {
        let sound = store.get(&path).await.unwrap().bytes;
        let mut damaged = vec![Bytes::new(), Bytes::from_static(b"{}"), "\u{fffd}\n".into()];
        damaged.extend([1, 7, sound.len() / 2, sound.len() - 3].map(|at| sound.slice(..at)));
        damaged.push(vec![0xff; sound.len()].into());
        for bytes in damaged {
            store.put(&path, vec![bytes.clone()]).await.unwrap();
            let failed = match Job::open(store.clone()).await {
                Err(_) => true,
                Ok(job) => {
                    let read = [job.task(0).await, job.task(1).await, job.task(2).await];
                    read.iter().any(Result::is_err) || job.status().await.is_err()
                }
            };
            assert!(failed, "{path} as {bytes:?}");
        }
        store.put(&path, vec![sound]).await.unwrap();
    }
    assert!(store.head(&step).await.is_ok());
}

#[tokio::test]
async fn a_task_that_fails_ends_its_worker_and_is_given_back() {
    let job = new_job(&support::memory(), 5).await;
    let bad = Echo { fails_at: Some("task 3"), ..Echo::named("bad") };
    let error = run(&job, &bad, &WorkerOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "task 3 cannot be done");
    let status = job.status().await.unwrap();
    let failed: Vec<&OpenTask> =
        status.open.iter().filter(|open| open.state == Open::Failed).collect();
    assert_eq!(failed.len(), 1, "{status:?}");
    assert_eq!((failed[0].task, failed[0].error.as_deref()), (3, Some("task 3 cannot be done")));
    // No lease has to pass.
    let good = Echo::named("good");
    let done = run(&job, &good, &WorkerOptions::default()).await.unwrap();
    assert_eq!(done.outcome, Some(json!({"results": 5})));
    assert_eq!(is_complete(&job).await[3], "task 3 by good");
}

#[tokio::test]
async fn a_worker_that_does_not_wait_leaves_the_rest_to_others() {
    let job = new_job(&support::memory(), 2).await;
    let slow = Worker::join(&job).await.unwrap();
    let Next::Claimed(held) = slow.next().await.unwrap() else { panic!("no task") };
    let hasty = WorkerOptions { wait: false, ..WorkerOptions::default() };
    let done = run(&job, &Echo::named("hasty"), &hasty).await.unwrap();
    assert_eq!((done.tasks, done.outcome), (1, None));
    assert!(slow.note(&held, format!("task {} by slow", held.task).into()).await.unwrap());
    is_complete(&job).await;
    let done = run(&job, &Echo::default(), &hasty).await.unwrap();
    assert_eq!(done.outcome, Some(json!({"results": 2})));
}

/// The point of the whole protocol: two workers find one stale lease, and the sleeper wakes up later.
#[tokio::test]
async fn of_two_workers_at_a_stale_lease_one_wins_and_the_sleeper_is_refused() {
    for place in support::Place::ALL {
        let (_guard, store) = place.open();
        let job = new_job(&store, 1).await;
        let sleeper = Worker::join(&job).await.unwrap();
        let Next::Claimed(old) = sleeper.next().await.unwrap() else { panic!("no task") };
        let clock = Clock::start();
        let one = Worker::join_with(&job, clock.clone()).await.unwrap();
        let two = Worker::join_with(&job, clock.clone()).await.unwrap();
        assert_eq!(one.next().await.unwrap(), Next::Wait, "the lease has only begun");
        assert_eq!(two.next().await.unwrap(), Next::Wait);
        pass(&clock, LEASE / 2);
        sleeper.beat().await.unwrap();
        assert_eq!(one.next().await.unwrap(), Next::Wait);
        assert_eq!(two.next().await.unwrap(), Next::Wait);
        pass(&clock, LEASE * 2 / 3);
        assert_eq!(one.next().await.unwrap(), Next::Wait, "it has beaten in between");
        assert_eq!(two.next().await.unwrap(), Next::Wait);
        pass(&clock, LEASE * 2 / 3);
        let (a, b) = futures::join!(one.next(), two.next());
        let (a, b) = (a.unwrap(), b.unwrap());
        let (winner, claim) = match (a, b) {
            (Next::Claimed(claim), Next::Wait) => (&one, claim),
            (Next::Wait, Next::Claimed(claim)) => (&two, claim),
            other => panic!("{other:?}"),
        };
        assert_eq!(claim, Claim { task: 0, epoch: 1 });
        assert!(!sleeper.note(&old, "task 0 by sleeper".into()).await.unwrap(), "not refused");
        assert!(winner.note(&claim, "task 0 by winner".into()).await.unwrap());
        assert!(!sleeper.note(&old, "task 0 by sleeper".into()).await.unwrap(), "not refused");
        assert_eq!(is_complete(&job).await, ["task 0 by winner"]);
    }
}

/// Ten thousand tasks take a few requests each, however many workers there are.
#[tokio::test]
async fn requests_grow_with_the_tasks_and_not_with_their_square() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let (counted, counts) = chunkyard_store::Counted::wrap(&store);
    let job = new_job(&counted, 3000).await;
    counts.take();
    let works: Vec<Echo> = (0..4).map(|_| Echo::named("w")).collect();
    let options = WorkerOptions::default();
    let all = works.iter().map(|work| run(&job, work, &options));
    futures::future::try_join_all(all).await.unwrap();
    let spent = counts.take();
    // Claim and note; the rest is beats, and claims that met another worker.
    assert!((6000..6600).contains(&spent.puts), "{spent:?}");
    // The task in two reads, its result in one; and a look at each claim that was met.
    assert!((9000..9900).contains(&spent.gets), "{spent:?}");
    assert!(spent.lists < 300, "{spent:?}");
}
