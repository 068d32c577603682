//! The seal of a layer: checksums of everything, statistics, and which layer of which container it is.
//!
//! array-format 0.9 has none of this. A seal is where its readers never look, between the last block
//! and the footer, so they read sealed layers like any other:
//!
//! ```text
//!  blocks … | seal | footer | u64 footer length | "ARRF"
//!
//!  seal = u32 crc32c × blocks     of each block's packed bytes, by its position in the block table
//!       | u32 crc32c × pages      of each 64 KiB of the footer
//!       | statistics              an archive as in a .stats file, or nothing
//!       | absorbed × (u64 number · [16] layer id)        layers that were merged into this one
//!       | tail: [16] container id · [16] layer id · [16] id of the layer below, zeros: none
//!               u64 sequence · u64 blocks · u64 pages · u64 statistics length · u64 absorbed
//!               u64 footer length · u32 flags (bit 0 arrays sorted by name, bit 1 chunks by coord)
//!               u32 version = 1 · u32 crc32c of absorbed and of the tail so far · "CYARDAF1"
//! ```
//!
//! A reader gets the tail with the trailer and the end of the footer, in one request; it gets the rest
//! of the seal when it wants to check its data.

use std::ops::Range;

use chunkyard_store::{Error, Result};

/// Bytes of the footer that share a checksum.
pub const PAGE_LEN: u64 = 65536;

/// Bytes of a tail.
pub const TAIL_LEN: u64 = 116;

/// [`TAIL_LEN`] as a size in memory.
const TAIL_BYTES: usize = 116;

/// Bytes of a tail that its checksum covers.
const TAIL_CHECKED: usize = TAIL_BYTES - 12;

/// Bytes of the number and the id of an absorbed layer.
const ABSORBED_LEN: u64 = 24;

pub(crate) const MAGIC: &[u8; 8] = b"CYARDAF1";
const VERSION: u32 = 1;
const ARRAYS_SORTED: u32 = 1;
const CHUNKS_SORTED: u32 = 2;
const FLAGS: u32 = ARRAYS_SORTED | CHUNKS_SORTED;

/// The content of a seal, except for the checksums and the statistics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seal {
    /// The container: the same in all its layers.
    pub container: [u8; 16],
    /// This layer.
    pub layer: [u8; 16],
    /// The layer below; zeros if there is none.
    pub parent: [u8; 16],
    /// The highest layer number that this container has used so far.
    pub sequence: u64,
    /// Whether arrays are sorted by the bytes of their names.
    pub arrays_sorted: bool,
    /// Whether every chunk table is sorted by coord, row-major.
    pub chunks_sorted: bool,
    /// Blocks of the layer.
    pub blocks: u64,
    /// Pages of its footer.
    pub pages: u64,
    /// Bytes of the statistics.
    pub statistics_len: u64,
    /// Bytes of the footer.
    pub footer_size: u64,
    /// Number and id of the layers that were merged into this one.
    pub absorbed: Vec<(u64, [u8; 16])>,
}

/// The content of a seal's tail: everything but the absorbed layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    seal: Seal,
    absorbed: u64,
    crc: u32,
    flags: u32,
    version: u32,
}

impl Tail {
    /// Bytes of the whole seal.
    pub fn seal_len(&self) -> u64 {
        self.seal.before_absorbed() + self.parse_len()
    }

    /// Bytes at the end of the seal that [`parse`] needs.
    pub fn parse_len(&self) -> u64 {
        self.absorbed * ABSORBED_LEN + TAIL_LEN
    }

    /// Bytes of the footer.
    pub fn footer_size(&self) -> u64 {
        self.seal.footer_size
    }

    /// Refuses features of later releases. Only a correct checksum tells these from damage, so it is
    /// compared before.
    fn refuse_unknown(&self) -> Result<()> {
        let Self { version, flags, .. } = self;
        if *version != VERSION {
            return Err(Error::unsupported(format!("a layer with a seal of version {version}")));
        }
        if flags & !FLAGS != 0 {
            return Err(Error::unsupported(format!("a layer with flags {flags:#x} in its seal")));
        }
        Ok(())
    }
}

/// The tail at the end of `bytes`; `None` if there is no seal.
///
/// The checksum also covers the absorbed layers. If there are some, only [`parse`] checks it.
pub fn parse_tail(bytes: &[u8]) -> Result<Option<Tail>> {
    let Some(tail) = bytes.last_chunk::<TAIL_BYTES>() else { return Ok(None) };
    let Some((checked, [a, b, c, d, magic @ ..])) = tail.split_first_chunk::<TAIL_CHECKED>() else {
        return Ok(None);
    };
    let crc = u32::from_le_bytes([*a, *b, *c, *d]);
    let mut fields = Fields(checked);
    let mut seal = Seal {
        container: fields.take(),
        layer: fields.take(),
        parent: fields.take(),
        sequence: fields.u64(),
        blocks: fields.u64(),
        pages: fields.u64(),
        statistics_len: fields.u64(),
        ..Seal::default()
    };
    let absorbed = fields.u64();
    seal.footer_size = fields.u64();
    let (flags, version) = (fields.u32(), fields.u32());
    let paged = seal.pages == seal.footer_size.div_ceil(PAGE_LEN);
    if magic != MAGIC {
        // A seal whose mark is damaged is still a seal: otherwise nothing would be checked.
        let sealed = version == VERSION && flags & !FLAGS == 0 && seal.footer_size > 0 && paged;
        return match sealed {
            true => Err(corrupt(
                "the end of the seal",
                MAGIC.escape_ascii().to_string(),
                magic.escape_ascii().to_string(),
            )),
            false => Ok(None),
        };
    }
    seal.arrays_sorted = flags & ARRAYS_SORTED != 0;
    seal.chunks_sorted = flags & CHUNKS_SORTED != 0;
    let footer_size = seal.footer_size;
    let tail = Tail { seal, absorbed, crc, flags, version };
    if absorbed == 0 {
        check_crc(crc, checked)?;
        tail.refuse_unknown()?;
    }
    let seal = &tail.seal;
    if !paged {
        let expected = format!("pages for {footer_size} bytes of footer");
        return Err(corrupt("the pages of the footer", expected, seal.pages.to_string()));
    }
    // Once the sum is known to fit, the methods may add unchecked.
    let parts = [(seal.blocks, 4), (seal.pages, 4), (absorbed, ABSORBED_LEN), (TAIL_LEN, 1)];
    let whole = parts.into_iter().try_fold(seal.statistics_len, |sum, (count, size)| {
        sum.checked_add(u64::checked_mul(count, size)?)
    });
    if whole.is_none_or(|len| len > i64::MAX.cast_unsigned()) {
        return Err(corrupt("the length of the seal", "less than a file", "more"));
    }
    Ok(Some(tail))
}

/// The seal whose absorbed layers and tail are at the end of `bytes`.
pub fn parse(bytes: &[u8]) -> Result<Seal> {
    let tail = parse_tail(bytes)?;
    let Some(tail) = tail else {
        return Err(corrupt("the end of the seal", MAGIC.escape_ascii().to_string(), "none"));
    };
    let needed = tail.parse_len();
    let start = usize::try_from(needed).ok().and_then(|len| bytes.len().checked_sub(len));
    let Some(bytes) = start.and_then(|start| bytes.get(start..)) else {
        let expected = format!("{needed} bytes of absorbed layers and tail");
        return Err(corrupt("the end of the seal", expected, bytes.len().to_string()));
    };
    check_crc(tail.crc, bytes.get(..bytes.len() - 12).unwrap_or_default())?;
    tail.refuse_unknown()?;
    let (entries, _) = bytes.get(..bytes.len() - TAIL_BYTES).unwrap_or_default().as_chunks::<24>();
    let absorbed = entries.iter().map(|entry| {
        let mut fields = Fields(entry);
        (fields.u64(), fields.take())
    });
    Ok(Seal { absorbed: absorbed.collect(), ..tail.seal })
}

impl Seal {
    /// Bytes of the whole seal.
    pub fn len(&self) -> u64 {
        self.before_absorbed() + self.absorbed.len() as u64 * ABSORBED_LEN + TAIL_LEN
    }

    /// Never: every seal has a tail.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes before the absorbed layers.
    fn before_absorbed(&self) -> u64 {
        self.statistics().end
    }

    /// Where the checksums of these blocks are, from the start of the seal.
    pub fn block_crcs(&self, blocks: Range<u64>) -> Range<u64> {
        4 * blocks.start.min(self.blocks)..4 * blocks.end.min(self.blocks)
    }

    /// Where the checksums of these pages are, from the start of the seal.
    pub fn page_crcs(&self, pages: Range<u64>) -> Range<u64> {
        let first = 4 * self.blocks;
        first + 4 * pages.start.min(self.pages)..first + 4 * pages.end.min(self.pages)
    }

    /// Where the statistics are, from the start of the seal.
    pub fn statistics(&self) -> Range<u64> {
        let start = 4 * self.blocks + 4 * self.pages;
        start..start + self.statistics_len
    }

    /// The bytes of the seal. The numbers of blocks, pages and bytes are counted here; the fields of
    /// `self` for them are ignored.
    pub fn render(&self, block_crcs: &[u32], footer: &[u8], statistics: &[u8]) -> Vec<u8> {
        let pages = footer.chunks(PAGE_LEN as usize);
        let mut out = Vec::new();
        block_crcs.iter().for_each(|crc| out.extend(crc.to_le_bytes()));
        let page_count = pages.len() as u64;
        pages.for_each(|page| out.extend(crc32c::crc32c(page).to_le_bytes()));
        out.extend(statistics);
        let checked = out.len();
        for (number, layer) in &self.absorbed {
            out.extend(number.to_le_bytes());
            out.extend(layer);
        }
        [self.container, self.layer, self.parent].iter().for_each(|id| out.extend(id));
        let counts = [
            self.sequence,
            block_crcs.len() as u64,
            page_count,
            statistics.len() as u64,
            self.absorbed.len() as u64,
            footer.len() as u64,
        ];
        counts.iter().for_each(|count| out.extend(count.to_le_bytes()));
        let flags = u32::from(self.arrays_sorted) * ARRAYS_SORTED
            + u32::from(self.chunks_sorted) * CHUNKS_SORTED;
        out.extend(flags.to_le_bytes());
        out.extend(VERSION.to_le_bytes());
        let crc = crc32c::crc32c(out.get(checked..).unwrap_or_default());
        out.extend(crc.to_le_bytes());
        out.extend(MAGIC);
        out
    }
}

/// Fields of a tail, from the front. Beyond its end everything reads as zero, but no field lies there.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

fn check_crc(expected: u32, bytes: &[u8]) -> Result<()> {
    let found = crc32c::crc32c(bytes);
    if found == expected {
        return Ok(());
    }
    Err(corrupt("the checksum of the tail", format!("{expected:08x}"), format!("{found:08x}")))
}

fn corrupt(what: &str, expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Corrupt {
        file: "seal".into(),
        what: what.into(),
        expected: expected.into(),
        found: found.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(absorbed: &[(u64, [u8; 16])]) -> Seal {
        Seal {
            container: [1; 16],
            layer: [2; 16],
            parent: [3; 16],
            sequence: 7,
            arrays_sorted: true,
            absorbed: absorbed.to_vec(),
            ..Seal::default()
        }
    }

    static FOOTER: [u8; 70_000] = [5; 70_000];

    #[test]
    fn a_seal_round_trips_and_says_where_its_parts_are() {
        for absorbed in [&[][..], &[(1, [8; 16]), (2, [9; 16])]] {
            let bytes = seal(absorbed).render(&[10, 11, 12], &FOOTER, b"statistics");
            let found = parse(&bytes).unwrap();
            let counted = Seal {
                blocks: 3,
                pages: 2,
                statistics_len: 10,
                footer_size: 70_000,
                ..seal(absorbed)
            };
            assert_eq!(found, counted);
            assert_eq!(found.len(), bytes.len() as u64);
            let tail = parse_tail(&bytes[bytes.len() - 116..]).unwrap().unwrap();
            assert_eq!((tail.seal_len(), tail.footer_size()), (bytes.len() as u64, 70_000));
            assert_eq!(parse(&bytes[bytes.len() - tail.parse_len() as usize..]).unwrap(), found);

            let part = |range: Range<u64>| &bytes[range.start as usize..range.end as usize];
            assert_eq!(part(found.block_crcs(1..2)), 11u32.to_le_bytes());
            assert_eq!(part(found.page_crcs(1..9)), crc32c::crc32c(&FOOTER[65536..]).to_le_bytes());
            assert_eq!(part(found.statistics()), b"statistics");
        }
    }

    #[test]
    fn bytes_without_a_seal_have_none() {
        assert_eq!(parse_tail(b"").unwrap(), None);
        assert_eq!(parse_tail(&[0; 500]).unwrap(), None);
        assert!(parse(&[0; 500]).is_err());
    }

    #[test]
    fn a_bit_flipped_anywhere_in_the_parsed_bytes_is_noticed() {
        for absorbed in [&[][..], &[(1, [8; 16])]] {
            let bytes = seal(absorbed).render(&[10], &FOOTER, b"");
            let from = bytes.len() - 116 - 24 * absorbed.len();
            for at in from..bytes.len() {
                let mut bent = bytes.clone();
                bent[at] ^= 4;
                assert_eq!(
                    parse(&bent).unwrap_err().kind(),
                    chunkyard_store::ErrorKind::Corrupt,
                    "{at}"
                );
                // Not even the mark at its end makes a seal look like none.
                assert!(!matches!(parse_tail(&bent), Ok(None)), "{at}");
            }
        }
    }

    #[test]
    fn counts_that_no_file_has_are_corrupt() {
        let bytes = seal(&[]).render(&[], &FOOTER, b"");
        let forge = |at: usize, count: u64| {
            let mut forged = bytes.clone();
            let tail = forged.len() - 116;
            forged[tail + at..tail + at + 8].copy_from_slice(&count.to_le_bytes());
            let crc = crc32c::crc32c(&forged[tail..tail + 104]);
            forged[tail + 104..tail + 108].copy_from_slice(&crc.to_le_bytes());
            parse(&forged).map_err(|error| error.kind())
        };
        assert_eq!(forge(56, 5).unwrap().blocks, 5);
        for at in [56, 64, 72, 80, 88] {
            assert_eq!(forge(at, u64::MAX), Err(chunkyard_store::ErrorKind::Corrupt), "{at}");
        }
        assert_eq!(
            forge(80, 1),
            Err(chunkyard_store::ErrorKind::Corrupt),
            "absorbed layers that are not there"
        );
        assert_eq!(forge(96, 1 << 32 | 4), Err(chunkyard_store::ErrorKind::Unsupported), "flags");
        assert_eq!(forge(96, 2 << 32), Err(chunkyard_store::ErrorKind::Unsupported), "version");
    }
}
