//! The document of a node, as it is stored.

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_store::{Error, Noun, Result};
use serde_json::{Map, Value, json};

use crate::zarr3::hierarchy::{self, CONSOLIDATED};
use crate::{ArrayNode, Node};

/// Metadata of a node of version 3. Of an array: with its shards as a codec. Of a group: with
/// consolidated metadata.
#[derive(Debug, Clone)]
pub(super) enum Document {
    Array(Box<ArraySpec>),
    Group(GroupSpec),
}

impl Document {
    pub(super) fn of(node: &Node) -> Result<Self> {
        Ok(match node {
            Node::Array(array) => Self::Array(array.packed_spec()?.into()),
            Node::Group(group) => Self::Group(group.clone()),
        })
    }

    /// Reads the content of an object called `name`.
    pub(super) fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        match hierarchy::is_array(name, bytes)? {
            true => Ok(Self::Array(ArraySpec::parse(bytes)?.into())),
            false => Ok(Self::Group(GroupSpec::parse(bytes)?)),
        }
    }

    pub(super) fn render(&self) -> Bytes {
        match self {
            Self::Array(spec) => spec.render_plain().into(),
            Self::Group(spec) => spec.render_plain().into(),
        }
    }

    /// The node, as readers see it.
    pub(super) fn node(&self) -> Result<Node> {
        Ok(match self {
            Self::Array(spec) => Node::Array(ArrayNode::new(spec)?.into()),
            Self::Group(spec) => Node::Group(spec.without_member(CONSOLIDATED)),
        })
    }

    /// The metadata of an array; fails if the node is a group.
    pub(super) fn array(&self, path: &str) -> Result<&ArraySpec> {
        match self {
            Self::Array(spec) => Ok(spec),
            Self::Group(_) => {
                Err(Error::NotFound { what: Noun::Array, name: format!("{path} (it is a group)") })
            }
        }
    }

    pub(super) fn replace_attributes(&self, attributes: Attributes) -> Result<Self> {
        Ok(match self {
            Self::Array(spec) => Self::Array(spec.replace_attributes(attributes)?.into()),
            Self::Group(spec) => Self::Group(spec.replace_attributes(attributes)),
        })
    }

    /// The nodes below that a group repeats, if any: their documents by relative path.
    pub(super) fn consolidated(&self) -> Option<Map<String, Value>> {
        let Self::Group(spec) = self else { return None };
        let members = spec.members();
        members.get(CONSOLIDATED)?.get("metadata")?.as_object().cloned()
    }

    /// The same group, repeating these nodes.
    pub(super) fn with_consolidated(&self, below: Map<String, Value>) -> Self {
        let Self::Group(spec) = self else { return self.clone() };
        let member = json!({"kind": "inline", "must_understand": false, "metadata": below});
        Self::Group(spec.with_member(CONSOLIDATED, member))
    }

    /// How a group above repeats it.
    pub(super) fn repeated(&self) -> Value {
        let bytes = match self {
            Self::Array(spec) => spec.render(),
            Self::Group(spec) => spec.without_member(CONSOLIDATED).render(),
        };
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
