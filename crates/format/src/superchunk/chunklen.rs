//! The default lengths of chunks and superchunks, from how much data is expected.

/// A quarter of the smallest chunk size, in which BLZ and bcolz differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// 1 KiB, as in BLZ and the document's example.
    Blz,
    /// 4 KiB, as in bcolz.
    Bcolz,
}

impl Base {
    fn bytes(self) -> u64 {
        match self {
            Self::Blz => 1 << 10,
            Self::Bcolz => 4 << 10,
        }
    }
}

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// Rows of a chunk for `expectedlen` rows of `row_bytes` bytes: twice as long for ten times the data.
///
/// The rule of both programs is `base × 2^(6 + trunc(log10(MiB)))`, with a size from 0.0001 to 10000 MiB.
pub(crate) fn chunklen(expectedlen: u64, row_bytes: u64, base: Base) -> u64 {
    let row_bytes = row_bytes.max(1);
    let bytes = u128::from(expectedlen) * u128::from(row_bytes);
    let mib = u128::from(MIB);
    // The truncated logarithm in whole numbers: count the powers of ten below the size, or above it.
    let above = (1..=4).take_while(|&power| bytes >= mib * 10u128.pow(power)).count();
    let below = (1..=4).take_while(|&power| bytes.saturating_mul(10u128.pow(power)) <= mib).count();
    let chunk_bytes = base.bytes() << (6 + above - below);
    (chunk_bytes / row_bytes).max(1)
}

/// Chunks of a superchunk, for `expected_bytes` of data in chunks of `chunk_bytes`, both uncompressed.
///
/// Files have 16 to 512 MiB, and are about 64 if that suffices; beyond 4 TiB of data they have up to 2 GiB.
/// So the table of offsets never exceeds 32 KiB.
pub(crate) fn superchunk(expected_bytes: u64, chunk_bytes: u64) -> u64 {
    let most = if expected_bytes > 4 * TIB { 2048 * MIB } else { 512 * MIB };
    let target = (expected_bytes / 64).clamp(16 * MIB, most);
    (target / chunk_bytes.max(1)).clamp(1, 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_example_has_its_chunklen() {
        assert_eq!(chunklen(10_000_000, 8, Base::Blz), 16384);
    }

    #[test]
    fn ten_times_the_data_doubles_the_chunk() {
        let table = [
            (13, 512),
            (100, 1024),
            (1_000, 2048),
            (10_000, 4096),
            (100_000, 8192),
            (1_000_000, 8192),
            (10_000_000, 16384),
            (100_000_000, 32768),
            (1_000_000_000, 65536),
            (2_000_000_000, 131_072),
            (u64::MAX, 131_072),
        ];
        for (rows, expected) in table {
            assert_eq!(chunklen(rows, 8, Base::Blz), expected, "{rows}");
            assert_eq!(chunklen(rows, 8, Base::Bcolz), expected * 4, "{rows}");
        }
        assert_eq!(chunklen(0, 8, Base::Blz), 512);
    }

    #[test]
    fn a_new_chunk_length_begins_at_each_power_of_ten() {
        let chunk = |bytes| chunklen(bytes, 1, Base::Blz);
        assert_eq!([10 * MIB - 1, 10 * MIB].map(chunk), [64 << 10, 128 << 10]);
        assert_eq!([10_000 * MIB - 1, 10_000 * MIB].map(chunk), [512 << 10, 1 << 20]);
        // A tenth of a MiB is 104857.6 bytes.
        assert_eq!([104_857, 104_858].map(chunk), [32 << 10, 64 << 10]);
    }

    #[test]
    fn a_chunk_has_whole_rows_and_at_least_one() {
        assert_eq!(chunklen(1000, 24, Base::Blz), (32 << 10) / 24);
        assert_eq!(chunklen(10, 1 << 30, Base::Bcolz), 1);
        assert_eq!(chunklen(10, 0, Base::Blz), 4096);
    }

    #[test]
    fn superchunks_grow_with_the_data() {
        let kib = 1024;
        let table = [
            (8_000_000, 256 * kib, 64),
            (80_000_000, 512 * kib, 32),
            (8_000_000_000, 2 * MIB, 59),
            (TIB, 4 * MIB, 128),
            (100 * TIB, 4 * MIB, 512),
            (0, 1, 4096),
            (u64::MAX, u64::MAX, 1),
            (0, 0, 4096),
        ];
        for (expected_bytes, chunk_bytes, chunks) in table {
            assert_eq!(superchunk(expected_bytes, chunk_bytes), chunks, "{expected_bytes}");
        }
    }
}
