//! Regions of arrays: writing and reading the field and the segmentation.

mod read;
mod write;

use std::error::Error;
use std::sync::Arc;

use chunkyard_engine::repo::{OpenOptions, Repository, Session, Version};

pub use read::{read, read_chunk, read_cold, read_series};
pub use write::write;

async fn open(directory: &str) -> Result<Arc<Session>, Box<dyn Error>> {
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    Ok(repo.readonly_session(&Version::branch("main")).await?)
}
