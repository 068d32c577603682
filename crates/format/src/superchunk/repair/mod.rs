//! Repair: keeps everything that is whole, up to the first damage.
//!
//! ```text
//!  examine    every file from the first on, chunk by chunk: header, length, digest
//!  decide     the rows that all columns have, and no more than `meta/sizes` says, if it can be read
//!  do         the tail ─▶ meta/sizes ─▶ files written anew without torn chunks ─▶ others renamed
//! ```
//!
//! Nothing is deleted: a file with parts that count no more is kept under another name.

mod examine;

use std::sync::Arc;

use chunkyard_array::Attributes;
use chunkyard_store::{Error, Noun, Result, Store, Uid};

use self::examine::Examined;
use super::committed::Committed;
use super::handle::{Blz, BlzOptions};
use super::meta::{self, Sizes, Storage};
use super::model::{Column, Style};
use super::read::directory::{self, ATTRIBUTES, SIZES, STORAGE, get};
use super::write::chunk_files::render;
use crate::Place;
use crate::publish::publish;

/// Part of the names of files that are kept without being used.
const KEPT: &str = ".aside-";

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Rows according to `meta/sizes`, if it could be read.
    pub rows_before: Option<u64>,
    /// Rows after the repair.
    pub rows_after: u64,
    /// Files with parts that count no more.
    pub set_aside: Vec<SetAside>,
    /// What the repair found and did, in sentences.
    pub notes: Vec<String>,
}

/// A file that is kept under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its old name.
    pub file: String,
    /// Its new name; `None` if nothing was done.
    pub renamed: Option<String>,
    /// Why.
    pub reason: String,
}

impl Blz {
    /// Brings back everything that is whole, up to the first damage; with `dry_run`, only says what
    /// would be done. Rows are never made up, and nothing is deleted.
    pub async fn repair(place: &Place, options: &BlzOptions, dry_run: bool) -> Result<Repaired> {
        let store = place.directory();
        if !dry_run && !store.renames() {
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
        let storage = get(store, STORAGE).await?;
        let storage = storage.map(|object| Storage::parse(STORAGE, &object.bytes)).transpose()?;
        let sealed = storage.is_some_and(|storage| storage.sealed);
        let said = said.filter(|sizes| sizes.sealed || !sealed);
        let attributes = Self::read_damaged_attributes(store, sealed, dry_run, &mut notes).await?;
        let found = directory::read_as(store, said.clone(), attributes).await?;
        let Some(found) = found else {
            let name = place.url().to_owned();
            return Err(Error::NotFound { what: Noun::BlzStorage, name });
        };
        if found.table && found.style == Style::Bcolz {
            return Err(Error::unsupported(format!(
                "repairing {}, a table in the style of bcolz",
                place.url()
            )));
        }
        let blz = Self::of_directory(store.clone(), found, options);
        let repair = Repair { committed: blz.shared.current.committed(), dry_run };
        let access = &blz.shared.access;
        let _lock = match dry_run {
            true => None,
            false => Some(repair.committed.lock().await?),
        };
        if !dry_run && access.finish_changes().await? {
            notes.push("the changes of a writer that died were finished".to_owned());
            access.withdraw_journal().await?;
        }
        let rows_before = said.and_then(|sizes| sizes.shape.first().copied());
        repair.run(rows_before, notes).await
    }

    /// The attributes, also those that another program changed. If they cannot be read, there are none, and
    /// the file is kept under another name.
    async fn read_damaged_attributes(
        store: &Store,
        sealed: bool,
        dry_run: bool,
        notes: &mut Vec<String>,
    ) -> Result<Attributes> {
        let strictly = directory::read_attributes(store, sealed).await;
        let error = match strictly {
            Err(error @ Error::Corrupt { .. }) => error,
            other => return other,
        };
        let there = get(store, ATTRIBUTES).await?;
        let read = there.as_ref().map(|file| meta::salvage_attributes(ATTRIBUTES, &file.bytes));
        let attributes = match read {
            Some(Ok(attributes)) => {
                notes.push(format!("{error}; the attributes are accepted as they are"));
                attributes
            }
            _ => {
                notes.push(format!("{error}; there are no attributes any more"));
                Attributes::new()
            }
        };
        if !dry_run {
            if there.is_some() {
                let renamed = kept_name(ATTRIBUTES)?;
                store.link(ATTRIBUTES, &renamed).await?;
                notes.push(format!("{ATTRIBUTES} is kept as {renamed}"));
            }
            let bytes = match sealed {
                true => meta::render_sealed_attributes(&attributes),
                false => meta::render_attributes(&attributes),
            };
            publish(store, vec![(ATTRIBUTES.to_owned(), bytes.into())]).await?;
        }
        Ok(attributes)
    }
}

/// A repair of a dataset as its meta files describe it.
struct Repair {
    committed: Arc<Committed>,
    /// Only say what would be done.
    dry_run: bool,
}

impl Repair {
    async fn run(&self, rows_before: Option<u64>, mut notes: Vec<String>) -> Result<Repaired> {
        let committed = &self.committed;
        let mut columns = Vec::new();
        for (at, column) in committed.columns.iter().enumerate() {
            let examined = committed.examine(column).await?;
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
        // The rows behind the last full chunk must be durable before `meta/sizes` counts them.
        for (at, _, examined) in &columns {
            let kept = self.repair_tail(*at, examined, rows_after, &mut notes);
            set_aside.extend(kept.await?);
        }
        if rows_before != Some(rows_after) {
            notes.push(match rows_before {
                Some(before) => format!("{SIZES} said {before} rows, and says {rows_after}"),
                None => format!("{SIZES} is written anew, with {rows_after} rows"),
            });
        }
        if !self.dry_run {
            self.write_sizes(rows_after, &columns).await?;
        }
        for (at, _, examined) in &columns {
            let column = &committed.columns[*at];
            self.repair_files(column, examined, rows_after, &mut set_aside).await?;
        }
        for aside in &set_aside {
            notes.push(match &aside.renamed {
                Some(renamed) => format!("{} is kept as {renamed}: {}", aside.file, aside.reason),
                None => format!("{} would be set aside: {}", aside.file, aside.reason),
            });
        }
        Ok(Repaired { rows_before, rows_after, set_aside, notes })
    }

    /// Writes the tail that a length needs, if it is missing; the file in its place, which may be a full
    /// one, is kept.
    async fn repair_tail(
        &self,
        at: usize,
        examined: &Examined,
        len: u64,
        notes: &mut Vec<String>,
    ) -> Result<Option<SetAside>> {
        let (committed, access) = (&self.committed, &self.committed.access);
        let column = &committed.columns[at];
        let full = len / column.chunklen.max(1);
        let rows = column.rows_in(full, len);
        let has_tail = examined.tails.get(&full).is_some_and(|tail| tail.rows >= rows);
        if rows == 0 || has_tail {
            return Ok(None);
        }
        notes.push(format!("{}: {rows} rows of chunk {full} become a tail", column.path));
        let (file, slot) = column.place_of(full);
        let index = usize::try_from(file).ok().and_then(|file| examined.files.get(file));
        let Some(index) = index.filter(|_| slot > 0) else { return Ok(None) };
        let tail = column.tail_file(full);
        let in_the_way = examined.all.iter().find(|(number, _)| *number == tail);
        let mut kept = in_the_way.map(|(_, path)| SetAside {
            file: path.clone(),
            renamed: None,
            reason: format!("the last of {len} rows go where it was"),
        });
        if self.dry_run {
            return Ok(kept);
        }
        let plain = access.check_chunk(column, index, slot).await?;
        let wanted = usize::try_from(rows.saturating_mul(column.row_bytes())).unwrap_or(0);
        if let Some(kept) = &mut kept {
            let renamed = kept_name(&kept.file)?;
            self.keep_as(&kept.file, &renamed).await?;
            kept.renamed = Some(renamed);
        }
        access.put_tail(committed, at, full, &plain.slice(..wanted.min(plain.len()))).await?;
        Ok(kept)
    }

    /// Gives a file a second name, durably, before another file takes the first one.
    async fn keep_as(&self, path: &str, renamed: &str) -> Result<()> {
        let store = &self.committed.access.store;
        store.link(path, renamed).await?;
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        store.sync_dir(folder).await
    }

    async fn write_sizes(&self, len: u64, columns: &[(usize, u64, Examined)]) -> Result<()> {
        let committed = &self.committed;
        let mut cbytes = Vec::with_capacity(columns.len());
        for (at, _, examined) in columns {
            let column = &committed.columns[*at];
            let full = len / column.chunklen.max(1);
            let count = usize::try_from(full).unwrap_or(usize::MAX);
            let mut all = examined.files.iter().flat_map(|index| &index.chunks);
            let stored: u64 = all.by_ref().take(count).map(|chunk| chunk.end - chunk.start).sum();
            // An estimate: a tail that comes from a full chunk counts with the size of that chunk.
            let tail = match (column.rows_in(full, len), examined.tails.get(&full)) {
                (0, _) => 0,
                (_, Some(tail)) => tail.encoded,
                (_, None) => all.next().map_or(0, |chunk| chunk.end - chunk.start),
            };
            cbytes.push((stored + tail) as i64);
        }
        let sizes = committed.sizes_for(len, &cbytes);
        committed.access.put_sizes(committed, &sizes, &cbytes).await
    }

    /// Cuts every file to the chunks that count, and sets aside files that are not needed.
    async fn repair_files(
        &self,
        column: &Column,
        examined: &Examined,
        len: u64,
        set_aside: &mut Vec<SetAside>,
    ) -> Result<()> {
        let (committed, access) = (&self.committed, &self.committed.access);
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
            let grows = access.style == Style::Superchunk;
            if !grows || access.is_whole(column, file, &index).await? {
                continue;
            }
            let path = column.file(access.style, file);
            let reason = format!("only its first {count} chunks are whole and count");
            let renamed = match self.dry_run {
                true => None,
                false => {
                    let chunks = access.chunks_of(&index, count).await?;
                    let spec = column.file_spec(access.style, begins, column.superchunk)?;
                    let (parts, _) = render(&spec, &path, committed, &chunks, begins)?;
                    let renamed = kept_name(&path)?;
                    self.keep_as(&path, &renamed).await?;
                    access.replace_file(&path, parts).await?;
                    access.store.sync_dir(&column.folder).await?;
                    Some(renamed)
                }
            };
            set_aside.push(SetAside { file: path, renamed, reason });
        }
        for (number, path) in examined.all.iter().rev() {
            let needed = *number < tail || (*number == tail && rows > 0);
            if needed || !committed.files.roots.is_here(*number) {
                continue;
            }
            let reason = format!("it is behind the last of {len} rows");
            let renamed = match self.dry_run {
                true => None,
                false => {
                    let renamed = kept_name(path)?;
                    access.store.rename(path, &renamed).await?;
                    access.store.sync_dir(&column.folder).await?;
                    Some(renamed)
                }
            };
            set_aside.push(SetAside { file: path.clone(), renamed, reason });
        }
        Ok(())
    }
}

/// A new name for a file, which no reader looks for.
fn kept_name(path: &str) -> Result<String> {
    Ok(format!("{path}{KEPT}{}", Uid::fresh()?))
}
