//! `chunkyard blz repair`: keeps the rows before the first damage.

use anyhow::Result;
use chunkyard_engine::format::superchunk::Blz;
use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::units::count;

/// Bring back all rows before the first damage
///
/// Rows are never made up, and nothing is deleted: a file whose content no longer counts in full is
/// kept under another name. Attributes that another program changed, so that their checksum is wrong,
/// are accepted as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz repair ticks.blz --dry-run
  chunkyard blz repair ticks.blz")]
pub(crate) struct Repair {
    /// The dataset
    place: String,

    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
}

impl Repair {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, options) = super::place(&self.place, context)?;
        let done = Blz::repair(&place, &options, self.dry_run).await?;
        let aside = done
            .set_aside
            .iter()
            .map(|file| json!({"file": file.file, "renamed": file.renamed, "reason": file.reason}));
        let document = json!({
            "rows-before": done.rows_before,
            "rows-after": done.rows_after,
            "set-aside": aside.collect::<Vec<_>>(),
            "notes": done.notes,
            "dry-run": self.dry_run,
        });
        context.output.done(&document, || {
            let mut lines = done.notes.clone();
            let before = match done.rows_before {
                Some(rows) => format!(", where there were to be {rows}"),
                None => String::new(),
            };
            let (verb, rows) =
                (if self.dry_run { "would have" } else { "has" }, count(done.rows_after, "row"));
            lines.push(format!("{} {verb} {rows}{before}", self.place));
            lines.join("\n")
        })
    }
}
