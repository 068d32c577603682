//! `export-shards --job`: the shards are left to workers.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chunkyard_engine::export::Exporter;
use chunkyard_engine::job::ExportJob;
use chunkyard_engine::store::{Options, Store};
use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::failure::Target;
use crate::units::{count, parse_duration, parse_size};

/// Work for several processes.
#[derive(Debug, Args)]
pub(super) struct Shared {
    /// Write no shard, but a job that any number of `chunkyard work` processes carry out: a directory on any
    /// store, which they all reach
    #[arg(long, value_name = "JOB", conflicts_with = "check")]
    pub(super) job: Option<String>,

    /// Labels that a worker of the job claims at a time, in bytes without compression; a share of the whole if not given
    #[arg(long, value_name = "SIZE", requires = "job", value_parser = parse_size)]
    task_size: Option<u64>,

    /// How long a worker of the job may show no sign of life before others take over
    #[arg(long, value_name = "TIME", requires = "job", default_value = "60s", value_parser = parse_duration)]
    lease: i64,
}

impl Shared {
    /// Makes the job.
    pub(super) async fn make(
        &self,
        url: &str,
        exporter: &Exporter,
        options: &Options,
        context: &Context,
    ) -> Result<()> {
        let plan = ExportJob {
            task_bytes: self.task_size,
            lease: Duration::from_millis(self.lease.unsigned_abs()),
        };
        let store = Store::open(url, options)?;
        let (job, new) = plan.create(store, exporter).await.context(Target)?;
        let document = json!({"job": url, "tasks": job.tasks(), "new": new});
        context.output.done(&document, || {
            let tasks = count(job.tasks(), "task");
            let state = if new { "a job of" } else { "the job is there already:" };
            format!(
                "{state} {tasks}; run this in as many processes as wanted:\n  chunkyard work {url}"
            )
        })
    }
}
