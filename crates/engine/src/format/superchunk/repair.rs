//! Repair: everything that is whole, up to the first damage, and nothing else.
//!
//! ```text
//!  examine    every file from the first on, chunk by chunk: header, length, digest
//!  decide     the rows that all columns have, and no more than `meta/sizes` says, if it says anything
//!  do         the tail ─▶ meta/sizes ─▶ files written anew without what is torn ─▶ others renamed
//! ```
//!
//! Nothing is deleted: a file of which something does not count any more is kept under another name.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::directory::{self, SIZES, get};
use super::files::{self, FileIndex};
use super::handle::{Blz, BlzOptions, Inner, State};
use super::meta::Sizes;
use super::model::{Column, Style};
use super::settle::file_number;
use super::write_out::render;
use crate::error::{Error, Result};
use crate::format::Place;
use crate::repo::Uid;
use crate::store::Kind;

/// What names of files end with that were set aside.
const ASIDE: &str = ".aside-";

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Rows that `meta/sizes` said there are, if it could be read.
    pub rows_before: Option<u64>,
    /// Rows that are there.
    pub rows_after: u64,
    /// Files of which not everything counts any more.
    pub set_aside: Vec<SetAside>,
    /// What was found and done, in sentences.
    pub notes: Vec<String>,
}

/// A file that is kept under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// What it was called.
    pub file: String,
    /// What it is called now; `None` if nothing was done.
    pub renamed: Option<String>,
    /// Why.
    pub reason: String,
}

/// What is whole of a column.
#[derive(Debug, Default)]
struct Examined {
    /// For each file from the first on, the chunks that are whole and full.
    files: Vec<FileIndex>,
    /// Full chunks in them.
    full: u64,
    /// Rows behind the last full chunk, and what has them.
    rest: Option<(u64, Bytes)>,
    /// Tails by the chunk that they begin: how many rows, and these.
    tails: BTreeMap<u64, (u64, Bytes)>,
    /// All files of the column: number and path.
    all: Vec<(u64, String)>,
    /// Why it does not go on.
    stopped: Option<String>,
}

impl Blz {
    /// Brings back everything that is whole, up to the first damage; with `dry_run`, only says what
    /// would be done. Rows are never made up, and nothing is deleted.
    pub async fn repair(place: &Place, options: &BlzOptions, dry_run: bool) -> Result<Repaired> {
        let store = place.directory();
        if !dry_run && store.kind() != Kind::Local {
            return Err(Error::unsupported(format!(
                "repairing {} where it is: files cannot be renamed there; copy it to a directory",
                place.url()
            )));
        }
        let mut notes = Vec::new();
        let said = match get(store, SIZES).await? {
            None => {
                notes.push(format!("{SIZES} is missing"));
                None
            }
            Some(object) => match Sizes::parse(SIZES, &object.bytes) {
                Ok(sizes) => Some(sizes),
                Err(error) => {
                    notes.push(error.to_string());
                    None
                }
            },
        };
        let found = directory::read_as(store, said.clone()).await?;
        let Some(found) = found else {
            let name = place.url().to_owned();
            return Err(Error::NotFound { what: "BLZ dataset with a meta/storage", name });
        };
        if found.table && found.style == Style::Bcolz {
            return Err(Error::unsupported(format!(
                "repairing {}, a table in the style of bcolz",
                place.url()
            )));
        }
        let blz = Self::of_directory(store.clone(), found, options)?;
        let inner = &blz.inner;
        let _lock = match dry_run {
            true => None,
            false => Some(inner.lock().await?),
        };
        if !dry_run && inner.finish_changes().await? {
            notes.push("changes of somebody who died were finished".to_owned());
            inner.withdraw_journal().await?;
        }
        let rows_before = said.and_then(|sizes| sizes.shape.first().copied());
        inner.repair(rows_before, notes, dry_run).await
    }
}

impl Inner {
    async fn repair(
        &self,
        rows_before: Option<u64>,
        mut notes: Vec<String>,
        dry_run: bool,
    ) -> Result<Repaired> {
        let state = self.state().clone();
        let mut columns = Vec::new();
        for (at, column) in state.columns.iter().enumerate() {
            let examined = self.examine(&state, column).await?;
            let rows = examined.rows(column, rows_before);
            if let Some(stopped) = &examined.stopped
                && rows_before.is_none_or(|wanted| rows < wanted)
            {
                notes.push(format!("{}: {rows} rows are whole; {stopped}", column.path));
            }
            columns.push((at, rows, examined));
        }
        let whole = columns.iter().map(|(_, rows, _)| *rows).min().unwrap_or(0);
        let rows_after = rows_before.map_or(whole, |said| said.min(whole));
        let mut set_aside = Vec::new();
        // The rows behind the last full chunk are durable before anything counts on them.
        for (at, _, examined) in &columns {
            self.mend_tail(&state, *at, examined, rows_after, dry_run, &mut notes).await?;
        }
        if rows_before != Some(rows_after) {
            notes.push(match rows_before {
                Some(before) => format!("{SIZES} said {before} rows, and says {rows_after}"),
                None => format!("{SIZES} is written anew, with {rows_after} rows"),
            });
        }
        if !dry_run {
            self.write_sizes(&state, rows_after, &columns).await?;
        }
        for (at, _, examined) in &columns {
            let column = &state.columns[*at];
            self.mend_files(&state, column, examined, rows_after, dry_run, &mut set_aside).await?;
        }
        for aside in &set_aside {
            notes.push(match &aside.renamed {
                Some(renamed) => format!("{} is kept as {renamed}: {}", aside.file, aside.reason),
                None => format!("{} would be set aside: {}", aside.file, aside.reason),
            });
        }
        Ok(Repaired { rows_before, rows_after, set_aside, notes })
    }

    /// Looks at every file of a column, from the first on.
    async fn examine(&self, state: &State, column: &Column) -> Result<Examined> {
        let mut found = Examined::default();
        for meta in self.store.list_dir(&column.folder).await?.objects {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            if let Some(number) = file_number(self.style, name).filter(|_| meta.size > 0) {
                found.all.push((number, meta.path));
            }
        }
        found.all.sort_unstable();
        let whole = column.chunk_bytes();
        for file in 0.. {
            let path = column.file(self.style, file);
            let rooted = state.files.roots.resolve(&column.folder, &path, file).await?;
            let name = rooted.name();
            let walked = files::read_whole(rooted, column, self.style).await;
            let (mut index, problem) = match walked {
                Ok(found) => found,
                Err(Error::NotFound { .. }) => {
                    found.stopped = Some(format!("there is no {name}"));
                    break;
                }
                Err(error @ (Error::Corrupt { .. } | Error::Unsupported { .. })) => {
                    found.stopped = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            let begins = file.saturating_mul(column.superchunk);
            let first = index.first_chunk.unwrap_or(begins);
            let mut full = 0;
            let mut stopped = problem;
            for slot in 0..index.chunks.len() as u64 {
                match self.check_chunk(column, &index, slot).await {
                    Ok(plain) if plain.len() as u64 == whole => full += 1,
                    Ok(plain) => {
                        let rows = plain.len() as u64 / column.row_bytes().max(1);
                        found.tails.insert(first + slot, (rows, plain));
                        stopped = None;
                        break;
                    }
                    Err(error @ (Error::Corrupt { .. } | Error::Array(_))) => {
                        stopped = Some(error.to_string());
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            if first != begins {
                // A tail that was filled, or one of other rows than are looked for.
                if full > 0 && !found.tails.contains_key(&first) {
                    let plain = self.check_chunk(column, &index, 0).await?;
                    found.tails.insert(first, (column.chunklen, plain));
                }
                found.stopped = Some(format!("{name} begins with chunk {first}"));
                break;
            }
            index.chunks.truncate(usize::try_from(full).unwrap_or(usize::MAX));
            found.full += full;
            found.files.push(index);
            if full < column.superchunk {
                let more = stopped.unwrap_or_else(|| format!("{name} has {full} full chunks"));
                found.stopped = Some(more);
                // The tail is the next file.
                let next = file + 1;
                if full > 0 {
                    self.examine_tail(state, column, next, &mut found).await?;
                }
                break;
            }
        }
        found.rest = found.tails.get(&found.full).cloned();
        Ok(found)
    }

    /// Looks at the file in which rows that fill no chunk would be.
    async fn examine_tail(
        &self,
        state: &State,
        column: &Column,
        file: u64,
        found: &mut Examined,
    ) -> Result<()> {
        let path = column.file(self.style, file);
        let rooted = state.files.roots.resolve(&column.folder, &path, file).await?;
        let Ok((index, _)) = files::read_whole(rooted, column, self.style).await else {
            return Ok(());
        };
        let Some(first) = index.first_chunk.filter(|_| !index.chunks.is_empty()) else {
            return Ok(());
        };
        if let Ok(plain) = self.check_chunk(column, &index, 0).await {
            let rows = plain.len() as u64 / column.row_bytes().max(1);
            found.tails.insert(first, (rows, plain));
        }
        Ok(())
    }

    /// A chunk of a file as it is when decoded, if it is what its digest says.
    async fn check_chunk(&self, column: &Column, index: &FileIndex, slot: u64) -> Result<Bytes> {
        let name = format!("chunk {slot} of {}", index.rooted.name());
        let reference = index.reference(slot);
        let reference =
            reference.ok_or_else(|| Error::NotFound { what: "chunk", name: name.clone() })?;
        let bytes = self.fetcher.fetch_named(&[&reference], |_| name.clone()).await?.pop();
        let bytes = bytes.flatten().unwrap_or_default();
        let most = column.chunk_bytes();
        crate::pipeline::cpu(move || {
            let header = chunkyard_array::codec::blosc::Header::parse(&bytes)?;
            if header.decoded_bytes > most {
                let expected = format!("at most {most}");
                return Err(super::corrupt(&name, "its bytes", expected, header.decoded_bytes));
            }
            let mut plain = vec![0; usize::try_from(header.decoded_bytes).unwrap_or(0)];
            chunkyard_array::codec::blosc::decode_into(&bytes, &mut plain)?;
            Ok(plain.into())
        })
        .await?
    }

    /// Writes the tail that a length needs, if it is not there.
    async fn mend_tail(
        &self,
        state: &State,
        at: usize,
        examined: &Examined,
        len: u64,
        dry_run: bool,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let column = &state.columns[at];
        let full = len / column.chunklen.max(1);
        let rows = column.rows_in(full, len);
        let has_tail = examined.tails.get(&full).is_some_and(|(have, _)| *have >= rows);
        if rows == 0 || has_tail {
            return Ok(());
        }
        notes.push(format!("{}: {rows} rows of chunk {full} become a tail", column.path));
        if dry_run {
            return Ok(());
        }
        let (file, slot) = column.place_of(full);
        let index = usize::try_from(file).ok().and_then(|file| examined.files.get(file));
        let Some(index) = index else { return Ok(()) };
        let plain = self.check_chunk(column, index, slot).await?;
        let wanted = usize::try_from(rows.saturating_mul(column.row_bytes())).unwrap_or(0);
        if slot > 0 {
            self.put_tail(state, at, full, &plain.slice(..wanted.min(plain.len()))).await?;
        }
        Ok(())
    }

    async fn write_sizes(
        &self,
        state: &State,
        len: u64,
        columns: &[(usize, u64, Examined)],
    ) -> Result<()> {
        let mut cbytes = Vec::with_capacity(columns.len());
        for (at, _, examined) in columns {
            let column = &state.columns[*at];
            let full = usize::try_from(len / column.chunklen.max(1)).unwrap_or(usize::MAX);
            let chunks = examined.files.iter().flat_map(|index| &index.chunks).take(full);
            cbytes.push(chunks.map(|chunk| (chunk.end - chunk.start) as i64).sum::<i64>());
        }
        let sizes = state.sizes_for(len, &cbytes);
        let mut last = Vec::new();
        for (path, bytes) in self.render_sizes(state, &sizes, &cbytes) {
            last.push((self.aside(&path, vec![bytes]).await?, path));
        }
        let temps: Vec<String> = last.iter().map(|(temp, _)| temp.clone()).collect();
        self.store.sync(&temps).await?;
        self.rename_sizes(&last).await
    }

    /// Makes every file hold what counts and nothing else, and sets aside what is not needed.
    async fn mend_files(
        &self,
        state: &State,
        column: &Column,
        examined: &Examined,
        len: u64,
        dry_run: bool,
        set_aside: &mut Vec<SetAside>,
    ) -> Result<()> {
        let full = len / column.chunklen.max(1);
        let tail = column.tail_file(full);
        let rows = column.rows_in(full, len);
        for (file, index) in (0..).zip(&examined.files) {
            let begins = column.superchunk.saturating_mul(file);
            let count = full.saturating_sub(begins).min(column.superchunk);
            if count == 0 || index.rooted.url.is_some() {
                continue;
            }
            let mut index = index.clone();
            index.chunks.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            let grows = self.style == Style::Superchunk;
            if !grows || self.is_whole(column, file, &index).await? {
                continue;
            }
            let path = column.file(self.style, file);
            let reason = format!("only its first {count} chunks are whole and count");
            let renamed = match dry_run {
                true => None,
                false => {
                    let chunks = self.chunks_of(&index, count).await?;
                    let spec = column.file_spec(self.style, begins, column.superchunk)?;
                    let (parts, _) = render(&spec, &path, self, &chunks, begins)?;
                    let renamed = aside_name(&path)?;
                    self.store.link(&path, &renamed).await?;
                    self.move_in(&path, parts).await?;
                    self.store.sync_dir(&column.folder).await?;
                    Some(renamed)
                }
            };
            set_aside.push(SetAside { file: path, renamed, reason });
        }
        for (number, path) in examined.all.iter().rev() {
            let needed = *number < tail || (*number == tail && rows > 0);
            if needed || !state.files.roots.is_here(*number) {
                continue;
            }
            let reason = format!("it is behind the last of {len} rows");
            let renamed = match dry_run {
                true => None,
                false => {
                    let renamed = aside_name(path)?;
                    self.store.rename(path, &renamed).await?;
                    self.store.sync_dir(&column.folder).await?;
                    Some(renamed)
                }
            };
            set_aside.push(SetAside { file: path.clone(), renamed, reason });
        }
        Ok(())
    }
}

impl Examined {
    /// The rows that are whole, no more than somebody says there are.
    fn rows(&self, column: &Column, said: Option<u64>) -> u64 {
        let chunklen = column.chunklen.max(1);
        let most = self.full.saturating_mul(chunklen);
        let whole = most.saturating_add(self.rest.as_ref().map_or(0, |(rows, _)| *rows));
        let Some(said) = said else { return whole };
        // A tail may hold rows of a chunk that a writer was filling.
        let full = said / chunklen;
        let tail = self.tails.get(&full).map_or(0, |(rows, _)| *rows);
        let with_tail = match full <= self.full {
            true => full.saturating_mul(chunklen).saturating_add(tail),
            false => 0,
        };
        whole.max(with_tail).min(said)
    }
}

/// Another name for a file, which nobody looks for.
fn aside_name(path: &str) -> Result<String> {
    Ok(format!("{path}{ASIDE}{}", Uid::fresh()?))
}
