//! Full files move to another root: a dataset that is spread out.
//!
//! ```text
//!  copy ─▶ compare what is there ─▶ meta/shards ─▶ meta/sizes (others notice) ─▶ delete here
//! ```
//!
//! Full files never change, so wherever one is, it is the same. Rows are still added here. Where rows are
//! cut off so far that a file elsewhere is to be added to, that file comes home first.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::directory::SHARDS;
use super::encoding::encode;
use super::handle::{Blz, Inner, State};
use super::meta::{ShardRange, Shards};
use super::model::Style;
use super::write_out::render;
use crate::error::{Error, Result};
use crate::format::publish::publish;
use crate::store::{Kind, Store, Version};

/// Bytes that are copied and compared at once.
const PIECE_BYTES: u64 = 8 << 20;

impl Blz {
    /// Moves full files, by the numbers in their names, to another root: any store, which whoever reads
    /// must allow. Rows that are not committed are committed first.
    pub async fn relocate(&self, files: RangeInclusive<u64>, base: &str) -> Result<()> {
        let inner = &self.inner;
        let mut writing = inner.writing.lock().await;
        inner.commit(&mut writing).await?;
        inner.begin(&mut writing).await?;
        let state = inner.state().clone();
        let moved = inner.relocate(&state, files, base).await;
        writing.reset();
        if moved.is_ok() {
            inner.reread().await?;
        }
        moved
    }
}

/// A file that moves: where it is, and where it will be.
struct Moving {
    here: String,
    version: Option<Version>,
    there: (Store, String),
}

impl Inner {
    async fn relocate(&self, state: &State, files: RangeInclusive<u64>, base: &str) -> Result<()> {
        let shards = self.shards_with(state, &files, base)?;
        let elsewhere = state.files.roots.remotes.below(base)?;
        let mut moving = Vec::new();
        for column in state.columns.iter() {
            for number in files.clone() {
                let here = column.file(self.style, number - 1);
                let version = Version::from(&self.store.head(&here).await?);
                let version = (self.store.kind() != Kind::Local).then_some(version);
                let there = (elsewhere.clone(), here.clone());
                moving.push(Moving { here, version, there });
            }
        }
        for file in &moving {
            self.copy_there(file).await?;
        }
        publish(&self.store, vec![(SHARDS.to_owned(), shards.render().into())]).await?;
        self.next_generation(state).await?;
        for file in moving {
            self.take_away(file.here, file.version).await?;
        }
        Ok(())
    }

    /// What `meta/shards` says once files are elsewhere.
    fn shards_with(
        &self,
        state: &State,
        files: &RangeInclusive<u64>,
        base: &str,
    ) -> Result<Shards> {
        let (first, last) = (*files.start(), *files.end());
        if self.style != Style::Superchunk {
            return Err(Error::unsupported(format!(
                "files elsewhere of {}, which is in the style {:?}",
                self.store.url(),
                self.style.word()
            )));
        }
        let full = state
            .columns
            .iter()
            .map(|column| state.committed() / column.chunklen.max(1) / column.superchunk.max(1));
        let full = full.min().unwrap_or(0);
        if first == 0 || first > last || last > full {
            return Err(Error::invalid(format!(
                "moving files {first} to {last} of {}: those that are full are 1 to {full}",
                self.store.url()
            )));
        }
        let roots = &state.files.roots;
        if let Some(gone) = files.clone().find(|number| !roots.is_here(number - 1)) {
            return Err(Error::invalid(format!("file {gone} is elsewhere already")));
        }
        let mut ranges = roots.shards().ranges.clone();
        ranges.push(ShardRange { first, last, base: base.to_owned() });
        ranges.sort_by_key(|range| range.first);
        Ok(Shards { ranges })
    }

    /// Copies a file, and reads what is there.
    async fn copy_there(&self, file: &Moving) -> Result<()> {
        let (store, path) = &file.there;
        let size = self.store.head(&file.here).await?.size;
        let mut upload = store.begin(path).await?;
        for range in pieces(size) {
            let piece = self.store.get_range(&file.here, range).await?;
            upload.write(vec![piece]).await?;
        }
        upload.finish().await?;
        store.sync(std::slice::from_ref(path)).await?;
        let copied = store.head(path).await?.size;
        let mut same = copied == size;
        for range in pieces(size).take_while(|_| copied == size) {
            let here: Bytes = self.store.get_range(&file.here, range.clone()).await?;
            same &= here == store.get_range(path, range).await?;
        }
        match same {
            true => Ok(()),
            false => Err(super::corrupt(
                path,
                "the copy",
                format!("the {size} bytes of {}", file.here),
                format!("{copied} bytes, or others"),
            )),
        }
    }

    /// Lets whoever reads notice that files are not where they were.
    pub(super) async fn next_generation(&self, state: &State) -> Result<()> {
        let sizes = state.sizes_for(state.committed(), &state.cbytes);
        if self.store.kind() != Kind::Local {
            let swapped = self.swap_sizes(&sizes, &state.version).await?;
            let version = swapped.ok_or_else(|| super::settle::lost(self.store.url()))?;
            let mut state = self.state();
            (state.sizes, state.version) = (sizes, version);
            return Ok(());
        }
        self.put_sizes(state, &sizes, &state.cbytes).await?;
        self.state().sizes = sizes;
        Ok(())
    }

    /// Brings files home that rows are to be added to, or that are behind the end: rows were cut off.
    pub(super) async fn bring_home(&self) -> Result<()> {
        let state = self.state().clone();
        let len = state.committed();
        let open = |column: &super::model::Column| column.place_of(len / column.chunklen.max(1)).0;
        let first = state.columns.iter().map(open).min().unwrap_or(0);
        let mut shards = state.files.roots.shards().clone();
        shards.ranges.retain(|range| range.first <= first);
        shards.ranges.iter_mut().for_each(|range| range.last = range.last.min(first));
        if shards == *state.files.roots.shards() {
            return Ok(());
        }
        for (at, column) in state.columns.iter().enumerate() {
            let full = len / column.chunklen.max(1);
            let rows = column.rows_in(full, len);
            if rows > 0 && !state.files.roots.is_here(column.place_of(full).0) {
                let found = self.find(&state, at, full).await?;
                let rows = self.decode_rows(column, &found, full, rows).await?;
                let chunk = encode(column, rows).await?;
                let (path, parts, _) = self.render_tail(column, full, &chunk)?;
                self.put_home(&path, parts).await?;
            }
            for file in first..=open(column) {
                let begins = file.saturating_mul(column.superchunk);
                let count = full.saturating_sub(begins).min(column.superchunk);
                if count == 0 || state.files.roots.is_here(file) {
                    continue;
                }
                let (index, _) = self.find_slot(&state, at, begins).await?;
                let chunks = self.chunks_of(&index, count).await?;
                let path = column.file(self.style, file);
                let spec = column.file_spec(self.style, begins, column.superchunk)?;
                let (parts, _) = render(&spec, &path, self, &chunks, begins)?;
                self.put_home(&path, parts).await?;
            }
        }
        publish(&self.store, vec![(SHARDS.to_owned(), shards.render().into())]).await?;
        self.next_generation(&state).await?;
        let roots = state.files.roots.with_shards(shards);
        self.state().files = super::files::Files::new(roots);
        Ok(())
    }

    /// Puts a file where nobody looks yet; durable when this returns.
    async fn put_home(&self, path: &str, parts: Vec<Bytes>) -> Result<()> {
        publish(&self.store, vec![(path.to_owned(), parts.concat().into())]).await
    }
}

/// A file of so many bytes, piece by piece.
fn pieces(size: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..size.div_ceil(PIECE_BYTES)).map(move |piece| {
        let start = piece * PIECE_BYTES;
        start..size.min(start + PIECE_BYTES)
    })
}
