//! Which work a journal records, for the workers that join it.
//!
//! A member writes only while the journal holds its own plan. A member that comes late, when the work
//! is over or another one is under way, finds that out and stops.

use chunkyard_store::{Error, Result, Store};

use super::sink::JOURNAL_PLAN;

/// The key of a ticket that names the plan, by a checksum of the plan in the journal.
pub(crate) const PLAN: &str = "plan";

/// Tells the plan of a journal from other plans: the checksum at its end. (A checksum over the whole
/// plan, end included, would be the same for every plan.)
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

/// Explains why work is no longer where it was left: only finishing the conversion, or starting it
/// anew, removes it.
pub fn taken_away(journal: &Store, error: Error) -> Error {
    match error {
        Error::NotFound { name, .. } => Error::Conflict {
            message: format!(
                "another process has finished or restarted the same conversion meanwhile: {name}, \
                 of {}, is gone",
                journal.url()
            ),
            conflicts: Vec::new(),
        },
        other => other,
    }
}
