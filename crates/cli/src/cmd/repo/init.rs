//! `chunkyard repo init`: a new repository.

use anyhow::Result;
use chunkyard_engine::repo::{Compat, Config, CreateOptions, Repository};
use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::units::parse_pair;

/// Create a repository
///
/// Refuses, with exit code 4, if there is one already.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo init weather --property 'title=Daily means'")]
pub(crate) struct Init {
    /// Where to create it
    repo: String,

    /// Write only what readers of the early draft understand, or fail
    #[arg(long)]
    draft: bool,

    /// Name of the default branch
    #[arg(long, value_name = "NAME", default_value = "main")]
    default_branch: String,

    /// Create even if files of an older repository are left
    #[arg(long)]
    force: bool,

    /// Keep the data files at another URL than the state file
    ///
    /// Every command that opens the repository must allow that URL with `--allow`.
    #[arg(long, value_name = "URL")]
    store_root: Option<String>,

    /// User metadata of the whole dataset, as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    property: Vec<(String, String)>,
}

impl Init {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        context.about(&self.repo);
        let compat = if self.draft { Compat::Draft } else { Compat::Wide };
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let create = CreateOptions {
            default_branch: self.default_branch.clone(),
            config: Config { compat, ..Config::default() },
            properties: self.property.iter().map(|(k, v)| (k.clone(), value(v))).collect(),
            force: self.force,
            store_root: self.store_root.clone(),
        };
        let repo = Repository::create(&self.repo, context.options(), create).await?;
        let state = repo.state().await?;
        let snapshot = state.tip(&state.default_branch)?;
        let document = json!({
            "url": repo.url(),
            "id": state.id,
            "default-branch": state.default_branch,
            "snapshot-id": snapshot.snapshot_id,
        });
        context.output.done(&document, || {
            format!(
                "created {} with branch {}; next: chunkyard repo set {} /PATH FILE.npy -m MESSAGE{}",
                repo.url(),
                state.default_branch,
                self.repo,
                self.store_root.iter().map(|url| format!(" --allow {url}")).collect::<String>()
            )
        })
    }
}
