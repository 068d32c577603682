//! Writing packs for a sink in another process, whose dataset is staged.
//!
//! In a directory, each attempt at a pack writes into a directory of its own. The sink renames the
//! objects of the attempts that it accepts into their places. So attempts that are repeated, slow,
//! killed or forgotten never touch accepted objects. On an object store each object is put in its
//! place in one step, and every worker puts the same bytes there.
//!
//! A member writes only while the journal holds its own plan. A member that comes late, when the
//! dataset is complete or another one is being written, finds that out and stops.

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{Error, Result, Store};
use serde_json::json;

use super::staging::{Shared, Staging};
use crate::joined::{PLAN, check_plan, plan_of};
use crate::{HELD_BYTES_MAX, Pack, PackSink, PackWriter, Place, Receipt, Ticket};

/// How the first line of a receipt begins if it names an attempt. No path is absolute.
const ATTEMPT: &str = "/";

/// A ticket for the work that a journal records.
pub(crate) async fn ticket(journal: &Store) -> Result<Ticket> {
    Ok(Ticket(json!({ PLAN: plan_of(journal).await? })))
}

/// Where the objects of each array go.
pub(crate) trait Writers: std::fmt::Debug + Send + Sync {
    /// A writer of a pack, into a store that is the root of the dataset or stands in for it.
    fn writer(&self, pack: &Pack, store: Store) -> Result<Box<dyn PackWriter>>;

    /// Bytes of a pack that may wait in memory until it is complete.
    fn held_bytes_max(&self, _store: &Store) -> u64 {
        HELD_BYTES_MAX
    }
}

/// Writes packs of a dataset.
#[derive(Debug)]
pub(crate) struct Member<W> {
    url: String,
    shared: Shared,
    writers: W,
    plan: u64,
}

impl<W: Writers> Member<W> {
    pub(crate) async fn join(place: &Place, writers: W, ticket: &Ticket) -> Result<Self> {
        let plan = ticket.0.get(PLAN).and_then(serde_json::Value::as_u64);
        let no_ticket = || Error::invalid(format!("this is no ticket for {}", place.url()));
        let (plan, shared) = (plan.ok_or_else(no_ticket)?, Staging::shared(place)?);
        let member = Self { url: place.url().to_owned(), shared, writers, plan };
        member.check_plan().await?;
        Ok(member)
    }

    async fn check_plan(&self) -> Result<()> {
        check_plan(&self.shared.journal, self.plan, &self.url).await
    }
}

#[async_trait]
impl<W: Writers> PackSink for Member<W> {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.check_plan().await?;
        let Some(attempts) = &self.shared.attempts else {
            return self.writers.writer(pack, self.shared.data.clone());
        };
        let random = getrandom::u64().map_err(|error| Error::store("name", "a pack", error))?;
        let attempt = format!("{random:016x}");
        let writer = self.writers.writer(pack, attempts.below(&attempt)?)?;
        Ok(Box::new(AttemptWriter { attempt, writer }))
    }

    fn held_bytes_max(&self) -> u64 {
        self.writers.held_bytes_max(&self.shared.data)
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        let (mut in_place, mut aside) = (Vec::new(), Vec::new());
        for receipt in receipts {
            let Attempt { attempt, paths } = Attempt::parse(receipt)?;
            match attempt {
                None => in_place.extend(paths),
                Some(attempt) => {
                    aside.extend(paths.into_iter().map(|path| format!("{attempt}/{path}")));
                }
            }
        }
        if let Some(attempts) = &self.shared.attempts {
            attempts.sync(&aside).await?;
        }
        self.shared.data.sync(&in_place).await
    }
}

/// A pack written aside.
struct AttemptWriter {
    attempt: String,
    writer: Box<dyn PackWriter>,
}

#[async_trait]
impl PackWriter for AttemptWriter {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        self.writer.push(chunks).await
    }

    async fn close(self: Box<Self>) -> Result<Receipt> {
        let written = self.writer.close().await?;
        let mut lines = vec![format!("{ATTEMPT}{}", self.attempt)];
        lines.extend(parse_receipt(&written)?);
        Ok(receipt(written.chunks, written.bytes, &lines))
    }
}

/// What the receipt of a member says.
#[derive(Debug)]
struct Attempt {
    /// Where the objects are until they are taken over; `None` if they are in their places.
    attempt: Option<String>,
    /// The objects.
    paths: Vec<String>,
}

impl Attempt {
    fn parse(receipt: &Receipt) -> Result<Self> {
        let mut paths = parse_receipt(receipt)?;
        let first = paths.first().and_then(|line| line.strip_prefix(ATTEMPT)).map(str::to_owned);
        if first.is_some() {
            paths.remove(0);
        }
        Ok(Self { attempt: first, paths })
    }
}

impl Staging {
    /// Makes the objects of packs that were written in their places durable.
    pub(crate) async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        let mut paths = Vec::new();
        for receipt in receipts {
            paths.extend(parse_receipt(receipt)?);
        }
        self.data.sync(&paths).await
    }

    /// Takes over the pack of a member, and returns the receipt that the sink itself would have
    /// written.
    pub(crate) async fn accept(&self, given: &Receipt) -> Result<Receipt> {
        let written = Attempt::parse(given)?;
        if let Some(attempt) = &written.attempt {
            self.take_over(attempt, &written.paths).await?;
        }
        Ok(receipt(given.chunks, given.bytes, &written.paths))
    }
}

/// The receipt of a pack: the objects it consists of.
pub(crate) fn receipt(chunks: u64, bytes: u64, paths: &[String]) -> Receipt {
    Receipt { chunks, bytes, body: paths.join("\n").into() }
}

fn parse_receipt(receipt: &Receipt) -> Result<Vec<String>> {
    let text = std::str::from_utf8(&receipt.body)
        .map_err(|error| Error::invalid(format!("the receipt of a pack: {error}")))?;
    Ok(text.lines().map(str::to_owned).collect())
}
