//! Metadata of a group.

use serde_json::{Map, Value, json};
use zarrs::group::GroupMetadataV3;

use super::{Attributes, document, non_finite};
use crate::{Error, Result};

/// The attributes, and the members that make it a group's document.
const KNOWN: [&str; 3] = ["zarr_format", "node_type", "attributes"];

/// The metadata of a group: its attributes and everything else in the document.
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
        document::set(&mut members, "attributes", Value::Object(attributes));
        Self::of(members)
    }

    fn of(document: Map<String, Value>) -> Self {
        let document = non_finite::listed(document);
        let attributes = document::attributes(&document).unwrap_or_default();
        Self { attributes, document: document::ordered(document) }
    }

    /// Reads the content of a `zarr.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let document = document::parse("group metadata", json)?;
        let _: GroupMetadataV3 = serde_json::from_value(document::typed(&document))
            .map_err(|cause| Error::invalid("group metadata is not Zarr v3").because(cause))?;
        document::attributes(&document)?;
        Ok(Self::of(document))
    }

    /// The content of a `zarr.json`, which is JSON. Equal specs give equal bytes.
    pub fn render(&self) -> Vec<u8> {
        document::render(&self.document)
    }

    /// The content of a `zarr.json` as zarr-python writes it: with the bare words for numbers that
    /// are not finite, see [`non_finite`].
    pub fn render_plain(&self) -> Vec<u8> {
        document::render_plain(&self.document)
    }

    /// The user attributes. Numbers that are not finite are strings here.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The user attributes as they were given, see [`non_finite`].
    pub fn plain_attributes(&self) -> Attributes {
        non_finite::unseal(&self.attributes, &self.document)
    }

    /// The members of its document except the attributes and the ones that make it a group.
    pub fn members(&self) -> Attributes {
        let others = self.document.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str()));
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same group with one more member in its document. Its attributes, and the members that
    /// make it a group, stay unchanged.
    #[must_use]
    pub fn with_member(&self, key: &str, value: Value) -> Self {
        let mut members = self.document.clone();
        if !KNOWN.contains(&key) {
            document::set(&mut members, key, value);
        }
        Self::of(members)
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
        document::set(&mut members, "attributes", Value::Object(attributes));
        Self::of(members)
    }

    /// The same group with the caller's attributes in place of its own. The old list of numbers
    /// that are not finite goes too.
    #[must_use]
    pub fn replace_attributes(&self, attributes: Attributes) -> Self {
        self.without_member(non_finite::MEMBER).with_attributes(attributes)
    }
}
