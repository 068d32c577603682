//! Whose work a journal records, as those see it who join it.
//!
//! A member writes only while the journal is that of its plan. Whoever comes late, when the work is
//! over or another one is under way, finds that out and stops.

use chunkyard_store::{Error, Result, Store};

use super::sink::JOURNAL_PLAN;

/// The key of a ticket that names the plan, by the checksum of what the journal says of it.
pub(crate) const PLAN: &str = "plan";

/// What tells the plan of a journal from others: the checksum at its end. (That of all of it would be
/// the same for every plan.)
pub(crate) async fn plan_of(journal: &Store) -> Result<u32> {
    let bytes = journal.get(JOURNAL_PLAN).await?.bytes;
    Ok(bytes.last_chunk().map_or(0, |crc| u32::from_le_bytes(*crc)))
}

/// Whether an attempt got so far that there may be something to resume.
pub(crate) async fn has_plan(journal: &Store) -> Result<bool> {
    match journal.head(JOURNAL_PLAN).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fails where the work of a plan is over, or was never here.
pub(crate) async fn check_plan(journal: &Store, plan: u64, url: &str) -> Result<()> {
    let over = |why: &str| {
        let message = format!("{url} takes no packs of this plan: {why}");
        Err(Error::Conflict { message, conflicts: Vec::new() })
    };
    match plan_of(journal).await {
        Ok(found) if u64::from(found) == plan => Ok(()),
        Ok(_) => over("another conversion is under way there"),
        Err(Error::NotFound { .. }) => {
            over("the conversion is over, or this place is not shared by all workers")
        }
        Err(error) => Err(error),
    }
}

/// Says of work that is not where it was left why that is: it goes when the conversion is finished, or
/// begun anew, and nobody else takes it away.
pub fn taken_away(journal: &Store, error: Error) -> Error {
    match error {
        Error::NotFound { name, .. } => Error::Conflict {
            message: format!(
                "somebody else has finished the same conversion meanwhile, or begun it anew: {name}, \
                 of {}, is gone",
                journal.url()
            ),
            conflicts: Vec::new(),
        },
        other => other,
    }
}
