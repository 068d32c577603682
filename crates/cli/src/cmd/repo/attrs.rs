//! `chunkyard repo attrs`: the attributes of an array or a group.

use anyhow::Result;
use chunkyard_array::non_finite;
use chunkyard_engine::repo::{Version, normalise_path};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Map, Value};

use super::{commit, writable};
use crate::args::{CommitArgs, branch_or_default};
use crate::context::Context;

/// Print or change attributes
///
/// Without options prints them as JSON. `--set` merges keys in, `--unset` removes some. NaN, Infinity
/// and -Infinity, which JSON does not have, may be set as Python writes them; they print as text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard repo attrs weather /t
  chunkyard repo attrs weather /t --set '{\"units\": \"K\"}' -m 'name the units'")]
pub(crate) struct Attrs {
    /// The repository
    repo: String,

    /// The array or group; / is the root
    path: String,

    /// Keys to set, as a JSON object
    #[arg(long, value_name = "JSON")]
    set: Option<String>,

    /// A key to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        if self.set.is_none() && self.unset.is_empty() {
            let branch = branch_or_default(&repo, self.commit.branch.as_deref()).await?;
            let session = repo.readonly_session(&Version::Branch(branch)).await?;
            return context.output.document(&*session.attributes(&self.path).await?);
        }
        let session = writable(&repo, &self.commit).await?;
        let mut attributes = session.plain_attributes(&self.path).await?;
        for key in &self.unset {
            if attributes.shift_remove(key).is_none() {
                return Err(Error::NotFound { what: Noun::Attribute, name: key.clone() }.into());
            }
        }
        if let Some(text) = &self.set {
            attributes.extend(parse_object(text)?);
        }
        session.set_attributes(&self.path, attributes)?;
        let message = format!("change the attributes of {}", normalise_path(&self.path)?);
        commit(&session, &self.commit, message, context).await?;
        Ok(())
    }
}

fn parse_object(text: &str) -> Result<Map<String, Value>> {
    match non_finite::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => {
            Err(Error::invalid(format!("--set needs a JSON object, found {other}")).into())
        }
        Err(error) => Err(Error::invalid(format!("--set is no JSON: {error}")).into()),
    }
}
