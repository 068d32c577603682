//! Moves full files to another root, so that a dataset is spread over several.
//!
//! ```text
//!  copy ─▶ compare the copy ─▶ meta/sizes, the commit ─▶ meta/shards, a copy ─▶ delete here
//! ```
//!
//! Full files never change, so a copy is as good as the original. `meta/sizes` lists the files elsewhere, so
//! the list is committed as rows are, and a writer that slept cannot commit it. Rows are still added
//! here; see `bring_back` for what happens when rows are cut off in a file elsewhere.

use std::ops::RangeInclusive;

use chunkyard_store::{Error, Location, Result};

use super::copy::Copied;
use crate::publish::publish;
use crate::superchunk::committed::Committed;
use crate::superchunk::handle::Blz;
use crate::superchunk::meta::{Shards, Sizes};
use crate::superchunk::model::Style;
use crate::superchunk::read::directory::{SHARDS, read_shards};
use crate::superchunk::write::Writing;

impl Blz {
    /// Moves full files, by the numbers in their names, to another root: any store, which readers must allow.
    /// Commits waiting rows first. Files that were moved there before are left alone, so that an
    /// interrupted move can be repeated; a different file there is [`Error::Invalid`], because it may be in
    /// use.
    pub async fn relocate(&self, files: RangeInclusive<u64>, base: &str) -> Result<()> {
        let mut writing = self.shared.writing.lock().await;
        writing.commit().await?;
        writing.begin().await?;
        let moved = match writing.relocate(files, base).await {
            Err(error) => Err(writing.explain_loss(error).await),
            Ok(()) => Ok(()),
        };
        writing.reset();
        if moved.is_ok() || matches!(moved, Err(Error::OutcomeUnknown { .. })) {
            writing.reread().await?;
        }
        moved
    }
}

impl Writing {
    async fn relocate(&self, files: RangeInclusive<u64>, base: &str) -> Result<()> {
        let (access, committed) = (&self.access, self.committed());
        let moving = committed.files_to_move(&files, base)?;
        let elsewhere = committed.files.roots.remotes.below(base)?;
        committed.refuse_overlap(base)?;
        let mut copies: Vec<Copied> = Vec::new();
        for column in committed.columns.iter() {
            for number in &moving {
                let path = column.file(access.style, number - 1);
                copies.push(access.copy_to_root(path, &elsewhere).await?);
            }
        }
        let shards = committed.files.roots.shards().clone();
        let shards = moving.iter().fold(shards, |shards, number| shards.with(*number, base));
        if !moving.is_empty() {
            self.commit_shards(&committed, &shards).await?;
        }
        self.copy_shards(&shards).await?;
        for file in copies {
            // If this fails, the next writer removes the file.
            access.remove_file(file.path, file.version).await.ok();
        }
        Ok(())
    }

    /// Commits a new list of the files elsewhere.
    pub(crate) async fn commit_shards(&self, base: &Committed, shards: &Shards) -> Result<()> {
        let sizes = base.sizes_for(base.len(), &base.cbytes);
        self.commit_sizes(base, Sizes { shards: Some(shards.clone()), ..sizes }).await
    }

    /// Writes the list to `meta/shards`, for a repair that finds no `meta/sizes`.
    pub(crate) async fn copy_shards(&self, shards: &Shards) -> Result<()> {
        if read_shards(&self.access.store).await.ok().flatten().unwrap_or_default() == *shards {
            return Ok(());
        }
        let sealed = self.committed().sizes.sealed;
        publish(&self.access.store, vec![(SHARDS.to_owned(), shards.render(sealed).into())]).await
    }

    /// Moves the generation, so that readers notice that files have changed.
    pub(crate) async fn next_generation(&self, base: &Committed) -> Result<()> {
        self.commit_sizes(base, base.sizes_for(base.len(), &base.cbytes)).await
    }

    /// Replaces `meta/sizes` while the rows stay the same.
    async fn commit_sizes(&self, base: &Committed, sizes: Sizes) -> Result<()> {
        let version = self.access.commit_sizes(base, &sizes, &base.cbytes).await?;
        self.current.commit(Committed { sizes, version, ..base.clone() });
        Ok(())
    }
}

impl Committed {
    /// Refuses a root inside the dataset, under any name: its files would be taken for the dataset's own.
    fn refuse_overlap(&self, base: &str) -> Result<()> {
        let (here, there) = (Location::of(self.access.store.url())?, Location::of(base)?);
        let folders =
            self.columns.iter().map(|column| there.join(&column.folder)).collect::<Vec<_>>();
        match folders.iter().chain([&there]).any(|place| place.is_within(&here)) {
            true => Err(Error::invalid(format!(
                "the files of {} cannot be moved to {base}, which lies in it; name a place elsewhere",
                self.access.store.url()
            ))),
            false => Ok(()),
        }
    }

    /// The numbers of those files that are not at `base` yet.
    fn files_to_move(&self, files: &RangeInclusive<u64>, base: &str) -> Result<Vec<u64>> {
        let (first, last) = (*files.start(), *files.end());
        if self.access.style != Style::Superchunk {
            return Err(Error::unsupported(format!(
                "files elsewhere of {}, which is in the style {:?}",
                self.access.store.url(),
                self.access.style.word()
            )));
        }
        let full = self
            .columns
            .iter()
            .map(|column| self.len() / column.chunklen.max(1) / column.superchunk.max(1));
        let full = full.min().unwrap_or(0);
        if first == 0 || first > last || last > full {
            return Err(Error::invalid(format!(
                "moving files {first} to {last} of {}: those that are full are 1 to {full}",
                self.access.store.url()
            )));
        }
        let shards = self.files.roots.shards();
        let mut moving = Vec::new();
        for number in files.clone() {
            match shards.base_of(number) {
                None => moving.push(number),
                Some(there) if there == base => {}
                Some(there) => {
                    let what = format!("file {number} is elsewhere already, at {there}");
                    return Err(Error::invalid(what));
                }
            }
        }
        Ok(moving)
    }
}
