//! `chunkyard ls`: the arrays and groups at a place.

use anyhow::Result;
use chunkyard_engine::format::{Node, Source, Versions};
use chunkyard_engine::repo::normalise_path;
use chunkyard_engine::store::Limits;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Value, json};

use super::facts::{Facts, is_below};
use crate::args::VersionArgs;
use crate::context::Context;
use crate::output::columns;
use crate::printable::line;

/// List arrays and groups
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard ls sea.zarr
  chunkyard ls weather -l /ocean --tag v1")]
pub(crate) struct Ls {
    /// The place
    url: String,

    /// List this group or array and all below it
    path: Option<String>,

    /// Also print data type, shape, chunks, codecs, and how much is stored
    #[arg(long, short)]
    long: bool,

    #[command(flatten)]
    version: VersionArgs,
}

/// A line of the listing.
enum Entry {
    /// The path of a group.
    Group(String),
    /// The path of a table.
    Table(String),
    Array(Box<Facts>),
}

impl Ls {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, format, mut options) = context.recognise(&self.url, Limits::default()).await?;
        let root = normalise_path(self.path.as_deref().unwrap_or("/"))?;
        let entries = if format.versions() == Versions::Commits {
            self.in_repo(&root, context).await?
        } else {
            options.version = self.version.of_any(format, &self.url, context).await?;
            let source = context.open_source(&place, format, &options).await?;
            // To count chunks may list all of them.
            let count = self.long || context.output.is_json();
            in_any(&*source, &root, count).await?
        };
        let documents = entries.iter().map(Entry::document).collect::<Result<Vec<_>>>()?;
        context.output.result(&documents, || match self.long {
            true => columns(&entries.iter().map(Entry::row).collect::<Vec<_>>()),
            false => entries.iter().map(|entry| format!("{}\n", line(&entry.name()))).collect(),
        })
    }

    async fn in_repo(&self, root: &str, context: &Context) -> Result<Vec<Entry>> {
        let repo = context.open(&self.url).await?;
        let session = repo.readonly_session(&self.version.version(&repo).await?).await?;
        let tree = session.tree();
        tree.require(root)?;
        let nodes = tree.subtree(root).filter(|node| node.path != "/");
        nodes
            .map(|node| match node.is_array() {
                true => Ok(Entry::Array(Facts::of_repo(node)?.into())),
                false if node.is_table() => Ok(Entry::Table(node.path.clone())),
                false => Ok(Entry::Group(node.path.clone())),
            })
            .collect()
    }
}

async fn in_any(source: &dyn Source, root: &str, count: bool) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let nodes = &source.dataset().nodes;
    if !nodes.contains_key(root) {
        return Err(Error::NotFound { what: Noun::Node, name: root.to_owned() }.into());
    }
    for (path, node) in nodes.iter().filter(|(path, _)| is_below(path, root)) {
        match node {
            Node::Group(_) if path == "/" => {}
            Node::Group(_) => entries.push(Entry::Group(path.clone())),
            Node::Array(array) if count => {
                entries.push(Entry::Array(Facts::of_any(source, path, array).await?.into()));
            }
            Node::Array(array) => entries.push(Entry::Array(Facts::in_short(path, array).into())),
        }
    }
    Ok(entries)
}

impl Entry {
    /// A group has a slash at its end.
    fn name(&self) -> String {
        match self {
            Self::Group(path) => format!("{path}/"),
            Self::Table(path) => path.clone(),
            Self::Array(facts) => facts.path.clone(),
        }
    }

    fn row(&self) -> Vec<String> {
        match self {
            Self::Group(_) => vec![self.name(), "group".into()],
            Self::Table(_) => vec![self.name(), "table".into()],
            Self::Array(facts) => facts.row(),
        }
    }

    fn document(&self) -> Result<Value> {
        match self {
            Self::Group(path) => Ok(json!({"path": path, "type": "group"})),
            Self::Table(path) => Ok(json!({"path": path, "type": "table"})),
            Self::Array(facts) => facts.document(),
        }
    }
}
