//! All shards of an export, several at a time, in one process.

use std::time::Instant;

use chunkyard_store::{Error, Lock, Result, Store, TEMP_PREFIX};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Mutex;

use super::exporter::Exporter;
use super::files::put_new;
use super::lines::{Line, Lines};
use super::plan::Emit;
use super::progress::Progress;
use super::report::{LOG, Report};
use super::segments;
use super::shards::Shard;

/// The file that makes a directory a Neuroglancer volume. It comes last: what has it is complete.
const INFO: &str = "info";
/// The file that one process at a time locks, on a file system.
const LOCK: &str = ".export.lock";

impl Exporter {
    /// Writes all shards that are not finished, and then what tells of all of them. Run again after a failure, it goes on
    /// where this run ended.
    pub async fn run(&self, progress: &Progress) -> Result<Report> {
        let began = Instant::now();
        let _alone = self.begin().await?;
        let mut lines = Lines::open(self.target()).await?;
        lines.begin().await?;
        let lines = Mutex::new(lines);
        let mut report = Report::default();
        let mut written = Ok(());
        for scale in 0..self.num_scales() {
            written = self.run_scale(scale, &lines, progress, &mut report).await;
            if written.is_err() {
                break;
            }
        }
        // Also after a failure: finished shards count.
        let mut lines = lines.into_inner();
        let flushed = lines.flush().await;
        written?;
        flushed?;
        self.finish(lines.all(), report, began).await
    }

    /// Makes the target this export's, for this process alone where the store can tell.
    pub(crate) async fn begin(&self) -> Result<Option<Lock>> {
        let target = self.target();
        // A target that holds another export stays untouched.
        self.plan().claim(target).await?;
        if !target.renames() {
            return Ok(None);
        }
        let lock = target.lock(LOCK).await?;
        self.sweep().await?;
        Ok(Some(lock))
    }

    /// Deletes what a killed process left under temporary names.
    async fn sweep(&self) -> Result<()> {
        let mut folders = vec![String::new()];
        folders.extend(self.folders());
        let mut left = Vec::new();
        for folder in folders {
            let found = self.target().list_dir(&folder).await?;
            let temporary = |path: &String| {
                path.rsplit('/').next().is_some_and(|name| name.starts_with(TEMP_PREFIX))
            };
            left.extend(found.objects.into_iter().map(|meta| meta.path).filter(temporary));
        }
        match left.is_empty() {
            true => Ok(()),
            false => self.target().delete(&left).await,
        }
    }

    async fn run_scale(
        &self,
        scale: usize,
        lines: &Mutex<Lines>,
        progress: &Progress,
        report: &mut Report,
    ) -> Result<()> {
        let shards = self.shards(scale).await?;
        report.outside.push(shards.outside);
        progress.expect(shards.count(), shards.weight());
        let resumed = stream::iter(shards.iter())
            .map(|shard| async move {
                let known = lines.lock().await.get(shard.scale, shard.number).cloned();
                let (line, resumed) = self.complete(&shard, known.as_ref()).await?;
                progress.finish_shard(shard.weight, line.blocks, line.bytes);
                if !resumed {
                    lines.lock().await.note(line).await?;
                }
                Ok::<_, Error>(u64::from(resumed))
            })
            .buffer_unordered(self.limits().packs_in_flight.max(1))
            .try_fold(0, |sum, resumed| async move { Ok(sum + resumed) })
            .await?;
        report.resumed += resumed;
        Ok(())
    }

    /// Writes a shard, unless a line says that it is finished, and its files are there. Also says which.
    pub(crate) async fn complete(
        &self,
        shard: &Shard,
        known: Option<&Line>,
    ) -> Result<(Line, bool)> {
        match known {
            Some(line) if is_sound(self.target(), line).await? => Ok((line.clone(), true)),
            _ => Ok((self.run_shard(shard).await?, false)),
        }
    }

    /// Ends an export whose shards other processes have written: the lines of all shards, and what tells of all of them.
    pub(crate) async fn conclude(
        &self,
        lines: Vec<Line>,
        outside: Vec<u64>,
        began: Instant,
    ) -> Result<Report> {
        // Whatever still has a temporary name is an attempt that does not count.
        self.sweep().await?;
        let lines = Lines::replace(self.target(), lines).await?;
        let report = Report { outside, ..Report::default() };
        self.finish(lines.all(), report, began).await
    }

    /// Writes what tells of all shards, once all of them are there.
    pub async fn finish<'a>(
        &self,
        lines: impl Iterator<Item = &'a Line>,
        mut report: Report,
        began: Instant,
    ) -> Result<Report> {
        if self.plan().emits(Emit::Precomputed) {
            self.write_info().await?;
        }
        report.fill(self.plan(), lines, began.elapsed())?;
        put_new(self.target(), LOG, report.render()?.into()).await?;
        Ok(report)
    }

    /// Writes what a volume says of itself, and of its segments where they are known and the specification names no others.
    async fn write_info(&self) -> Result<()> {
        let mut info = self.plan().info()?;
        if !info.rest.contains_key(segments::MEMBER) {
            let plan = self.plan();
            let known = segments::properties(self.source(), &plan.levels, plan.ids).await?;
            if let Some(properties) = known {
                put_new(self.target(), segments::FILE, properties.render()?.into()).await?;
                info.rest.insert(segments::MEMBER.to_owned(), segments::FOLDER.into());
            }
        }
        put_new(self.target(), INFO, info.render().into()).await?;
        Ok(())
    }
}

/// Whether the files of a line are there, with their sizes.
async fn is_sound(store: &Store, line: &Line) -> Result<bool> {
    for file in &line.files {
        match store.head(&file.path).await {
            Ok(meta) if meta.size == file.bytes => {}
            Ok(_) | Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
