//! The format: a Badger directory with DVID's metadata in it, or a URL of its own scheme.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::Result;

use super::source::DvidSource;
use super::store::{DvidOptions, DvidStore};
use super::url::{DvidUrl, SCHEME};
use crate::{Format, OpenOptions, Place, Probe, Source};

/// Stores of DVID, read only.
#[derive(Debug, Clone, Copy)]
pub struct DvidFormat;

#[async_trait]
impl Format for DvidFormat {
    fn name(&self) -> &'static str {
        "dvid"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        if DvidUrl::is_one(place.url()) {
            return Ok(Probe::Yes(format!("the scheme {SCHEME}://")));
        }
        Ok(match DvidStore::probe(place.directory()).await? {
            true => Probe::Yes("a Badger store with a DVID repository".into()),
            false => Probe::No("no Badger store with a DVID repository".into()),
        })
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("a URL of DVID names its version by uuid=, and it")?;
        let url = DvidUrl::parse(place.url())?;
        let options =
            DvidOptions { store: options.store.clone(), skip_corrupt: options.skip_corrupt };
        Ok(Arc::new(DvidSource::open(&url, &options).await?))
    }
}
