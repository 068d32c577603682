//! BLZ among all that can change: the rows of one array or table, or of each dataset of a tree.
//!
//! Added and changed rows wait for a commit, which is one step for each dataset. Rows that are cut off,
//! and attributes, change at once.

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_store::{Error, Noun, Result};

use super::bloscpack::source::is_bloscpack;
use super::convert::tree::{self, Member, joined};
use super::format::BlzFormat;
use super::handle::{Blz, BlzOptions};
use crate::{
    Committed, Edit, EditOptions, Editor, Node, Place, Reader, Writer, is_within, normalise_path,
};

/// Changes the arrays and tables at a place.
#[derive(Debug)]
pub(super) struct BlzEditor {
    members: Vec<Member>,
    /// The groups of a tree.
    groups: Vec<(String, GroupSpec)>,
}

impl BlzEditor {
    pub(super) async fn open(place: &Place, options: &EditOptions) -> Result<Self> {
        options.refuse_versions("BLZ")?;
        if is_bloscpack(place).await? {
            let what = "a single Bloscpack file is only read; convert it to .blz, which can change";
            return Err(Error::unsupported(format!("changing {}: {what}", place.url())));
        }
        let how = BlzOptions { open: options.open.clone(), mutable: true, unchecked: false };
        let store = place.directory();
        if let Some(described) = tree::read(store).await? {
            let members = described.open(store, &how).await?;
            return Ok(Self { members, groups: described.groups() });
        }
        let blz = match Blz::open(place, how).await {
            Err(Error::NotFound { .. }) if options.create => {
                let what = "needs the type of its rows: `chunkyard blz create` and `chunkyard blz append --create` take it";
                return Err(Error::unsupported(format!("creating {}, which {what}", place.url())));
            }
            opened => opened?,
        };
        let member = Member { path: "/".to_owned(), folder: String::new(), blz };
        Ok(Self { members: vec![member], groups: Vec::new() })
    }

    /// The dataset that a path leads into, and the path there.
    fn member(&self, path: &str) -> Result<(&Blz, String)> {
        let found = self.members.iter().find(|member| is_within(path, &member.path));
        let missing = || Error::NotFound { what: Noun::Array, name: path.to_owned() };
        let member = found.ok_or_else(missing)?;
        let inner = match member.path.as_str() {
            "/" => path,
            above => path.strip_prefix(above).unwrap_or_default(),
        };
        let inner = if inner.is_empty() { "/" } else { inner };
        Ok((&member.blz, inner.to_owned()))
    }

    /// The dataset and the column of an array.
    fn column(&self, path: &str) -> Result<(&Blz, String)> {
        let path = normalise_path(path)?;
        let (blz, inner) = self.member(&path)?;
        let columns = blz.columns();
        match columns.iter().any(|column| *column.path == *inner) {
            true => Ok((blz, inner)),
            false => Err(Error::NotFound { what: Noun::Array, name: path }),
        }
    }
}

#[async_trait]
impl Editor for BlzEditor {
    async fn node(&self, path: &str) -> Result<Option<Node>> {
        let path = normalise_path(path)?;
        if let Some((_, group)) = self.groups.iter().find(|(known, _)| *known == path) {
            return Ok(Some(Node::Group(group.clone())));
        }
        for member in &self.members {
            let nodes = member.blz.dataset()?.nodes;
            let mut nodes = nodes.into_iter().map(|(at, node)| (joined(&member.path, &at), node));
            if let Some((_, node)) = nodes.find(|(at, _)| *at == path) {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    async fn reader(&self, path: &str) -> Result<Reader> {
        let (blz, column) = self.column(path)?;
        blz.reader(&column)
    }

    async fn writer(&self, path: &str) -> Result<Writer> {
        let (blz, column) = self.column(path)?;
        blz.writer(&column)
    }

    async fn create_array(&self, path: &str, _spec: &ArraySpec) -> Result<()> {
        Err(Edit::Create.refused(path, &BlzFormat))
    }

    async fn create_group(&self, path: &str, _attributes: Attributes) -> Result<()> {
        Err(Edit::Create.refused(path, &BlzFormat))
    }

    /// Changes the number of rows: of an array, or of a table, at the path of the table.
    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        let path = normalise_path(path)?;
        let (blz, inner) = self.member(&path)?;
        let rows = match (blz.is_table(), inner.as_str(), shape) {
            (true, "/", [rows]) => *rows,
            (true, "/", _) => {
                let what = format!("{path} is a table, whose shape is its number of rows");
                return Err(Error::invalid(what));
            }
            (true, ..) => {
                self.column(&path)?;
                return Err(Error::unsupported(format!(
                    "resizing {path} alone: all columns of a table have the same length; resize the \
                     table"
                )));
            }
            (false, ..) => {
                let (_, column) = self.column(&path)?;
                let has = blz.node(&column)?.spec.shape().to_vec();
                match (has.split_first(), shape.split_first()) {
                    (Some((_, row)), Some((rows, wished))) if row == wished => *rows,
                    _ => {
                        return Err(Error::invalid(format!(
                            "{path} has shape {has:?}, of which only the first extent can change; \
                             {shape:?} was asked for"
                        )));
                    }
                }
            }
        };
        blz.resize(rows).await
    }

    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        let path = normalise_path(path)?;
        if self.node(&path).await?.is_none() {
            return Err(Error::NotFound { what: Noun::Node, name: path });
        }
        match self.member(&path) {
            Ok((blz, inner)) if inner == "/" => blz.set_attributes(attributes).await,
            _ => Err(Error::unsupported(format!(
                "attributes of {path}: a BLZ dataset keeps one set of them, at its root"
            ))),
        }
    }

    async fn remove(&self, path: &str) -> Result<()> {
        Err(Edit::Remove.refused(path, &BlzFormat))
    }

    async fn commit(&self, _message: Option<&str>) -> Result<Committed> {
        for member in &self.members {
            member.blz.flush().await?;
        }
        Ok(Committed::default())
    }

    async fn discard(&self) -> Result<()> {
        for member in &self.members {
            member.blz.discard().await;
        }
        Ok(())
    }

    fn cautions(&self) -> Vec<String> {
        self.members.iter().flat_map(|member| member.blz.cautions()).collect()
    }
}
