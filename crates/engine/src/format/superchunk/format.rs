//! BLZ among the formats.

use std::sync::Arc;

use async_trait::async_trait;

use super::directory::{ROOT_DIRS, SIZES, STORAGE};
use super::source::BlzSource;
use super::tree::HIERARCHY;
use crate::error::{Error, Result};
use crate::format::{Format, OpenOptions, Place, Probe, Source};
use crate::store::Store;

/// Compressed arrays and tables, in directories of Bloscpack files.
#[derive(Debug, Clone, Copy)]
pub struct BlzFormat;

#[async_trait]
impl Format for BlzFormat {
    fn name(&self) -> &'static str {
        "blz"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["blz", "bcolz"]
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let store = place.directory();
        for name in [HIERARCHY, ROOT_DIRS] {
            if has(store, name).await? {
                return Ok(Probe::Yes(format!("it has {name}")));
            }
        }
        match has(store, STORAGE).await? && has(store, SIZES).await? {
            true => Ok(Probe::Yes(format!("it has {STORAGE} and {SIZES}"))),
            false => Ok(Probe::No(format!(
                "neither {STORAGE} and {SIZES}, nor {ROOT_DIRS}, nor {HIERARCHY}"
            ))),
        }
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("BLZ")?;
        Ok(Arc::new(BlzSource::open(place, options).await?))
    }
}

async fn has(store: &Store, name: &str) -> Result<bool> {
    match store.head(name).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
