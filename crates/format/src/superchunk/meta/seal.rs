//! The checksum at the end of a meta file of ours.
//!
//! ```text
//!  {"shape": [95], …, "__crc32c__": "1a2b3c4d"}\n
//!  └─ CRC-32C of these bytes ─┘
//! ```
//!
//! It is the last member of the one object in the file, so it is replaced in the same step as the bytes it
//! covers, and a program that does not know it sees one more key. Every byte of the file counts: the bytes
//! before the member are covered, and the member itself has only one valid spelling.

use chunkyard_store::{Error, Result};

use crate::superchunk::corrupt;

/// The key of the checksum.
pub const SEAL: &str = "__crc32c__";

/// A file of one JSON object, with a checksum as its last member.
pub fn sealed(mut line: Vec<u8>) -> Vec<u8> {
    line.truncate(line.trim_ascii_end().len().saturating_sub(1));
    let member = member(&line);
    line.extend(member);
    line
}

/// The end of a file that begins with these bytes.
fn member(body: &[u8]) -> Vec<u8> {
    let comma = if body == b"{" { "" } else { ", " };
    format!("{comma}\"{SEAL}\": \"{:08x}\"}}\n", crc32c::crc32c(body)).into_bytes()
}

/// Refuses a file that has this key and a wrong checksum.
pub fn check(file: &str, bytes: &[u8]) -> Result<()> {
    let shortest = member(b"{").len();
    let body = bytes.get(..bytes.len().saturating_sub(shortest)).unwrap_or_default();
    let body = body.strip_suffix(b", ").unwrap_or(body);
    let expected = member(body);
    match bytes.get(body.len()..) == Some(expected.as_slice()) {
        true => Ok(()),
        false => Err(broken(file, &digits(&expected), &digits(bytes))),
    }
}

/// The digits at the end of a file.
fn digits(file: &[u8]) -> String {
    let end = file.strip_suffix(b"\"}\n").and_then(|rest| rest.last_chunk::<8>());
    end.map_or_else(|| "something else".to_owned(), |digits| digits.escape_ascii().to_string())
}

/// A file that has no checksum although others of the dataset have theirs.
pub fn unsealed(file: &str) -> Error {
    broken(file, "one, because other meta files of the dataset have theirs", "none")
}

fn broken(file: &str, expected: &str, found: &str) -> Error {
    let next = match file.rsplit('/').next() {
        Some("attributes") => {
            "if another program changed it on purpose, `chunkyard blz repair` accepts it as it is"
        }
        Some("sizes") => "`chunkyard blz repair` writes it anew from what the files hold",
        _ => "bring the file back from a copy",
    };
    corrupt(file, "its checksum", expected, format!("{found}; {next}"))
}
