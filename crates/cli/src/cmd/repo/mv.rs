//! `chunkyard repo mv`: moves an array or a group; chunks stay where they are.

use anyhow::Result;
use chunkyard_engine::format::Edit;
use clap::Args;
use serde_json::json;

use crate::args::CommitArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::spelling::Spelling;

/// Move an array or a group
///
/// No chunk is copied.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard repo mv weather /t /air/temperature -m 'tidy up'")]
pub(crate) struct Mv {
    /// The repository
    repo: String,

    /// Its path
    from: String,

    /// Its new path; groups above it are created
    to: String,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Mv {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (spelling, edit) = (Spelling::Repo, Edit::Create);
        let subject = Subject { spelling, url: &self.repo, path: &self.to, edit };
        let (CommitArgs { branch, change }, new) = (&self.commit, New::default());
        let changing = Changing::begin(subject, branch.as_deref(), change, new, context).await?;
        let moved = match &changing.tip {
            Some(tip) => tip.session().move_node(&self.from, &self.to),
            None => Err(edit.refused(&self.to, changing.format)),
        };
        let moved = moved.map(|()| json!({"from": self.from, "to": self.to}));
        let done = format!("move {} to {}", self.from, self.to);
        changing.end(moved.map_err(Into::into), &done).await
    }
}
