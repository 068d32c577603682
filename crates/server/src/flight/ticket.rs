//! Tickets and commands: what they are for, as JSON. Nothing in them is trusted; a claim is compared with what this server has
//! handed out.

use chunkyard_engine::Error;
use serde::{Deserialize, Serialize};

use crate::jobs::{Failed, Named, Outcome};

/// Bytes of a ticket or a command at most.
const BYTES_MAX: usize = 64 << 10;
/// Endpoints at most.
const ENDPOINTS_MAX: u64 = 4096;

/// What `DoGet` is to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Ticket {
    /// The task of a claim.
    Claim(Named),
    /// A part of the blocks of a job that are not acknowledged yet.
    Read(Reading),
    /// A region of an array.
    Array(Wanted),
}

/// A part of the blocks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reading {
    pub(super) job: String,
    pub(super) worker: u64,
    pub(super) workers: u64,
}

/// A region of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    pub(super) source: String,
    #[serde(default)]
    pub(super) at: Option<String>,
    #[serde(default)]
    pub(super) path: Option<String>,
    #[serde(default)]
    pub(super) region: Option<String>,
}

/// What the descriptor of a flight asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// The blocks of a job, for so many readers.
    Job { job: String, workers: u64 },
    /// A region of an array.
    Array(Wanted),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    workers: Option<u64>,
    #[serde(default)]
    array: Option<Wanted>,
}

impl Ticket {
    pub(super) fn parse(bytes: &[u8]) -> Outcome<Self> {
        bounded("a ticket", bytes)?;
        let ticket: Self =
            serde_json::from_slice(bytes).map_err(|error| wrong("a ticket", &error))?;
        if let Self::Read(reading) = &ticket
            && (reading.workers > ENDPOINTS_MAX || reading.worker >= reading.workers)
        {
            return Err(Failed::from(Error::invalid(format!(
                "part {} of {} of a job",
                reading.worker, reading.workers
            ))));
        }
        Ok(ticket)
    }

    pub(super) fn render(&self) -> Outcome<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| wrong("a ticket", &error))
    }
}

impl Command {
    pub(super) fn parse(bytes: &[u8]) -> Outcome<Self> {
        bounded("a command", bytes)?;
        let raw: RawCommand =
            serde_json::from_slice(bytes).map_err(|error| wrong("a command", &error))?;
        match raw {
            RawCommand { job: Some(job), workers, array: None } => {
                let workers = workers.unwrap_or(1);
                match (1..=ENDPOINTS_MAX).contains(&workers) {
                    true => Ok(Self::Job { job, workers }),
                    false => Err(Failed::from(Error::invalid(format!(
                        "a job is read by 1 to {ENDPOINTS_MAX} workers, not {workers}"
                    )))),
                }
            }
            RawCommand { job: None, workers: None, array: Some(array) } => Ok(Self::Array(array)),
            _ => Err(Failed::from(Error::invalid(
                "a command names a job, with the number of workers, or an array",
            ))),
        }
    }
}

fn bounded(what: &str, bytes: &[u8]) -> Outcome<()> {
    match bytes.len() <= BYTES_MAX {
        true => Ok(()),
        false => Err(Failed::from(Error::invalid(format!(
            "{what} of {} bytes; the most is {BYTES_MAX}",
            bytes.len()
        )))),
    }
}

fn wrong(what: &str, error: &serde_json::Error) -> Failed {
    Failed::from(Error::invalid(format!("{what} that is none of this server's: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_round_trip_and_others_are_refused() {
        let claim = Named { worker: "w".to_owned(), job: "0".repeat(32), task: 3, epoch: 1 };
        let reading = Reading { job: "0".repeat(32), worker: 1, workers: 2 };
        let wanted = Wanted { source: "a".to_owned(), at: None, path: None, region: None };
        for ticket in [Ticket::Claim(claim), Ticket::Read(reading), Ticket::Array(wanted)] {
            assert_eq!(Ticket::parse(&ticket.render().unwrap()).unwrap(), ticket);
        }
        for text in [
            "",
            "{}",
            "[]",
            "null",
            "\u{0}",
            r#"{"claim": {}}"#,
            r#"{"claim": null, "array": null}"#,
            r#"{"read": {"job": "x", "worker": 2, "workers": 2}}"#,
            r#"{"read": {"job": "x", "worker": 0, "workers": 0}}"#,
            r#"{"read": {"job": "x", "worker": -1, "workers": 2}}"#,
            r#"{"array": {"source": "a", "sauce": 1}}"#,
            r#"{"claim": {"worker": "w", "job": "x", "task": 1e99, "epoch": 0}}"#,
        ] {
            assert!(Ticket::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Ticket::parse(&vec![b' '; BYTES_MAX + 1]).is_err());
        let deep = "[".repeat(10_000);
        assert!(
            Ticket::parse(deep.as_bytes()).is_err() && Command::parse(deep.as_bytes()).is_err()
        );
    }

    #[test]
    fn a_command_names_a_job_or_an_array() {
        let job = Command::parse(br#"{"job": "x", "workers": 3}"#).unwrap();
        assert_eq!(job, Command::Job { job: "x".to_owned(), workers: 3 });
        assert!(matches!(Command::parse(br#"{"array": {"source": "a"}}"#), Ok(Command::Array(_))));
        for text in [
            "{}",
            r#"{"job": "x", "workers": 0}"#,
            r#"{"job": "x", "workers": 4097}"#,
            r#"{"job": "x", "array": {"source": "a"}}"#,
            r#"{"workers": 3}"#,
            r#"{"jobs": "x"}"#,
        ] {
            assert!(Command::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
