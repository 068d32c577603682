//! What a check of a dataset examines besides its chunks: lengths and headers that contradict one another,
//! bytes that do not count, files that do not belong to the dataset.

use chunkyard_array::codec::blosc;
use chunkyard_store::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::directory::{
    ATTRIBUTES, OLD_ATTRIBUTES, ROOT_DIRS, SHARDS, SIZES, STORAGE, read_shards,
};
use super::files::{FileIndex, read_head};
use crate::superchunk::bloscpack::{head_bytes, render_head};
use crate::superchunk::committed::Committed;
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names;
use crate::superchunk::write::begin::file_number;
use crate::{Finding, Level, Severity};

/// Files that are examined at the same time.
const LOOKS: usize = 8;

/// A file that `meta/sizes` needs.
#[derive(Debug, Clone, Copy)]
struct Needed {
    file: u64,
    /// Its first chunk.
    first: u64,
    /// How many of its chunks count.
    chunks: u64,
}

impl Committed {
    /// All problems that a check of the chunks does not find.
    pub(crate) async fn inspect(&self, level: Level) -> Result<Vec<Finding>> {
        let mut findings: Vec<Finding> = self.inspect_sizes().into_iter().collect();
        findings.extend(self.inspect_shards().await?);
        if level < Level::Existence {
            return Ok(findings);
        }
        let style = self.access.style;
        for (at, column) in self.columns.iter().enumerate() {
            let found = stream::iter(needed(column, self.len()))
                .map(|needed| async move {
                    // The check of the chunks reports a file that is missing or unusable.
                    let index = self.files.index(at, column, style, needed.file, needed.chunks);
                    match index.await {
                        Ok(Some(index)) => self.inspect_file(column, needed, &index).await,
                        Ok(None) | Err(Error::Corrupt { .. } | Error::Invalid { .. }) => {
                            Ok(Vec::new())
                        }
                        Err(error) => Err(error),
                    }
                })
                .buffered(LOOKS);
            findings.extend(found.try_concat().await?);
        }
        Ok(findings)
    }

    /// Compares the head of a file with its chunks.
    async fn inspect_file(
        &self,
        column: &Column,
        needed: Needed,
        index: &FileIndex,
    ) -> Result<Vec<Finding>> {
        let finding = |severity, what: String| {
            let array = Some(column.path.to_string());
            let file = index.rooted.name();
            Finding { severity, file, what, snapshots: Vec::new(), array, chunk: None }
        };
        let mut found = Vec::new();
        if index.first_chunk.is_none() && needed.first == 0 {
            let what = "neither it nor the files behind it say which chunks they hold: another file in \
                        the place of one cannot be noticed";
            found.push(finding(Severity::Note, what.to_owned()));
        }
        if let Some(said) = index.first_chunk.filter(|said| *said != needed.first) {
            // A writer that has not committed may have replaced the tail by a full file; the rows of the
            // tail are then in an earlier chunk. If they are not, the check of the chunks reports it.
            match said == needed.file.saturating_mul(column.superchunk) {
                true => {
                    let what =
                        "it was put in the place of the tail by a writer that did not finish";
                    found.push(finding(Severity::Note, what.to_owned()));
                }
                false => {
                    let what = format!("first_chunk: expected {}, found {said}", needed.first);
                    found.push(finding(Severity::Error, what));
                }
            }
        }
        let counted = match read_head(&index.rooted, index.size, false).await {
            Ok((layout, _, _)) => layout.header.chunks,
            Err(Error::Corrupt { what, expected, found: got, .. }) => {
                let what = format!(
                    "its head is torn, and the chunks are read without it: {what}: expected \
                     {expected}, found {got}"
                );
                found.push(finding(Severity::Error, what));
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let held = index.chunks.len() as u64;
        if counted == Some(needed.chunks) && held >= needed.chunks {
            let head = self.inspect_head(column, needed, index).await?;
            found.extend(head.map(|(severity, what)| finding(severity, what)));
        }
        match counted {
            Some(counted) if counted < needed.chunks.min(held) => {
                let what = format!(
                    "number of chunks in its header: expected {}, found {counted}",
                    needed.chunks
                );
                found.push(finding(Severity::Error, what));
            }
            Some(counted) if counted > needed.chunks => {
                let extra = counted - needed.chunks;
                let what = format!(
                    "{extra} chunks that do not count: rows were cut off, or a writer has not \
                     committed them"
                );
                found.push(finding(Severity::Note, what));
            }
            _ if held >= needed.chunks && index.size > index.end() => {
                let what = format!(
                    "{} bytes behind its last chunk, of a writer that did not finish",
                    index.size - index.end()
                );
                found.push(finding(Severity::Note, what));
            }
            _ => {}
        }
        Ok(found)
    }

    /// Compares the head of a file that names its dataset with what a writer leaves there. Readers do not use
    /// most of it, so changed bytes there would go unnoticed.
    async fn inspect_head(
        &self,
        column: &Column,
        needed: Needed,
        index: &FileIndex,
    ) -> Result<Option<(Severity, String)>> {
        let count = usize::try_from(needed.chunks).unwrap_or(usize::MAX);
        let chunks = index.chunks.get(..count).unwrap_or_default();
        let (Some(last), true) = (chunks.last(), column.dataset.is_some()) else { return Ok(None) };
        let other = |at: usize| format!("its head is not as it was written, from byte {at} on");
        let (layout, _, _) = read_head(&index.rooted, index.size, false).await?;
        let begins = index.first_chunk.unwrap_or(needed.first);
        // A tail has room for one chunk, unless it is a larger file whose other chunks were cut off.
        let mut spec = None;
        for entries in [needed.chunks, column.superchunk] {
            let mut one = column.file_spec(self.access.style, begins, entries)?;
            one.sign_as(layout.metadata.as_deref())?;
            if head_bytes(&one)? == index.chunks_at {
                spec = Some(one);
                break;
            }
        }
        let Some(spec) = spec else { return Ok(Some((Severity::Error, other(0)))) };
        let store = &index.rooted.store;
        let header = last.start..last.start.saturating_add(blosc::HEADER_BYTES as u64);
        let ranges = [0..index.chunks_at, header];
        let found = store.get_ranges(&index.rooted.path, &ranges, None).await?;
        let [head, header] = found.as_slice() else { return Ok(None) };
        let last_bytes = blosc::Header::parse(header)?.decoded_bytes;
        let starts: Vec<u64> = chunks.iter().map(|chunk| chunk.start).collect();
        let expected = render_head(&spec, &starts, u32::try_from(last_bytes).unwrap_or(u32::MAX))?;
        let differs = expected.iter().zip(head.iter()).position(|(a, b)| a != b);
        // An unfinished writer may have left offsets of chunks that the header does not count.
        let spare = spec.entries.saturating_sub(needed.chunks).saturating_mul(8);
        let counted_end = index.chunks_at.saturating_sub(spare);
        Ok(differs.map(|at| {
            match (at as u64) < counted_end || self.access.style != Style::Superchunk {
                true => (Severity::Error, other(at)),
                false => (Severity::Note, other(at)),
            }
        }))
    }

    /// Compares `meta/shards` with the list in `meta/sizes`.
    async fn inspect_shards(&self) -> Result<Option<Finding>> {
        let finding = |severity, what: String| {
            let (file, snapshots) = (SHARDS.to_owned(), Vec::new());
            Some(Finding { severity, file, what, snapshots, array: None, chunk: None })
        };
        match read_shards(&self.access.store).await {
            Ok(Some(copy)) if copy != *self.files.roots.shards() => {
                let what = "it is not what meta/sizes says, which counts: a writer did not finish";
                Ok(finding(Severity::Note, what.to_owned()))
            }
            Ok(_) => Ok(None),
            Err(Error::Corrupt { what, expected, found, .. }) => {
                Ok(finding(Severity::Error, format!("{what}: expected {expected}, found {found}")))
            }
            Err(error) => Err(error),
        }
    }

    /// The meta files that carry no checksum.
    pub(crate) fn unchecked_files(&self) -> Vec<String> {
        if self.sizes.sealed {
            return Vec::new();
        }
        let attributes = match self.access.style {
            Style::Bcolz => OLD_ATTRIBUTES,
            Style::Superchunk | Style::Document => ATTRIBUTES,
        };
        let own = self.columns.iter().filter_map(|column| column.meta.as_deref());
        let own = own.flat_map(|meta| [format!("{meta}/sizes"), format!("{meta}/storage")]);
        let own: Vec<String> = own.collect();
        let first = match own.is_empty() {
            true => vec![SIZES, STORAGE, attributes],
            false => vec![ROOT_DIRS, attributes],
        };
        first.into_iter().map(str::to_owned).chain(own).collect()
    }

    /// Whether a file in the dataset's directory belongs to the dataset.
    pub(crate) fn owns(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.starts_with(names::TEMP) {
            return false;
        }
        if name.starts_with("__") && !name.contains('.') {
            // `__attrs__` and `__rootdirs__`, of the table or of a column.
            let of_column = |column: &Column| column.folder.strip_suffix("/data") == Some(folder);
            return folder.is_empty() || self.columns.iter().any(of_column);
        }
        let column = self.columns.iter().find(|column| column.folder == folder);
        match column {
            Some(column) => file_number(self.access.style, name)
                .is_some_and(|file| is_needed(column, self.len(), file)),
            // Any other file beside the meta files was put there on purpose.
            None => {
                folder == "meta" || self.columns.iter().any(|c| c.meta.as_deref() == Some(folder))
            }
        }
    }
}

impl Committed {
    /// Compares `nbytes` in `meta/sizes` with its shape.
    fn inspect_sizes(&self) -> Option<Finding> {
        let row: u64 = self.columns.iter().map(Column::row_bytes).fold(0, u64::saturating_add);
        let expected = self.len().saturating_mul(row);
        let what = format!("nbytes: expected {expected}, found {}", self.sizes.nbytes);
        (self.sizes.nbytes != expected).then(|| Finding {
            severity: Severity::Error,
            file: super::directory::SIZES.to_owned(),
            what,
            snapshots: Vec::new(),
            array: None,
            chunk: None,
        })
    }
}

/// The files of a column of `len` rows.
fn needed(column: &Column, len: u64) -> impl Iterator<Item = Needed> + use<> {
    let (chunklen, per_file) = (column.chunklen.max(1), column.superchunk.max(1));
    let full = len / chunklen;
    let tail = column.tail_file(full);
    let files = (0..full.div_ceil(per_file)).map(move |file| {
        let first = file * per_file;
        Needed { file, first, chunks: per_file.min(full - first) }
    });
    // If rows were cut off, the last rows may be in the file of the full chunks, which is listed already.
    let rest =
        (!len.is_multiple_of(chunklen)).then_some(Needed { file: tail, first: full, chunks: 1 });
    files.chain(rest)
}

fn is_needed(column: &Column, len: u64, file: u64) -> bool {
    let full = len / column.chunklen.max(1);
    let rest = !len.is_multiple_of(column.chunklen.max(1));
    file < full.div_ceil(column.superchunk.max(1)) || (rest && file == column.tail_file(full))
}
