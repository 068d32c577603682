//! The checksums inside tables, of one of two kinds.

use chunkyard_store::Result;
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
        // Badger knows no others, and nothing guards this byte.
        other => {
            let expected = "kind 0 or 1";
            let found = format!("kind {other}");
            return Err(corrupt(file, format!("checksum of {what}"), expected, found));
        }
    };
    if found == stored.sum {
        return Ok(());
    }
    let (expected, found) = (format!("{:08x}", stored.sum), format!("{found:08x}"));
    Err(corrupt(file, format!("checksum of {what}"), expected, found))
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::*;

    fn stored(algo: i32, sum: u64) -> Vec<u8> {
        Stored { algo, sum }.encode_to_vec()
    }

    #[test]
    fn both_kinds_are_compared_and_others_refused() {
        // Published values of CRC-32C and of xxHash64 with seed 0.
        for (algo, bytes, sum) in [
            (0, "123456789", 0xe306_9283),
            (1, "", 0xef46_db37_51d8_e999),
            (1, "abc", 0x44bc_2cf5_ad77_0999),
        ] {
            check("a", "b", &stored(algo, sum), bytes.as_bytes()).unwrap();
            let error = check("a", "b", &stored(algo, sum + 1), bytes.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("checksum of b"), "{error}");
        }
        let error = check("a", "b", &stored(2, 0), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(check("a", "b", &[0xff], b"").unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
