//! One step of a task.
//!
//! ```text
//!  {"step":"claim","worker":"01k…"}
//!  {"step":"failed","worker":"01k…","error":"…"}
//!  {"step":"done","worker":"01k…","bytes":4711,"crc32c":305419896}⏎ result
//! ```

use bytes::Bytes;
use chunkyard_store::{Error, Result, Uid};
use serde::{Deserialize, Serialize};

/// Bytes of the first line of a step at most. Messages of errors are cut to fit.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes of a message at most.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// What a step says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A worker holds the task from here on.
    Claim { worker: Uid },
    /// The worker that held it could not do it.
    Failed { worker: Uid, error: String },
    /// It is done.
    Done { worker: Uid, result: Bytes },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum Head {
    Claim { worker: Uid },
    Failed { worker: Uid, error: String },
    Done { worker: Uid, bytes: u64, crc32c: u32 },
}

impl Entry {
    pub(super) fn render(&self) -> Result<Bytes> {
        let (head, result) = match self {
            Self::Claim { worker } => (Head::Claim { worker: *worker }, None),
            Self::Failed { worker, error } => {
                (Head::Failed { worker: *worker, error: cut(error).to_owned() }, None)
            }
            Self::Done { worker, result } => {
                let (bytes, crc32c) = (result.len() as u64, crc32c::crc32c(result));
                (Head::Done { worker: *worker, bytes, crc32c }, Some(result))
            }
        };
        let mut bytes = serde_json::to_vec(&head)
            .map_err(|error| Error::invalid(format!("a step of a job: {error}")))?;
        bytes.push(b'\n');
        if let Some(result) = result {
            bytes.extend_from_slice(result);
        }
        Ok(bytes.into())
    }

    /// Reads the object `file`.
    pub(super) fn parse(file: &str, bytes: &Bytes) -> Result<Self> {
        let corrupt = |what: &str, expected: String, found: String| Error::Corrupt {
            file: file.to_owned(),
            what: what.to_owned(),
            expected,
            found,
        };
        let end = bytes.iter().take(HEAD_BYTES_MAX).position(|&byte| byte == b'\n');
        let no_line = || {
            let expected = format!("a line of up to {HEAD_BYTES_MAX} bytes");
            corrupt(
                "step of a job",
                expected,
                format!("{} bytes without an end of line", bytes.len()),
            )
        };
        let (head, rest) = bytes.split_at(end.ok_or_else(no_line)?);
        let head: Head = serde_json::from_slice(head).map_err(|error| {
            corrupt("step of a job", "claim, failed or done, as JSON".to_owned(), error.to_string())
        })?;
        let result = bytes.slice_ref(rest.get(1..).unwrap_or_default());
        Ok(match head {
            Head::Claim { worker } => Self::Claim { worker },
            Head::Failed { worker, error } => Self::Failed { worker, error },
            Head::Done { worker, bytes, crc32c } => {
                let found = (result.len() as u64, crc32c::crc32c(&result));
                if found != (bytes, crc32c) {
                    return Err(corrupt(
                        "result of a task",
                        format!("{bytes} bytes with CRC-32C {crc32c:08x}"),
                        format!("{} bytes with CRC-32C {:08x}", found.0, found.1),
                    ));
                }
                Self::Done { worker, result }
            }
        })
    }
}

/// The beginning of a message, of whole characters.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_round_trips_and_damage_to_a_result_is_found() {
        let worker = Uid::fresh().unwrap();
        let entries = [
            Entry::Claim { worker },
            Entry::Failed { worker, error: "cannot read \"x\"\nat all".to_owned() },
            Entry::Done { worker, result: Bytes::from_static(b"receipts\n\0\xff") },
            Entry::Done { worker, result: Bytes::new() },
        ];
        for entry in entries {
            assert_eq!(Entry::parse("x", &entry.render().unwrap()).unwrap(), entry);
        }
        let done = Entry::Done { worker, result: Bytes::from_static(b"receipts") };
        let bytes = done.render().unwrap();
        for at in 0..bytes.len() {
            assert!(Entry::parse("x", &bytes.slice(..at)).is_err(), "cut at {at}");
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            assert_ne!(Entry::parse("x", &damaged.into()).ok(), Some(done.clone()), "{at}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let worker = Uid::fresh().unwrap();
        let failed = Entry::Failed { worker, error: "ä".repeat(MESSAGE_BYTES_MAX) };
        let Entry::Failed { error, .. } = Entry::parse("x", &failed.render().unwrap()).unwrap()
        else {
            panic!("another step");
        };
        assert_eq!(error, "ä".repeat(MESSAGE_BYTES_MAX / 2));
    }
}
