//! `chunkyard verify`: is everything there, and is it what was written?

use anyhow::Result;
use chunkyard_engine::repo::{Finding, Level, Report, Severity};
use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::failure::Unsound;
use crate::output::Output;
use crate::units::{count, short, size};

/// Check what is at a place, whatever its format
///
/// Reads only. Exit code 0 means sound, 5 that data is lost or unreadable.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard verify weather --level bytes")]
pub(crate) struct Verify {
    /// The place
    url: String,

    /// How deep to look; each level includes those before it
    #[arg(long, value_enum, default_value_t = Depth::Existence)]
    level: Depth,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Depth {
    /// The state file
    State,
    /// All metadata files of all versions, byte for byte
    Metadata,
    /// That all chunk files exist and are long enough
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
        let repo = context.open(&self.url).await?;
        let watch = context.watch("checking");
        let report = repo.verify(self.level.into()).await?;
        drop(watch);
        context.output.result(&report, || describe(&report, context.output))?;
        if report.is_sound() {
            return Ok(());
        }
        let errors = report.findings.iter().filter(|f| f.severity == Severity::Error).count();
        Err(Unsound { errors }.into())
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
        text.push_str(&format!(
            "not needed by any snapshot: {} ({}), for `chunkyard repo gc` to remove\n",
            count(report.orphan_files, "file"),
            size(report.orphan_bytes)
        ));
    }
    text
}

fn describe_finding(finding: &Finding, output: Output) -> String {
    let severity = match finding.severity {
        Severity::Error => output.red("error"),
        Severity::Note => output.dim("note"),
    };
    let mut text = format!("{severity}: {}: {}", finding.file, finding.what);
    if let Some(array) = &finding.array {
        let chunk = finding.chunk.as_ref().map(|chunk| format!(" chunk {chunk:?}"));
        text.push_str(&format!("\n  in {array}{}", chunk.unwrap_or_default()));
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
