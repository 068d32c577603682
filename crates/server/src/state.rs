//! What all handlers share.

use std::sync::Arc;

use chunkyard_engine::Result;

use crate::Config;
use crate::access::Access;
use crate::dvid;
use crate::places::Places;

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
}

impl State {
    /// The state of a server. Places are opened when they are first asked for.
    pub fn new(config: Config) -> Result<Self> {
        let access = Access::new(config.tokens.clone());
        let places = Places::new(&config)?;
        Ok(Self { inner: Arc::new(Inner { config, access, places, dvid: dvid::Kept::default() }) })
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
}
