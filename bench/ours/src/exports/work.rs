//! A job that several processes share, each with one core to itself.

use std::process::{Command, Stdio};

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_engine::export::{Codec, Emit};
use chunkyard_engine::format::OpenOptions;
use chunkyard_engine::job::{ExportJob, ExportWork, Job, WorkerOptions, run};
use chunkyard_engine::store::{Durability, Limits, Options as StoreOptions, Store};

use super::{MEMORY_BYTES, Wish, chunk_bits, is_whole, spec};
use crate::convert::clear;

/// `source=REPO grid=EDGE blocks=N shard=EDGE processes=N`: makes a job and waits for its workers. Making it is not measured,
/// beginning and ending the processes is.
pub async fn work(options: &Options) -> Outcome {
    let (target, job) =
        (format!("{}/target", options.directory), format!("{}/job", options.directory));
    let size = [options.number("grid", 1)? * 64; 3];
    let within = 3 * options.number("shard", 32)?.ilog2();
    let wish = Wish {
        source: options.text("source"),
        emit: Emit::Arrow,
        codec: Codec::default(),
        spec: Some(spec(size, within, 0, chunk_bits(size).saturating_sub(within))),
        durability: Durability::Full,
    };
    let processes = options.number("processes", 1)?;
    let (mut durable, mut equal) = (Samples::default(), true);
    for _ in 0..options.number("repeats", 1)?.max(1) {
        clear(&options.directory)?;
        let exporter = wish.open(&target).await?;
        let store = Store::open(&job, &StoreOptions::default())?;
        let plan = ExportJob { task_bytes: Some(1), ..ExportJob::default() };
        plan.create(store, &exporter).await?;
        let clock = Clock::start();
        let start = |core: u64| {
            // What it takes for the number of cores is the number that it may use.
            let mut command = Command::new("taskset");
            command.arg("--cpu-list").arg(core.to_string()).arg(std::env::current_exe()?);
            command.args(["export-worker", job.as_str()]).stdout(Stdio::null()).spawn()
        };
        let children: Vec<_> = (0..processes).map(start).collect::<std::io::Result<_>>()?;
        for mut child in children {
            equal &= child.wait()?.success();
        }
        durable.add(clock);
        equal &= is_whole(&exporter).await?;
    }
    clear(&options.directory)?;
    Ok(Answer::default().measure("durable", &durable).equal(equal))
}

/// Carries out a job on the cores that this process may use.
pub async fn worker(options: &Options) -> Outcome {
    let limits = Limits { bytes_in_flight: MEMORY_BYTES, ..Limits::default() };
    let store = StoreOptions { limits, ..StoreOptions::default() };
    let job = Job::open(Store::open(&options.directory, &store)?).await?;
    let open = OpenOptions { store, ..OpenOptions::default() };
    let work = ExportWork::new(&job, open, Default::default())?;
    let summary = run(&job, &work, &WorkerOptions::default()).await?;
    Ok(Answer::default().fact("tasks", summary.tasks))
}
