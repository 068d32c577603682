//! Exports of segmentations that several processes share, and the work on any job.

use std::sync::Arc;
use std::time::Duration;

use chunkyard_engine::export::{ArrowOptions, Emit, Exporter, Plan, Progress, Request};
use chunkyard_engine::format::Place;
use chunkyard_engine::job::{
    CONVERT, ConversionWork, EXPORT, ExportJob, ExportWork, Job, Summary, WorkerOptions, run,
};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::open::recognise;
use chunkyard_engine::pipeline::WorkOptions;
use chunkyard_engine::store::Store;
use chunkyard_engine::{Error, Meter, Result};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::json;
use crate::options::{OpenOptions, Version};
use crate::runtime::wait;

/// What is exported, and how; each part as the plan of an export names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    spec: Option<String>,
    array: Option<String>,
    scales: Option<usize>,
    ids: Ids,
    emit: Vec<Emit>,
    arrow: ArrowOptions,
    factor: [u64; 3],
}

/// Writes the plan of an export as a job, or finds it there; gives how many tasks it has.
#[pyfunction]
#[pyo3(signature = (source, target, job, options, version, wanted, task_bytes, lease_seconds))]
#[expect(clippy::too_many_arguments, reason = "the options of one call in Python")]
pub(crate) fn make_export_job(
    py: Python<'_>,
    source: String,
    target: &str,
    job: &str,
    options: OpenOptions,
    version: Option<Version>,
    wanted: &Bound<'_, PyAny>,
    task_bytes: Option<u64>,
    lease_seconds: f64,
) -> PyResult<u64> {
    let wanted: Wanted = json::of_python(wanted)?;
    wait(py, async {
        let lease = Duration::try_from_secs_f64(lease_seconds)
            .map_err(|_| Error::invalid(format!("{lease_seconds} is no time for a lease")))?;
        let open = options.any(version.map(|version| version.0));
        let place = Place::new(&source, &open.store)?;
        let opened = recognise(&place).await?.open(&place, &open).await?;
        let store = Store::open(target, &open.store)?;
        let request = Request {
            source,
            open: open.clone(),
            spec: wanted.spec.map(String::into_bytes),
            array: wanted.array,
            scales: wanted.scales,
            ids: wanted.ids,
            emit: wanted.emit,
            arrow: wanted.arrow,
            factor: wanted.factor,
        };
        let plan = Plan::of(&opened, &place, &request, &store)?;
        let exporter = Exporter::new(plan, opened, store, open.store.limits).await?;
        let plan = ExportJob { task_bytes, lease };
        let (job, _) = plan.create(Store::open(job, &open.store)?, &exporter).await?;
        Ok(job.tasks())
    })
}

/// Works on a job until it is finished, beside any number of other processes; gives what was done here, and the outcome.
#[pyfunction]
pub(crate) fn work_on<'py>(
    py: Python<'py>,
    job: &str,
    options: OpenOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let summary = wait(py, worked(job, &options))?;
    let document = json!({
        "tasks": summary.tasks,
        "refused": summary.refused,
        "outcome": summary.outcome,
    });
    json::to_python(py, &document)
}

async fn worked(url: &str, options: &OpenOptions) -> Result<Summary> {
    let open = options.any(None);
    let job = Job::open(Store::open(url, &open.store)?).await?;
    let worker = WorkerOptions::default();
    match job.kind() {
        CONVERT => {
            let meter = Arc::new(Meter::default());
            let work = ConversionWork::new(&job, WorkOptions { store: open.store, meter })?;
            run(&job, &work, &worker).await
        }
        EXPORT => {
            let work = ExportWork::new(&job, open, Arc::new(Progress::default()))?;
            run(&job, &work, &worker).await
        }
        kind => Err(Error::unsupported(format!("a job of kind {kind:?}, {url}"))),
    }
}
