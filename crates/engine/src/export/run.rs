//! All shards of an export, several at a time, in one process.

use std::time::Instant;

use bytes::Bytes;
use chunkyard_store::{Error, Lock, Result, Store, TEMP_PREFIX};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::exporter::Exporter;
use super::files::put_new;
use super::lines::{Journal, Line, Lines, NewLines};
use super::plan::Emit;
use super::progress::Progress;
use super::report::{LOG, Report};
use super::segments;
use super::shards::Shard;

/// The file that makes a directory a Neuroglancer volume. It comes last: what has it is complete.
pub(super) const INFO: &str = "info";
/// The file that one process at a time locks, on a file system.
const LOCK: &str = ".export.lock";
/// The file that names the job that writes here, while it is under way.
const JOB: &str = ".export.job";

impl Exporter {
    /// Writes all shards that are not finished, and then what tells of all of them. Run again after a failure, it goes on
    /// where this run ended.
    pub async fn run(&self, progress: &Progress) -> Result<Report> {
        let began = Instant::now();
        let _alone = self.begin(None).await?;
        let mut lines = Lines::open(self.target()).await?;
        lines.begin().await?;
        let lines = Journal::new(lines);
        let mut report = Report::default();
        let mut written = Ok(());
        for scale in 0..self.num_scales() {
            written = self.run_scale(scale, &lines, progress, &mut report).await;
            if written.is_err() {
                break;
            }
        }
        // Also after a failure: finished shards count.
        let mut lines = lines.into_lines();
        let flushed = lines.flush().await;
        written?;
        flushed?;
        self.finish(&lines.complete().await?, report, began).await
    }

    /// Makes the target this export's, for this process alone where the store can tell, or for a job. The target of a job
    /// that is under way is refused: its workers write under temporary names.
    pub(crate) async fn begin(&self, job: Option<&str>) -> Result<Option<Lock>> {
        let target = self.target();
        // A target that holds another export stays untouched.
        self.plan().claim(target).await?;
        let lock = match target.renames() {
            true => Some(target.lock(LOCK).await?),
            false => None,
        };
        self.claim_for(job, lock.is_some()).await?;
        if lock.is_some() {
            self.sweep().await?;
        }
        Ok(lock)
    }

    /// Names the job that writes here, and refuses the target of another one. `alone`: nothing else writes the name now.
    async fn claim_for(&self, job: Option<&str>, alone: bool) -> Result<()> {
        let target = self.target();
        if let Some(job) = job.filter(|_| !alone) {
            // It may be there already: what is read then decides.
            target.create(JOB, Bytes::from(job.to_owned())).await?;
        }
        let found = match (target.get(JOB).await, job) {
            (Ok(found), _) => found.bytes,
            (Err(Error::NotFound { .. }), None) => return Ok(()),
            (Err(Error::NotFound { .. }), Some(job)) => {
                return put_new(target, JOB, job.to_owned().into()).await.map(drop);
            }
            (Err(error), _) => return Err(error),
        };
        if job.is_some_and(|job| found == job) {
            return Ok(());
        }
        let found = String::from_utf8_lossy(&found);
        Err(Error::invalid(format!(
            "{} is being written by the job {found}; run `chunkyard work {found}`, or delete {} if the job was given up",
            target.url(),
            target.object_url(JOB)
        )))
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
        lines: &Journal,
        progress: &Progress,
        report: &mut Report,
    ) -> Result<()> {
        let shards = self.shards(scale).await?;
        report.outside.push(shards.outside);
        progress.expect(shards.count(), shards.weight());
        let resumed = stream::iter(shards.iter())
            .map(|shard| async move {
                let known = lines.get(shard.scale, shard.number).await?;
                let (line, resumed) = self.complete(&shard, known.as_ref()).await?;
                progress.finish_shard(shard.weight, line.blocks, line.bytes);
                if !resumed {
                    lines.note(line).await?;
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
        lines: impl Stream<Item = Result<Vec<Line>>>,
        outside: Vec<u64>,
        began: Instant,
    ) -> Result<Report> {
        // Whatever still has a temporary name is an attempt that does not count.
        self.sweep().await?;
        let mut all = NewLines::begin(self.target()).await?;
        futures::pin_mut!(lines);
        while let Some(some) = lines.try_next().await? {
            all.push(&some).await?;
        }
        let report = Report { outside, ..Report::default() };
        let report = self.finish(&all.finish().await?, report, began).await?;
        self.target().delete(&[JOB.to_owned()]).await?;
        Ok(report)
    }

    /// Writes what tells of all shards, once all of them are there.
    async fn finish(&self, lines: &Lines, mut report: Report, began: Instant) -> Result<Report> {
        if self.plan().emits(Emit::Precomputed) {
            self.write_info().await?;
        }
        report.begin(self.plan())?;
        lines.for_each(|line| report.add(&line)).await?;
        report.end(began.elapsed());
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
