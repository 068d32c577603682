//! Reads a footer as far as needed.
//!
//! A small footer is in memory as a whole. Of a large one only the requested windows are fetched, so
//! that opening a container of a million chunks costs no more than opening an empty one. If its pages
//! have checksums, every window is compared with them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{ByteCache, Error, Guard, Result, Store};

use crate::container::bytes::archive::{Resident, Stop, View};
use crate::container::bytes::seal::PAGE_LEN;

/// Windows of large footers, of all layers of a container.
pub(crate) type Windows = ByteCache<(u64, u64), Bytes>;

/// The footer of a file.
#[derive(Debug)]
pub(crate) struct FooterReader {
    pub(crate) store: Store,
    pub(crate) path: Arc<str>,
    pub(crate) guard: Option<Guard>,
    /// Where it is in the file.
    pub(crate) range: Range<u64>,
    /// Tells this opening of the file from any other.
    pub(crate) key: u64,
    pub(crate) windows: Windows,
    /// All of it, if it is small.
    pub(crate) whole: Option<Resident>,
    /// Checksums of its pages, if any.
    pub(crate) page_crcs: Option<Bytes>,
}

impl FooterReader {
    /// Parses a part of the footer, and fetches the bytes needed.
    pub(crate) async fn parse<T>(
        &self,
        mut parse: impl FnMut(&dyn View) -> Result<T, Stop>,
    ) -> Result<T> {
        if let Some(whole) = &self.whole {
            return match parse(whole) {
                Ok(parsed) => Ok(parsed),
                Err(Stop::Corrupt(error)) => Err(blame(&self.path, error)),
                Err(Stop::Lack(range)) => Err(self.outside(&range)),
            };
        }
        let mut here = Here { reader: self, windows: HashMap::new() };
        loop {
            match parse(&here) {
                Ok(parsed) => return Ok(parsed),
                Err(Stop::Corrupt(error)) => return Err(blame(&self.path, error)),
                Err(Stop::Lack(range)) => {
                    let window = range.start / PAGE_LEN;
                    let wide = range.end > (window + 2) * PAGE_LEN;
                    let end = if wide { range.end } else { (window + 2) * PAGE_LEN };
                    let end = end.next_multiple_of(PAGE_LEN).min(self.len());
                    if range.end > end {
                        return Err(self.outside(&range));
                    }
                    let within = window * PAGE_LEN..end;
                    let start = self.range.start;
                    let bytes = self.read(start + within.start..start + within.end).await?;
                    self.check_pages(window, &bytes)?;
                    if !wide {
                        self.windows.insert((self.key, window), bytes.clone());
                    }
                    here.windows.insert(window, bytes);
                }
            }
        }
    }

    fn outside(&self, range: &Range<u64>) -> Error {
        Error::Corrupt {
            file: self.path.to_string(),
            what: "footer".to_owned(),
            expected: format!("parts within its {} bytes", self.len()),
            found: format!("{}..{}", range.start, range.end),
        }
    }

    /// Keeps the last page of a footer, which came with another read.
    pub(crate) fn keep(&self, page: u64, bytes: Bytes) -> Result<()> {
        self.check_pages(page, &bytes)?;
        self.windows.insert((self.key, page), bytes);
        Ok(())
    }

    /// Compares a footer that is wholly in memory with its checksums.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.whole.as_ref().map_or(Ok(()), |whole| self.check_pages(0, &whole.0))
    }

    /// Reads bytes of the file.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        read(&self.store, &self.path, range, self.guard.as_ref()).await
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The whole footer, and the pages whose checksums do not match.
    pub(crate) async fn read_whole(&self) -> Result<(Bytes, Vec<Error>)> {
        let bytes = self.read(self.range.clone()).await?;
        let damaged = self.damaged_pages(0, &bytes).collect();
        Ok((bytes, damaged))
    }

    /// Compares pages, the first of which has the number `first`, with their checksums.
    fn check_pages(&self, first: u64, bytes: &[u8]) -> Result<()> {
        self.damaged_pages(first, bytes).next().map_or(Ok(()), Err)
    }

    /// The damaged pages among these; the first of them has the number `first`.
    fn damaged_pages(&self, first: u64, bytes: &[u8]) -> impl Iterator<Item = Error> {
        let page_len = usize::try_from(PAGE_LEN).unwrap_or(usize::MAX);
        let pages = self.page_crcs.iter().flat_map(move |crcs| {
            (first..).zip(bytes.chunks(page_len)).map(move |(page, bytes)| {
                let at = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(4);
                let expected = crcs.get(at..).and_then(|crcs| crcs.first_chunk()).copied();
                (page, expected.map(u32::from_le_bytes), crc32c::crc32c(bytes))
            })
        });
        let damaged = pages.filter(|(_, expected, found)| *expected != Some(*found));
        damaged.map(|(page, expected, found)| Error::Corrupt {
            file: self.path.to_string(),
            what: format!("checksum of page {page} of the footer"),
            expected: expected.map_or("one".to_owned(), |crc| format!("{crc:08x}")),
            found: format!("{found:08x}"),
        })
    }
}

/// The windows of a large footer that are in memory.
struct Here<'a> {
    reader: &'a FooterReader,
    /// The windows of this call, which the cache cannot evict.
    windows: HashMap<u64, Bytes>,
}

impl View for Here<'_> {
    fn len(&self) -> u64 {
        self.reader.len()
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        let window = range.start / PAGE_LEN;
        let slice = |bytes: &Bytes| {
            let start = usize::try_from(range.start - window * PAGE_LEN).ok()?;
            let end = usize::try_from(range.end - window * PAGE_LEN).ok()?;
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        };
        self.windows
            .get(&window)
            .and_then(slice)
            .or_else(|| {
                self.reader.windows.get(&(self.reader.key, window)).as_ref().and_then(slice)
            })
            .ok_or(Stop::Lack(range))
    }
}

/// Reads bytes of a file.
pub(crate) async fn read(
    store: &Store,
    path: &str,
    range: Range<u64>,
    guard: Option<&Guard>,
) -> Result<Bytes> {
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    let mut parts = store.get_ranges(path, &[range], guard).await?;
    parts.pop().ok_or_else(|| Error::store("read", path, "the backend returned no bytes"))
}

/// Names the file in an error of a parser.
pub(crate) fn blame(path: &str, error: Error) -> Error {
    match error {
        Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: path.to_owned(), what, expected, found }
        }
        Error::Unsupported { what } => Error::Unsupported { what: format!("{path}: {what}") },
        other => other,
    }
}
