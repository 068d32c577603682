//! Metadata of a group.

use serde_json::{Map, Value, json};
use zarrs::group::GroupMetadataV3;

use super::{Attributes, document};
use crate::{Error, Result};

/// The attributes, and what makes a document that of a group.
const KNOWN: [&str; 3] = ["zarr_format", "node_type", "attributes"];

/// The metadata of a group: its attributes, and what else the document holds.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    attributes: Attributes,
    document: Map<String, Value>,
}

/// Specs are equal when they render to the same bytes.
impl PartialEq for GroupSpec {
    fn eq(&self, other: &Self) -> bool {
        self.render() == other.render()
    }
}

impl GroupSpec {
    /// A group with attributes and nothing else.
    pub fn new(attributes: Attributes) -> Self {
        let mut members = Map::new();
        members.insert("zarr_format".into(), json!(3));
        members.insert("node_type".into(), json!("group"));
        document::set(&mut members, "attributes", Value::Object(attributes.clone()));
        Self { attributes, document: members }
    }

    /// Reads the content of a `zarr.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let document = document::parse("group metadata", json)?;
        let typed: GroupMetadataV3 = serde_json::from_value(Value::Object(document.clone()))
            .map_err(|cause| Error::invalid("group metadata is not Zarr v3").because(cause))?;
        Ok(Self { attributes: typed.attributes, document: document::ordered(document) })
    }

    /// The content of a `zarr.json`. Equal specs give equal bytes.
    pub fn render(&self) -> Vec<u8> {
        document::render(&self.document)
    }

    /// The user attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The members of its document that are neither the attributes nor what makes it a group.
    pub fn members(&self) -> Attributes {
        let others = self.document.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str()));
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same group with one more member in its document. What makes it a group, and its
    /// attributes, stay what they are.
    #[must_use]
    pub fn with_member(&self, key: &str, value: Value) -> Self {
        let mut members = self.document.clone();
        if !KNOWN.contains(&key) {
            document::set(&mut members, key, value);
        }
        Self { attributes: self.attributes.clone(), document: document::ordered(members) }
    }

    /// The same group without a member of its document.
    #[must_use]
    pub fn without_member(&self, key: &str) -> Self {
        let mut members = self.document.clone();
        members.shift_remove(key);
        Self { attributes: self.attributes.clone(), document: members }
    }

    /// The same group with other attributes.
    #[must_use]
    pub fn with_attributes(&self, attributes: Attributes) -> Self {
        let mut members = self.document.clone();
        document::set(&mut members, "attributes", Value::Object(attributes.clone()));
        Self { attributes, document: document::ordered(members) }
    }
}
