//! The checksum inside a state file: its last key, over all bytes before it.

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::rendered::Rendered;
use crate::state::State;

const KEY: &str = ",\"crc32c\":";

/// Renders a state with its checksum.
pub(super) fn seal(state: &State, rendered: &mut Rendered) -> Result<Bytes> {
    let mut bytes = rendered.render(state)?;
    bytes.pop(); // the closing brace comes after the checksum
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(format!("{KEY}{crc}}}").as_bytes());
    Ok(bytes.into())
}

/// Parses a state file and compares its checksum. Only a file of the bare draft has none.
pub(crate) fn open(bytes: &[u8], file: &str) -> Result<State> {
    let crc = split(bytes);
    if let Some((covered, expected)) = crc {
        let found = crc32c::crc32c(covered);
        if found != expected {
            return Err(Error::Corrupt {
                file: file.to_owned(),
                what: "checksum".into(),
                expected: format!("{expected:08x}"),
                found: format!("{found:08x}"),
            });
        }
    }
    let mut state = State::parse(bytes, file)?;
    state.unknown.shift_remove("crc32c"); // of the file, not of the state
    if crc.is_none() && !state.write_id.is_empty() {
        return Err(Error::Corrupt {
            file: file.to_owned(),
            what: "checksum".into(),
            expected: "the last key to be crc32c".into(),
            found: "none".into(),
        });
    }
    Ok(state)
}

fn split(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let body = bytes.strip_suffix(b"}")?;
    let digits = body.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (head, number) = body.split_at(body.len() - digits);
    let covered = head.strip_suffix(KEY.as_bytes())?;
    Some((covered, std::str::from_utf8(number).ok()?.parse().ok()?))
}
