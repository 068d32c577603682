//! Changing: one interface for all formats whose arrays can change.
//!
//! ```text
//!  Format::edit ─▶ Editor ─┬─ create_group, create_array, resize, set_attributes, remove
//!                          ├─ writer ─▶ Writer    regions of an array
//!                          └─ commit, discard     one step, where the format has one
//! ```

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_store::{Error, Noun, Result};

use super::dataset::{ArrayNode, Node};
use super::read::Reader;
use super::source::OpenOptions;
use super::version::Version;
use super::write::Writer;
use super::{Format, normalise_path};

/// A sort of change, which a format allows or not: see [`Format::edits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// New arrays and groups.
    Create,
    /// Other elements.
    Write,
    /// Another shape.
    Resize,
    /// Other attributes.
    Attributes,
    /// Removing arrays and groups.
    Remove,
}

impl Edit {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Create, Self::Write, Self::Resize, Self::Attributes, Self::Remove];

    /// The error for this change of `what` where the format does not allow it. It names the changes
    /// that the format allows.
    pub fn refused<F: Format + ?Sized>(self, what: &str, format: &F) -> Error {
        let name = format.name();
        let can = match format.edits() {
            [] => format!("{name} is only read; convert it to a format that can change"),
            some => {
                let some: Vec<String> = some.iter().map(ToString::to_string).collect();
                format!("{name} can change by {}", some.join(", "))
            }
        };
        Error::unsupported(format!("{self} {what}: {can}"))
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "creating",
            Self::Write => "writing",
            Self::Resize => "resizing",
            Self::Attributes => "setting attributes of",
            Self::Remove => "removing",
        })
    }
}

/// How something is opened to be changed.
#[derive(Debug, Clone, Default)]
pub struct EditOptions {
    /// How to reach it. Only the newest state can change, so a version is refused.
    pub open: OpenOptions,
    /// The branch to commit to, for formats that keep commits.
    pub branch: Option<String>,
    /// If the branch moved meanwhile, put the commit on top, unless the changes collide.
    pub rebase: bool,
    /// Create an empty dataset if there is none.
    pub create: bool,
    /// How new chunks are packed, for formats that [pack the chunks of all arrays
    /// alike](Format::packs_arrays_alike).
    pub packing: Option<String>,
}

impl EditOptions {
    /// Refuses a version.
    pub fn refuse_version(&self) -> Result<()> {
        match &self.open.version {
            None => Ok(()),
            Some(version) => {
                Err(Error::invalid(format!("{version} stays as it is; only the newest can change")))
            }
        }
    }

    /// Refuses a version, and a branch, for formats without commits.
    pub(crate) fn refuse_versions(&self, format: &str) -> Result<()> {
        self.refuse_version()?;
        match &self.branch {
            None => Ok(()),
            Some(branch) => {
                Err(Error::invalid(format!("{format} has no branches, so there is no {branch}")))
            }
        }
    }
}

/// What [`Editor::commit`] made visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// The version that has the changes, for formats that keep versions; none if nothing changed.
    pub version: Option<Version>,
    /// Warnings about the commit, which stands.
    pub cautions: Vec<String>,
}

/// A dataset that is being changed.
///
/// The editor sees its own changes at once. Where the format has a step that makes changes visible,
/// other readers see none of them before [`Editor::commit`]; a format that changes in place shows and
/// keeps each as it comes. A method that the format has no means for fails with [`Error::Unsupported`].
#[async_trait]
pub trait Editor: fmt::Debug + Send + Sync {
    /// The node at a path, attributes included; `None` if there is none.
    async fn node(&self, path: &str) -> Result<Option<Node>>;

    /// Reads an array.
    async fn reader(&self, path: &str) -> Result<Reader>;

    /// Writes an array. After a commit, a discard or a resize, ask for a new one.
    async fn writer(&self, path: &str) -> Result<Writer>;

    /// Creates an array, and the groups above it that are missing.
    async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()>;

    /// Creates a group, and the groups above it that are missing.
    async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()>;

    /// Changes the shape of an array. New elements hold the fill value.
    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()>;

    /// Replaces all attributes of a node. They may contain numbers that are not finite, see
    /// [`non_finite`](chunkyard_array::non_finite).
    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()>;

    /// Removes an array, or a group and everything below it.
    async fn remove(&self, path: &str) -> Result<()>;

    /// Makes all changes durable and visible. The message is for formats that keep one with each
    /// commit; others do not need it. Does nothing if nothing changed.
    async fn commit(&self, message: Option<&str>) -> Result<Committed>;

    /// Drops the changes that are not committed.
    async fn discard(&self) -> Result<()>;

    /// Warnings for the caller: something is there that the editor leaves alone.
    fn cautions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The array at a path.
    async fn array(&self, path: &str) -> Result<Arc<ArrayNode>> {
        let path = normalise_path(path)?;
        match self.node(&path).await? {
            Some(Node::Array(array)) => Ok(array),
            Some(Node::Group(_)) => {
                Err(Error::NotFound { what: Noun::Array, name: format!("{path} (it is a group)") })
            }
            None => Err(Error::NotFound { what: Noun::Array, name: path }),
        }
    }

    /// The attributes of a node, in the form in which [`Editor::set_attributes`] takes them.
    async fn attributes(&self, path: &str) -> Result<Attributes> {
        let path = normalise_path(path)?;
        match self.node(&path).await? {
            Some(Node::Array(array)) => Ok(array.spec.plain_attributes()),
            Some(Node::Group(group)) => Ok(group.plain_attributes()),
            None => Err(Error::NotFound { what: Noun::Node, name: path }),
        }
    }
}
