//! What all handlers share.

use std::sync::Arc;

use chunkyard_engine::Result;
use tokio::sync::watch;

use crate::Config;
use crate::access::Access;
use crate::dvid;
use crate::flight::Streams;
use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::views;

/// What all handlers share; a cheap clone.
#[derive(Debug, Clone)]
pub struct State {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    access: Access,
    places: Places,
    dvid: dvid::Kept,
    views: views::Kept,
    metrics: Metrics,
    stopping: watch::Sender<bool>,
    jobs: Arc<Jobs>,
    streams: Streams,
}

/// Tells when the server begins to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl State {
    /// The state of a server. Places are opened when they are first asked for.
    pub fn new(config: Config) -> Result<Self> {
        config.check()?;
        let access = Access::new(config.tokens.clone());
        let places = Places::new(&config)?;
        let stopping = watch::Sender::new(false);
        let dvid = dvid::Kept::new(config.limits.answer_bytes_max);
        let views = {
            let limits = &config.limits;
            // The largest value, decoded on both sides.
            let making = limits.answer_bytes_max.saturating_mul(2);
            views::Kept::new(limits.cache_bytes_max, making)
        };
        let jobs = Arc::new(Jobs::new(&config)?);
        let streams = Streams::new(config.limits.streams);
        let metrics = Metrics::default();
        let inner = Inner { config, access, places, dvid, views, metrics, stopping, jobs, streams };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Who may do what.
    pub fn access(&self) -> &Access {
        &self.inner.access
    }

    /// What is served.
    pub fn places(&self) -> &Places {
        &self.inner.places
    }

    /// What the handlers of DVID's interface keep.
    pub(crate) fn dvid(&self) -> &dvid::Kept {
        &self.inner.dvid
    }

    /// Exports to workers.
    pub(crate) fn jobs(&self) -> &Arc<Jobs> {
        &self.inner.jobs
    }

    /// What is being sent over Arrow Flight.
    pub(crate) fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    /// What the handlers of views keep.
    pub(crate) fn views(&self) -> &views::Kept {
        &self.inner.views
    }

    /// Counts of what the server does.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Streams of Arrow Flight that are open, and the bytes of messages that are ready in them and not yet taken.
    pub fn streaming(&self) -> (usize, u64) {
        (self.inner.streams.open(), self.inner.streams.waiting_bytes())
    }

    /// Tells when the server begins to stop, so that answers that wait for something end.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.inner.stopping.subscribe())
    }

    /// Begins to stop.
    pub(crate) fn stop(&self) {
        self.inner.stopping.send_replace(true);
    }
}

impl Stopping {
    /// Returns when the server begins to stop, at once if it has begun.
    pub(crate) async fn wait(&mut self) {
        // The sender is gone with the last clone of the state: then all has stopped.
        drop(self.0.wait_for(|stopping| *stopping).await);
    }
}
