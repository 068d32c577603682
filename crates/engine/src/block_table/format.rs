//! Block tables as one of the formats that a URL may name.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_format::{Format, OpenOptions, Place, Probe, Source, TABLE};
use chunkyard_store::{Error, Result};

use super::source::TableSource;

/// A directory of block tables, named `table:DIR`. The directory of an export may hold a volume and Arrow shards besides, so
/// its content does not say what is meant.
#[derive(Debug, Clone, Copy)]
pub struct BlockTable;

#[async_trait]
impl Format for BlockTable {
    fn name(&self) -> &'static str {
        "block table"
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        Ok(match place.url().starts_with(TABLE) {
            true => Probe::Yes(format!("it is named {TABLE}PLACE")),
            false => Probe::No(format!("it is not named {TABLE}PLACE")),
        })
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        if let Some(version) = &options.version {
            let what = format!("block tables keep one version only, so there is no {version}");
            return Err(Error::invalid(what));
        }
        Ok(Arc::new(TableSource::open(place.directory().clone()).await?))
    }
}
