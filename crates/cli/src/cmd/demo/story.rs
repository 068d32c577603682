//! The steps of the demonstration, and the text it prints about them.

use std::path::Path;

use anyhow::{Result, bail};
use chunkyard_array::Region;
use chunkyard_engine::Error;
use chunkyard_engine::export::Totals;
use chunkyard_engine::labels::LabelDiff;
use chunkyard_engine::repo::{
    CommitOptions, Conflict, Diff, Level, Rebase, Report, Repository, Version,
};
use serde::Serialize;

use super::climate::{self, DAYS, axes};
use super::{segmentation, volume};
use crate::cmd::{labels, repo as commands, verify};
use crate::context::Context;
use crate::output::Output;
use crate::units::{count, short, size};

const ARRAY: &str = "/air/temperature";
/// Days in each of the four seasons, one commit each.
const SEASON: u64 = 90;
/// A chunk in the south-west of January, and one in the north-east of December.
const JANUARY: &str = "0:30,0:45,0:90";
const DECEMBER: &str = "330:360,45:90,90:180";
/// A grid cell in the north-east, for the numbers.
const CELL: &str = ":,70,100";

/// The demonstration under way.
pub(super) struct Story<'a> {
    repo: Repository,
    context: &'a Context,
    output: Output,
    /// The directory of the repository.
    dir: &'a Path,
}

/// What happened, for `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Told {
    url: String,
    seasons: Vec<String>,
    conflict: Vec<Conflict>,
    rebased: String,
    readings: Vec<Reading>,
    diff: Diff,
    bodies: LabelDiff,
    volume: Totals,
    verify: Report,
}

/// One grid cell over the year, in one version.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Reading {
    version: String,
    days: usize,
    mean_kelvin: f64,
}

impl<'a> Story<'a> {
    pub(super) fn new(repo: Repository, context: &'a Context, dir: &'a Path) -> Self {
        Self { repo, context, output: context.output, dir }
    }

    /// Runs all steps.
    pub(super) async fn tell(&self) -> Result<Told> {
        let seasons = self.commit_seasons().await?;
        self.branch_and_tag().await?;
        let (conflict, rebased) = self.collide().await?;
        let readings = self.travel(&seasons).await?;
        self.heading("What changed since v1: `chunkyard repo diff`")?;
        let diff = self.repo.diff(&Version::Tag("v1".into()), &Version::Default).await?;
        self.say(&commands::describe_diff(&diff, self.output))?;
        let bodies = self.segment().await?;
        let volume = self.export().await?;
        let verify = self.verify().await?;
        self.heading("History, newest first: `chunkyard repo log --all`")?;
        let state = self.repo.state().await?;
        let mut snapshots = state.snapshots.clone();
        snapshots.reverse();
        self.say(&commands::describe_log(&snapshots, &state, self.output))?;
        let seasons = seasons.into_iter().map(|(id, _)| id).collect();
        let url = self.repo.store().url().to_owned();
        Ok(Told { url, seasons, conflict, rebased, readings, diff, bodies, volume, verify })
    }

    /// A segmentation: two branches of edits that come together, and what they changed.
    async fn segment(&self) -> Result<LabelDiff> {
        self.heading("A segmentation, edited on two branches: `chunkyard labels`")?;
        let report = segmentation::edit_on_two_branches(&self.repo).await?;
        self.say(&report.lines.join("\n"))?;
        self.say(&labels::describe_diff(&report.diff, self.output))?;
        Ok(report.diff)
    }

    /// The segmentation as shards for analysis and as a volume for Neuroglancer.
    async fn export(&self) -> Result<Totals> {
        self.heading("The bodies as a volume for Neuroglancer: `chunkyard export-shards`")?;
        let (to, place) = (volume::beside(self.dir), self.dir.display().to_string());
        let report = volume::export(&place, segmentation::PATH, &to, self.context).await?;
        let total = report.total;
        self.say(&format!(
            "{}: {} in {} of {}, {}",
            to.display(),
            count(total.blocks, "block"),
            count(total.shards, "shard"),
            count(report.scales.len() as u64, "scale"),
            size(total.bytes)
        ))?;
        Ok(total)
    }

    /// Creates the arrays and fills the year, season by season. Gives ids and times.
    async fn commit_seasons(&self) -> Result<Vec<(String, i64)>> {
        self.heading("A year of temperatures, one commit per season")?;
        let session = self.repo.writable_session("main").await?;
        session.create_group("/air", Default::default())?;
        for axis in axes() {
            let array = session.create_array(&format!("/air/{}", axis.name), axis.spec()?).await?;
            array.write_region(&Region::whole(&[axis.length]), axis.values().into()).await?;
        }
        let spec = climate::temperature()?;
        let bytes = Region::whole(spec.shape()).num_bytes(4)? as u64;
        session.create_array(ARRAY, spec).await?;
        session.commit(CommitOptions::message("describe the grid")).await?;

        let bar = self.context.progress(ARRAY, bytes);
        let mut done = Vec::new();
        for (at, name) in ["winter", "spring", "summer", "autumn"].into_iter().enumerate() {
            bar.say(name);
            let session = self.repo.writable_session("main").await?;
            let array = session.array(ARRAY).await?;
            let start = at as u64 * SEASON;
            let days = format!("{start}:{}", (start + SEASON).min(DAYS));
            let region = Region::parse(&days, array.spec().shape())?;
            let values = climate::values(&region, 0.0);
            let written = values.len() as u64;
            array.write_region(&region, values.into()).await?;
            let snapshot =
                session.commit(CommitOptions::message(format!("observations of {name}"))).await?;
            bar.advance(written);
            done.push((snapshot.snapshot_id.clone(), snapshot.timestamp_ms));
        }
        drop(bar);
        let chunks = self.repo.readonly_session(&Version::Default).await?.node(ARRAY)?.refs_count;
        self.say(&format!(
            "{ARRAY}: {} as float32, {} in 4 commits",
            size(bytes),
            count(chunks, "chunk")
        ))?;
        Ok(done)
    }

    async fn branch_and_tag(&self) -> Result<()> {
        self.heading("A tag for the paper, a branch for an experiment")?;
        self.repo.create_tag("v1", &Version::Default, false).await?;
        self.repo.create_branch("calibration", &Version::Default).await?;
        let snapshot =
            self.write("calibration", "0:90,45:90", 0.5, "half a kelvin more in the north").await?;
        self.say(&format!("tag v1; branch calibration has one more commit, {}", short(&snapshot)))
    }

    /// Two sessions write one chunk: the second is refused. A third writes elsewhere and rebases.
    async fn collide(&self) -> Result<(Vec<Conflict>, String)> {
        self.heading("Three people change main at the same time")?;
        let (anna, ben, cleo) = tokio::try_join!(
            self.repo.writable_session("main"),
            self.repo.writable_session("main"),
            self.repo.writable_session("main"),
        )?;
        for (session, place, offset) in
            [(&anna, JANUARY, 1.0), (&ben, JANUARY, -1.0), (&cleo, DECEMBER, 2.0)]
        {
            let array = session.array(ARRAY).await?;
            let region = Region::parse(place, array.spec().shape())?;
            array.write_region(&region, climate::values(&region, offset).into()).await?;
        }
        let first = anna.commit(CommitOptions::message("anna: correct January")).await?;
        self.say(&format!("anna commits {}", short(&first.snapshot_id)))?;

        let rebase = Rebase::default();
        let late = CommitOptions::message("ben: correct January").with_rebase(rebase);
        let conflicts = match ben.commit(late).await {
            Err(error @ Error::Conflict { .. }) => {
                self.say(&format!("ben is refused, and told why:\n  {}", {
                    let text = error.to_string().replace('\n', "\n  ");
                    self.output.red(&text)
                }))?;
                let Error::Conflict { conflicts, .. } = error else { bail!(error) };
                conflicts
            }
            Err(error) => bail!(error),
            Ok(_) => bail!("two sessions changed one chunk and neither was refused"),
        };
        let options = CommitOptions::message("cleo: correct December").with_rebase(rebase);
        let rebased = cleo.commit(options).await?;
        self.say(&format!(
            "cleo changed other chunks: her commit {} goes on top of anna's by itself",
            short(&rebased.snapshot_id)
        ))?;
        Ok((conflicts, rebased.snapshot_id.clone()))
    }

    /// The same cell in several versions.
    async fn travel(&self, seasons: &[(String, i64)]) -> Result<Vec<Reading>> {
        self.heading("Time travel: one grid cell over the year, by version")?;
        let mut versions = Vec::new();
        if let Some((_, time_ms)) = seasons.first() {
            let then = Version::AsOf { branch: "main".into(), time_ms: *time_ms };
            versions.push(("main as of winter", then));
        }
        versions.push(("tag v1", Version::Tag("v1".into())));
        versions.push(("calibration", Version::branch("calibration")));
        versions.push(("main now", Version::Default));
        let mut readings = Vec::new();
        for (name, version) in versions {
            let session = self.repo.readonly_session(&version).await?;
            let array = session.array(ARRAY).await?;
            let region = Region::parse(CELL, array.spec().shape())?;
            let bytes = array.read_region(&region).await?;
            let (values, _) = bytes.as_chunks::<4>();
            let values = values.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
            let known: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
            let mean_kelvin = known.iter().sum::<f64>() / known.len().max(1) as f64;
            self.say(&format!("{name:18} {:3} days, mean {mean_kelvin:.2} K", known.len()))?;
            readings.push(Reading { version: name.into(), days: known.len(), mean_kelvin });
        }
        Ok(readings)
    }

    async fn verify(&self) -> Result<Report> {
        self.heading("Is every byte what was written? `chunkyard verify --level bytes`")?;
        let report = self.repo.verify(Level::Bytes).await?;
        self.say(&verify::describe(&report, self.output))?;
        Ok(report)
    }

    /// Commits shifted temperatures of a region.
    async fn write(
        &self,
        branch: &str,
        region: &str,
        offset: f32,
        message: &str,
    ) -> Result<String> {
        let session = self.repo.writable_session(branch).await?;
        let array = session.array(ARRAY).await?;
        let region = Region::parse(region, array.spec().shape())?;
        array.write_region(&region, climate::values(&region, offset).into()).await?;
        Ok(session.commit(CommitOptions::message(message)).await?.snapshot_id.clone())
    }

    fn heading(&self, text: &str) -> Result<()> {
        self.print(&format!("\n{}", self.output.bold(text)))
    }

    fn say(&self, text: &str) -> Result<()> {
        let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        self.print(&indented.join("\n"))
    }

    fn print(&self, text: &str) -> Result<()> {
        if self.output.is_json() { Ok(()) } else { self.output.text(text) }
    }
}
