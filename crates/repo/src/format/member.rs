//! A fork as a member of a sink: it writes chunk files, and its receipts carry the references.
//!
//! Two forks that write the same pack write two files. The commit refers to the file whose receipt
//! was accepted; the other is garbage and gets collected, like files of an abandoned session.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_format::{Dataset, Pack, PackSink, PackWriter, Place, Receipt, Ticket};
use chunkyard_store::{Error, Result};

use super::sink::{gather, sync};
use crate::session::{Fork, Session};
use crate::{OpenOptions, Repository};

/// Reads a ticket: a session that was handed out.
pub(super) fn ticket(fork: Fork) -> Result<Ticket> {
    let fork = serde_json::to_value(fork.without_chunks());
    fork.map(Ticket).map_err(|error| Error::invalid(format!("a ticket for a repository: {error}")))
}

/// Writes packs for a commit elsewhere.
#[derive(Debug)]
pub(super) struct Member {
    session: Arc<Session>,
}

impl Member {
    pub(super) async fn join(place: &Place, dataset: &Dataset, ticket: &Ticket) -> Result<Self> {
        let fork: Fork = serde_json::from_value(ticket.0.clone()).map_err(|error| {
            Error::invalid(format!("this is no ticket for a repository: {error}"))
        })?;
        let repo = Repository::open_in(place.directory().clone(), OpenOptions::default()).await?;
        let session = repo.open_fork(fork).await?;
        // Fails now instead of at some later pack.
        for (path, _) in dataset.arrays() {
            session.node(path)?;
        }
        Ok(Self { session })
    }
}

#[async_trait]
impl PackSink for Member {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        Ok(gather(&self.session, &self.session.node(&pack.array)?))
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        sync(&self.session, receipts).await
    }
}
