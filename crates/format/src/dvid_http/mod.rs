//! A labelmap of a DVID server, over its HTTP interface: `dvid+http://host:port/version/data`.
//!
//! ```text
//!  DvidHttp ──▶ DvidSource ─┬─ info      what the server says about the data: type, blocks, extents, scales
//!                           ├─ repos     its versions, and which one is meant
//!                           ├─ level     the array of each scale, and which block each chunk is
//!                           ├─ walk      which blocks are stored, box by box
//!                           └─ store::dvid_http: blocks, mapping, label indices, labels
//! ```
//!
//! Arrays `/s0`, `/s1` … hold supervoxels, `uint64` with the axes z, y, x. A chunk is a block of the server, and its bytes are the
//! stored ones, so a conversion to another place that keeps label blocks copies them. What is no array has functions of its own:
//! [`DvidSource::mapping`], [`DvidSource::indices`], [`DvidSource::labels`], [`DvidSource::sizes`], [`repos_info`].
//!
//! Compatible implementations: DVID 1.0.0, against which the tests run. docs/formats/dvid-http.md has the requests, their cost and
//! what cannot be known.

mod info;
mod level;
mod repos;
mod source;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::dvid_http::{Address, SCHEMES};
use chunkyard_store::{Error, Result};

pub use self::info::Info;
pub use self::repos::{Data, Node, Repo, repos_info};
pub use self::source::DvidSource;
use super::{Format, OpenOptions, Place, Probe, Source};

/// Labelmaps of a DVID server. Read, not written.
#[derive(Debug, Clone, Copy)]
pub struct DvidHttp;

#[async_trait]
impl Format for DvidHttp {
    fn name(&self) -> &'static str {
        "dvid-http"
    }

    fn schemes(&self) -> &'static [&'static str] {
        SCHEMES
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        Ok(match Address::parse(place.url()) {
            Ok(_) => Probe::Yes("its URL names a DVID server".to_owned()),
            Err(_) => Probe::No("its URL names no DVID server".to_owned()),
        })
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        if let Some(version) = &options.version {
            return Err(Error::invalid(format!(
                "the URL of a DVID server names the version, so {version} cannot be chosen besides"
            )));
        }
        Ok(Arc::new(DvidSource::open(place.url(), &options.store).await?))
    }
}
