//! Metadata documents: what nodes look like as `zarr.json`.

use bytes::Bytes;
use chunkyard_array::{ArraySpec, GroupSpec, non_finite};
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::Keys;
use crate::node::{Node, NodeKind};

/// A member of group documents that is not kept: it repeats other documents, and a change of one of
/// them would make it wrong.
const CONSOLIDATED: &str = "consolidated_metadata";

/// A document that was written.
#[derive(Debug)]
pub(super) enum Document {
    Group(GroupSpec),
    Array(Box<ArraySpec>),
}

/// Why something is no document of a node.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is no document at all. A caller that writes keys one by one may yet replace it.
    None(String),
    /// It is a document that describes no possible node.
    Wrong(String),
}

impl Refusal {
    fn none(why: impl Into<String>) -> Self {
        Self::None(why.into())
    }
}

impl Document {
    /// Parses a document that a caller wrote.
    pub(super) fn parse(bytes: &[u8]) -> std::result::Result<Self, Refusal> {
        let parsed = non_finite::parse(bytes).map_err(|error| Refusal::none(error.to_string()))?;
        let Value::Object(document) = parsed else {
            return Err(Refusal::none("expected a JSON object"));
        };
        let member =
            |key: &str| document.get(key).ok_or_else(|| Refusal::none(format!("it has no {key}")));
        let (format, kind) = (member("zarr_format")?, member("node_type")?);
        if *format != json!(3) {
            return Err(Refusal::none(format!("zarr_format {format}")));
        }
        match kind.as_str().unwrap_or_default() {
            "group" => match GroupSpec::parse(bytes) {
                Ok(spec) => Ok(Self::Group(spec.without_member(CONSOLIDATED))),
                Err(error) => Err(Refusal::Wrong(explain(&error))),
            },
            "array" => match ArraySpec::parse(bytes) {
                Ok(spec) => Ok(Self::Array(spec.into())),
                Err(error) => Err(Refusal::Wrong(explain(&error))),
            },
            other => Err(Refusal::none(format!("node_type {other:?}"))),
        }
    }

    /// The document of a node made from it.
    pub(super) fn render(&self) -> Result<Bytes> {
        match self {
            Self::Group(spec) => group(spec.members(), spec.attributes()),
            Self::Array(spec) => array(&spec.with_attributes(Map::new())?, spec.attributes()),
        }
    }
}

/// An error with its causes, which say which member is wrong.
fn explain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", explain(cause)),
        None => error.to_string(),
    }
}

impl Keys {
    /// The document of a node; `None` if it has none.
    pub(super) async fn document(&self, path: &str) -> Result<Option<Bytes>> {
        if !self.session.is_described(path) {
            return Ok(None);
        }
        let node = match self.session.node(path) {
            Err(Error::NotFound { .. }) => return Ok(None),
            node => node?,
        };
        let attributes = self.session.attributes(path).await?;
        render(&node, &attributes).map(Some)
    }
}

fn render(node: &Node, attributes: &Map<String, Value>) -> Result<Bytes> {
    match &node.kind {
        NodeKind::Group { extra } => group(extra.clone(), attributes),
        NodeKind::Array(_) => array(node.array()?, attributes),
        NodeKind::Table(_) => {
            let what = format!("a Zarr document of the table {}", node.path);
            Err(Error::Unsupported { what })
        }
    }
}

fn group(members: Map<String, Value>, attributes: &Map<String, Value>) -> Result<Bytes> {
    let mut document = Map::new();
    document.insert("zarr_format".into(), json!(3));
    document.insert("node_type".into(), json!("group"));
    document.insert("attributes".into(), Value::Object(attributes.clone()));
    document.extend(members.into_iter().filter(|(key, _)| key != CONSOLIDATED));
    to_bytes(document)
}

fn array(spec: &ArraySpec, attributes: &Map<String, Value>) -> Result<Bytes> {
    let mut document: Map<String, Value> = serde_json::from_slice(&spec.render())
        .map_err(|error| Error::invalid(format!("array metadata: {error}")))?;
    document.insert("attributes".into(), Value::Object(attributes.clone()));
    to_bytes(document)
}

fn to_bytes(document: Map<String, Value>) -> Result<Bytes> {
    let rendered = serde_json::to_string_pretty(&non_finite::plain_document(document));
    rendered.map(Bytes::from).map_err(|error| Error::invalid(format!("metadata: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consolidated_metadata_is_not_kept_and_other_members_are() {
        let written = json!({
            "zarr_format": 3, "node_type": "group", "attributes": {"a": 1},
            "consolidated_metadata": {"metadata": {}}, "mine": {"must_understand": false},
        });
        let document = Document::parse(written.to_string().as_bytes()).unwrap();
        let read: Value = serde_json::from_slice(&document.render().unwrap()).unwrap();
        let expected = json!({
            "zarr_format": 3, "node_type": "group", "attributes": {"a": 1},
            "mine": {"must_understand": false},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_no_document_says_why() {
        for (bytes, why) in [
            (&b""[..], "EOF"),
            (b"[1]", "expected"),
            (br#"{"zarr_format": 3}"#, "node_type"),
            (br#"{"node_type": "group"}"#, "zarr_format"),
            (br#"{"zarr_format": 2, "node_type": "group"}"#, "zarr_format 2"),
            (br#"{"zarr_format": 3, "node_type": "table"}"#, "table"),
            (br#"{"zarr_format": 3, "node_type": "array"}"#, "shape"),
        ] {
            let (Refusal::None(error) | Refusal::Wrong(error)) =
                Document::parse(bytes).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
