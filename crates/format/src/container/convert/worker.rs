//! Writing parts for a sink in another process.
//!
//! Each attempt at a pack is a part of its own, and the sink counts only those that it accepts. So
//! attempts that are repeated, slow, killed or forgotten never touch accepted parts.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::{Error, Result, Store};
use serde_json::{Value, json};

use super::sink::{JOURNAL, PartsTarget};
use crate::container::layers::files::files_at;
use crate::joined::{PLAN, check_plan, plan_of};
use crate::{Dataset, Pack, PackSink, PackWriter, Place, Receipt, Ticket};

/// The key of a ticket that names the container.
const CONTAINER: &str = "container";

/// A ticket for the work that a journal records.
pub(crate) async fn ticket(journal: &Store, base: &str) -> Result<Ticket> {
    Ok(Ticket(json!({ CONTAINER: base, PLAN: plan_of(journal).await? })))
}

/// Writes parts of a container.
#[derive(Debug)]
pub(crate) struct PartsWorker {
    url: String,
    target: Arc<PartsTarget>,
    journal: Store,
    plan: u64,
}

impl PartsWorker {
    pub(crate) async fn join(place: &Place, dataset: &Dataset, ticket: &Ticket) -> Result<Self> {
        let (store, names) = files_at(place)?;
        let named = ticket.0.get(CONTAINER).and_then(Value::as_str) == Some(&names.base());
        let plan = ticket.0.get(PLAN).and_then(Value::as_u64).filter(|_| named);
        let no_ticket = || Error::invalid(format!("this is no ticket for {}", names.base()));
        let plan = plan.ok_or_else(no_ticket)?;
        let journal = store.below(&format!("{}/{JOURNAL}", names.work()))?;
        check_plan(&journal, plan, place.url()).await?;
        let target = Arc::new(PartsTarget::new(store, names, dataset)?);
        Ok(Self { url: place.url().to_owned(), target, journal, plan })
    }
}

#[async_trait]
impl PackSink for PartsWorker {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        check_plan(&self.journal, self.plan, &self.url).await?;
        self.target.writer(pack, None)
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.target.sync(receipts).await
    }
}
