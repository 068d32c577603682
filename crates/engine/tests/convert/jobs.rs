//! Conversions as jobs, into every format that can be written by several processes.

use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{CreateOptions, OpenOptions};
use chunkyard_engine::job::{
    ConversionJob, ConversionWork, Job, Next, Summary, Work, Worker, WorkerOptions, run,
};
use chunkyard_engine::pipeline::{Conversion, Request, RunOptions, Wishes, WorkOptions};
use futures::future;
use serde_json::json;

use super::formats::{Entry, Repeats, named, shared_sinks};
use super::sample::Sample;
use super::support::{Yard, objects, options, read_back};

const SHAPE: [u64; 2] = [43, 13];

fn sample() -> Sample {
    Sample::new(&SHAPE, &[4, 3], "int32").sparse(|index| index[0] != 2)
}

async fn prepare(yard: &Yard, target: &str, to: &'static Entry) -> Conversion {
    let wishes: Wishes = to.packs(&SHAPE, &[3, 2]);
    let open = OpenOptions { store: options(), ..OpenOptions::default() };
    let to = Some(to.format.to_owned());
    let (source, target) = (yard.at("source"), yard.at(target));
    Conversion::prepare(Request { source, target, open, to, wishes }).await.unwrap()
}

async fn job(yard: &Yard, name: &str, conversion: &Conversion) -> Job {
    let plan = ConversionJob { verify: true, task_bytes: Some(1), ..ConversionJob::default() };
    let (job, new) = plan.create(yard.store(name), conversion).await.unwrap();
    assert!(new && job.tasks() > 3, "{} tasks", job.tasks());
    job
}

fn work(job: &Job) -> ConversionWork {
    ConversionWork::new(job, WorkOptions { store: options(), ..WorkOptions::default() }).unwrap()
}

/// Work by a process that knows only where the job is.
async fn elsewhere(yard: &Yard, name: &str) -> Summary {
    let job = Job::open(yard.store(name)).await.unwrap();
    run(&job, &work(&job), &WorkerOptions::default()).await.unwrap()
}

#[tokio::test]
async fn workers_of_a_job_make_what_one_process_makes() {
    for yard in Yard::both() {
        let sample = sample();
        named("zarr3").write(&yard, "source", &sample).await;
        for to in shared_sinks() {
            let [alone, many] = ["alone", "many"].map(|name| to.called(&format!("{to:?}-{name}")));
            let expected = prepare(&yard, &alone, to).await;
            let run = RunOptions::default();
            let expected = expected.run(CreateOptions::default(), &run).await.unwrap();
            let name = format!("{to:?}-job");
            let job = job(&yard, &name, &prepare(&yard, &many, to).await).await;
            let (a, b) = future::join(elsewhere(&yard, &name), elsewhere(&yard, &name)).await;
            assert_eq!(a.tasks + b.tasks, job.tasks(), "{many}");
            let outcome = a.outcome.unwrap();
            assert_eq!(Some(&outcome), b.outcome.as_ref());
            assert_eq!(outcome["packs"], json!(expected.packs), "{many}");
            assert_eq!(outcome["bytes-stored"], json!(expected.bytes_stored), "{many}");
            assert!(read_back(&yard, &many).await == sample.array, "{many} differs");
            if to.facts().repeats == Repeats::Bytes {
                let same = objects(&yard.store(&many)).await == objects(&yard.store(&alone)).await;
                assert!(same, "{many}: other objects than by one process");
            }
        }
        let listed = yard.store("").list_dir("").await.unwrap();
        assert!(listed.dirs.iter().all(|dir| !dir.starts_with('.')), "{:?}", listed.dirs);
    }
}

/// The worker that ends the job dies before the commit, and after it.
#[tokio::test]
async fn an_end_that_was_not_noted_is_gone_on_with_or_found() {
    for yard in Yard::both() {
        let sample = sample();
        named("zarr3").write(&yard, "source", &sample).await;
        for to in shared_sinks() {
            let target = to.called(&format!("{to:?}"));
            let name = format!("{to:?}-job");
            let job = job(&yard, &name, &prepare(&yard, &target, to).await).await;
            let worker = Worker::join(&job).await.unwrap();
            let ours = work(&job);
            let end = loop {
                let Next::Claimed(claim) = worker.next().await.unwrap() else { panic!("no task") };
                if claim.task == job.tasks() {
                    break claim;
                }
                // All packs twice: the first attempt at each is never noted.
                let task = job.task(claim.task).await.unwrap();
                ours.task(task.clone()).await.unwrap();
                let result = ours.task(task).await.unwrap();
                assert!(worker.note(&claim, result).await.unwrap());
            };
            assert_eq!(end.epoch, 0);
            let finished = ours.finish(&job, false).await.unwrap();
            assert!(finished["packs"].as_u64() > Some(3), "{finished}");
            worker.leave().await.unwrap();
            let next = elsewhere(&yard, &name).await;
            assert_eq!((next.tasks, next.outcome), (0, Some(json!({"found": true}))), "{to:?}");
            assert!(read_back(&yard, &target).await == sample.array, "{target} differs");
        }
    }
}

/// Not the worker decides what is done but the job: a result that is missing is an error of the end.
#[tokio::test]
async fn the_end_needs_all_results() {
    let yard = Yard::directory();
    named("zarr3").write(&yard, "source", &sample()).await;
    let job = job(&yard, "job", &prepare(&yard, "target", named("zarr3")).await).await;
    let error = work(&job).finish(&job, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(elsewhere(&yard, "job").await.tasks, job.tasks());
}

/// A worker dies while it ends the job, when it has taken over some packs and noted none.
#[tokio::test]
async fn packs_that_were_taken_over_and_not_noted_are_found_in_their_places() {
    let yard = Yard::directory();
    let sample = sample();
    named("zarr3").write(&yard, "source", &sample).await;
    let job = job(&yard, "job", &prepare(&yard, "target", named("zarr3")).await).await;
    let hasty = WorkerOptions { wait: false, ..WorkerOptions::default() };
    let worker = Worker::join(&job).await.unwrap();
    let Next::Claimed(last) = worker.next().await.unwrap() else { panic!("no task") };
    run(&job, &work(&job), &hasty).await.unwrap();
    // As the rename of a sink that died.
    let place = yard.store(".target.chunkyard");
    let attempts = place.list_dir("attempts").await.unwrap().dirs;
    assert!(attempts.len() > 2);
    let attempt = attempts[0].clone();
    let listed: Vec<_> = {
        use futures::TryStreamExt;
        place.list(&attempt).await.unwrap().try_collect().await.unwrap()
    };
    for meta in listed {
        let path = meta.path.strip_prefix(&format!("{attempt}/")).unwrap().to_owned();
        place.rename(&meta.path, &format!("data/{path}")).await.unwrap();
    }
    let task = job.task(last.task).await.unwrap();
    let result = work(&job).task(task).await.unwrap();
    assert!(worker.note(&last, result).await.unwrap());
    worker.leave().await.unwrap();
    assert!(elsewhere(&yard, "job").await.outcome.is_some());
    assert!(read_back(&yard, "target").await == sample.array);
}
