//! Making a job of an export: which shards there are, and what workers are told.

use std::sync::Arc;
use std::time::Duration;

use super::document::{About, AboutScale, IndexPart, KIND, Task, Work};
use super::index;
use super::request::Request;
use crate::places::Place;
use bytes::Bytes;
use chunkyard_engine::export::{Exporter, Plan, Shards};
use chunkyard_engine::format::dvid::DvidUrl;
use chunkyard_engine::format::{self, OpenOptions, Version};
use chunkyard_engine::job::{Job, Planned};
use chunkyard_engine::store::{Limits, Store, clock};
use chunkyard_engine::{Error, Result};

/// What a stream may have in hand. Less than a client may have to hold at once, and much less than an export to files takes: there
/// are many streams.
const STREAM_BYTES: usize = 64 << 20;

/// What is opened for a job.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) url: String,
    pub(crate) version: Option<Version>,
    pub(crate) path: Option<String>,
}

impl Source {
    /// What a request means by itself.
    pub(super) fn of(request: &Request, place: &Place) -> Self {
        Self {
            url: place.url().to_owned(),
            version: request.at.as_ref().map(|at| Version::Named(at.clone())),
            path: request.path.clone(),
        }
    }

    /// Whether a URL leads to a served place, or to one version of what it has.
    fn is_of(url: &str, place: &Place) -> bool {
        let directory = |url: &str| DvidUrl::parse(url).ok().map(|url| url.directory);
        url == place.url()
            || directory(url).is_some_and(|there| directory(place.url()) == Some(there))
    }
}

/// The limits under which blocks of a stream are made.
pub(super) fn limits(options: &OpenOptions) -> Limits {
    Limits { bytes_in_flight: STREAM_BYTES, packs_in_flight: 1, ..options.store.limits }
}

/// Makes the job in a store. The second value says whether it is new: another server may have been faster.
pub(super) async fn make(
    store: Store,
    request: Request,
    place: &Place,
    source: &Source,
    lease: Duration,
) -> Result<(Job, bool)> {
    let options = place.options();
    let (plan, source) = Plan::prepare(&request.export(source, options), &store).await?;
    let exporter = Exporter::new(plan, source.clone(), store.clone(), limits(options)).await?;
    let mut shards = Vec::with_capacity(exporter.num_scales());
    for scale in 0..exporter.num_scales() {
        shards.push(exporter.shards(scale).await?);
    }
    let parts = index::parts(&exporter).await?;
    let about = about(&request, &exporter, &*source, &shards, parts.as_deref())?;
    let plan = exporter.plan().clone();
    let work = Work { request, plan, about, created_ms: clock::now_ms() };
    let work = serde_json::to_value(&work).map_err(unwritable)?;
    let planned = Planned { kind: KIND.to_owned(), work, lease };
    let blocks = shards.iter().flat_map(Shards::iter).map(|shard| Task::Blocks(vec![shard]));
    let tasks = blocks.chain(parts.into_iter().flatten().map(Task::Index));
    let tasks = tasks.map(|task| serde_json::to_vec(&task).map(Bytes::from).map_err(unwritable));
    Job::create(store, planned, tasks).await
}

fn about(
    request: &Request,
    exporter: &Exporter,
    source: &dyn format::Source,
    shards: &[Shards],
    parts: Option<&[IndexPart]>,
) -> Result<About> {
    let plan = exporter.plan();
    let info = plan.info()?;
    let scales = info.scales.iter().zip(shards).enumerate();
    let scales = scales.map(|(scale, (about, shards))| AboutScale {
        scale,
        key: about.key.clone(),
        size: about.size,
        voxel_offset: about.voxel_offset,
        chunk_size: about.chunk_size(),
        resolution: about.resolution,
        shards: shards.count(),
    });
    let count = shards.iter().map(Shards::count).fold(0, u64::saturating_add);
    let at = source.version().map(|version| match version {
        Version::Snapshot(id) => id,
        other => other.to_string(),
    });
    Ok(About {
        source: request.source.clone(),
        at: at.or_else(|| request.at.clone()),
        path: request.path.clone(),
        ids: request.ids,
        codec: request.codec.to_string(),
        stripped: plan.arrow.strip_labels,
        index: parts.is_some(),
        shards: count,
        tasks: count.saturating_add(parts.map_or(0, |parts| parts.len() as u64)),
        scales: scales.collect(),
        spec: plan.spec.clone(),
    })
}

/// Opens the source of a job again.
pub(super) async fn open(work: &Work, store: &Store, place: &Place) -> Result<Arc<Exporter>> {
    // A job says what to read, but only what is served here may be read.
    if !Source::is_of(&work.plan.source, place) {
        return Err(Error::invalid(format!(
            "the job is an export of {:?} when that was {}; now it is {}",
            work.request.source,
            work.plan.source,
            place.url()
        )));
    }
    let mut options = place.options().clone();
    options.store.limits = limits(&options);
    let exporter = Exporter::open(work.plan.clone(), store.clone(), &options).await?;
    Ok(Arc::new(exporter))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::invalid(format!("a job that cannot be written: {error}"))
}
