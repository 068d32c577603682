//! The checksums inside tables, of one of two kinds.

use chunkyard_store::{Error, Result};
use prost::Message;
use twox_hash::XxHash64;

use super::wire::corrupt;

#[derive(Clone, Copy, PartialEq, Message)]
struct Stored {
    #[prost(int32, tag = "1")]
    algo: i32,
    #[prost(uint64, tag = "2")]
    sum: u64,
}

/// Compares bytes with the checksum that is stored behind them.
pub(super) fn check(file: &str, what: &str, stored: &[u8], bytes: &[u8]) -> Result<()> {
    let stored = Stored::decode(stored).map_err(|error| {
        corrupt(file, format!("checksum of {what}"), "protobuf", error.to_string())
    })?;
    let found = match stored.algo {
        0 => u64::from(crc32c::crc32c(bytes)),
        1 => XxHash64::oneshot(0, bytes),
        other => {
            return Err(Error::unsupported(format!("checksum kind {other} of {what} in {file}")));
        }
    };
    if found == stored.sum {
        return Ok(());
    }
    let (expected, found) = (format!("{:08x}", stored.sum), format!("{found:08x}"));
    Err(corrupt(file, format!("checksum of {what}"), expected, found))
}
