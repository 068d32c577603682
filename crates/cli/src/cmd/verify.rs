//! `chunkyard verify`: is everything there, and is it what was written?

use anyhow::Result;
use chunkyard_engine::format::{self, OpenOptions, Verdict, Versions, check};
use chunkyard_engine::repo::{Finding, Level, Report, Severity};
use chunkyard_engine::store::Limits;
use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::failure::Unsound;
use crate::output::Output;
use crate::printable::{brief, line};
use crate::units::{count, short, size};

/// Check a dataset of any format
///
/// Reads only. Exit code 0 means that no damage was found, 5 that data is lost or unreadable. Chunks
/// without a checksum are decoded and called readable: whether their values are right cannot be
/// checked. Checksums of Zarr and HDF5 do not say to which chunk they belong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard verify sea.zarr
  chunkyard verify weather --level bytes")]
pub(crate) struct Verify {
    /// The place
    url: String,

    /// How deep to look; each level includes the levels before it [default: existence for a repository,
    /// which knows what it holds, bytes for all others]
    #[arg(long, value_enum)]
    level: Option<Depth>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Depth {
    /// The state file of a repository
    State,
    /// All metadata, of all versions
    Metadata,
    /// That all chunks are where they should be
    Existence,
    /// Every byte
    Bytes,
}

impl From<Depth> for Level {
    fn from(depth: Depth) -> Self {
        match depth {
            Depth::State => Self::State,
            Depth::Metadata => Self::Metadata,
            Depth::Existence => Self::Existence,
            Depth::Bytes => Self::Bytes,
        }
    }
}

impl Verify {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, format, options) = context.recognise(&self.url, Limits::default()).await?;
        let errors = if format.versions() == Versions::Commits {
            let repo = context.open(&self.url).await?;
            let watch = context.watch("checking");
            let report = repo.verify(self.level.unwrap_or(Depth::Existence).into()).await?;
            drop(watch);
            context.output.result(&report, || describe(&report, context.output))?;
            report.findings.iter().filter(|f| f.severity == Severity::Error).count()
        } else {
            // What can be read is checked, and what cannot is listed.
            let options = OpenOptions { skip_corrupt: true, ..options };
            let source = format.open(&place, &options).await?;
            let watch = context.watch("checking");
            let level = self.level.unwrap_or(Depth::Bytes).into();
            let report = check(&source, level, context.meter()).await?;
            drop(watch);
            context.output.result(&report, || describe_any(&report, context.output))?;
            usize::try_from(report.errors).unwrap_or(usize::MAX)
        };
        if errors == 0 { Ok(()) } else { Err(Unsound { errors }.into()) }
    }
}

/// The report as text.
pub(crate) fn describe(report: &Report, output: Output) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&describe_finding(finding, output));
    }
    let checked = &report.checked;
    let mut looked = vec!["the state".to_owned()];
    if report.level >= Level::Metadata {
        looked.push(count(checked.snapshots, "snapshot"));
        looked.push(count(checked.files, "metadata file"));
    }
    if report.level >= Level::Existence {
        looked.push(count(checked.references, "chunk"));
        looked.push(count(checked.chunk_files, "chunk file"));
    }
    if checked.bytes > 0 {
        looked.push(format!("{} compared with checksums", size(checked.bytes)));
    }
    let verdict = if report.is_sound() { output.green("sound") } else { output.red("damaged") };
    text.push_str(&format!("{verdict}: {}\n", looked.join(", ")));
    if report.orphan_files > 0 {
        // Unreadable snapshots may need them, and then no collection begins.
        let (needed_by, remedy) = match report.is_sound() {
            true => ("any snapshot", ", for `chunkyard repo gc` to remove once they are a day old"),
            false => ("what could be read", ""),
        };
        text.push_str(&format!(
            "not needed by {needed_by}: {} ({}){remedy}\n",
            count(report.orphan_files, "file"),
            size(report.orphan_bytes)
        ));
    }
    text
}

/// The report on a place of any other format, as text.
fn describe_any(report: &format::Report, output: Output) -> String {
    let listed =
        |severity| report.findings.iter().filter(|f| f.severity == severity).count() as u64;
    let mut text: String =
        report.findings.iter().map(|finding| describe_finding(finding, output)).collect();
    let more = report.errors.saturating_sub(listed(Severity::Error));
    if more > 0 {
        text.push_str(&format!("and {more} more errors\n"));
    }
    let checked = &report.checked;
    let mut looked = vec![count(checked.arrays, "array")];
    if report.level >= Level::Existence {
        looked.push(count(checked.chunks, "stored chunk"));
        looked.push(count(checked.objects, "object"));
    }
    if report.level >= Level::Bytes {
        looked.push(format!("{} of encoded chunks decoded", size(checked.bytes)));
    }
    let verdict = match report.verdict {
        Verdict::Sound => output.green("sound"),
        Verdict::Readable => output.green("readable"),
        Verdict::Damaged => output.red("damaged"),
    };
    text.push_str(&format!("{verdict}: {}\n", looked.join(", ")));
    let unchecked = [(checked.unchecked, "chunk"), (checked.unchecked_files, "meta file")];
    let unchecked = unchecked.into_iter().filter(|(number, _)| *number > 0);
    let unchecked: Vec<String> = unchecked.map(|(number, what)| count(number, what)).collect();
    if !unchecked.is_empty() {
        text.push_str(&format!("cannot be checked: {} without a checksum\n", unchecked.join(", ")));
    }
    if report.orphan_files > 0 {
        let files = count(report.orphan_files, "file");
        text.push_str(&format!("of no array: {files} ({})\n", size(report.orphan_bytes)));
    }
    text
}

fn describe_finding(finding: &Finding, output: Output) -> String {
    let severity = match finding.severity {
        Severity::Error => output.red("error"),
        Severity::Note => output.dim("note"),
    };
    let mut text = format!("{severity}: {}: {}", brief(&finding.file), line(&finding.what));
    if let Some(array) = &finding.array {
        let chunk = finding.chunk.as_ref().map(|chunk| format!(" chunk {chunk:?}"));
        text.push_str(&format!("\n  in {}{}", brief(array), chunk.unwrap_or_default()));
    }
    if let Some(first) = finding.snapshots.first() {
        let more = match finding.snapshots.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        text.push_str(&format!("\n  needed by snapshot {}{more}", output.id(short(first))));
    }
    text.push('\n');
    text
}
