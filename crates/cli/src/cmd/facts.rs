//! Facts about an array of any format: shared by `info` and `ls`.

use std::collections::BTreeSet;

use anyhow::Result;
use chunkyard_array::{ArraySpec, Attributes, Region, Sharding};
use chunkyard_engine::Error;
use chunkyard_engine::format::{ArrayNode, Axis, Source, Space, Survey};
use chunkyard_engine::repo::Node;
use chunkyard_engine::store::ChunkRef;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::output::{Output, columns};
use crate::printable::line;
use crate::units::{count, shape, size};

/// An array, and how much of it is stored.
pub(super) struct Facts {
    pub(super) path: String,
    spec: ArraySpec,
    sharding: Option<Sharding>,
    stored: Stored,
    /// How its blocks are packed, for formats with blocks.
    packings: BTreeSet<String>,
    pub(super) logical_bytes: u64,
}

/// Stored chunks of an array, and their bytes, as far as known.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    chunks: Option<u64>,
    bytes: Option<u64>,
    /// Chunks, or objects of many chunks, that are unknown because an index is damaged.
    unreadable: u64,
}

impl Facts {
    /// For an array in a repository, whose inventory knows the number of chunks.
    pub(super) fn of_repo(node: &Node) -> Result<Self> {
        let spec = (**node.array()?).clone();
        let item_size = spec.dtype().ok().and_then(|dtype| dtype.item_size()).unwrap_or(0);
        let elements = Region::whole(spec.shape()).num_elements();
        Ok(Self {
            path: node.path.clone(),
            logical_bytes: elements.saturating_mul(item_size as u64),
            spec,
            sharding: None,
            stored: Stored { chunks: Some(node.refs_count), ..Stored::default() },
            packings: BTreeSet::new(),
        })
    }

    /// For an array in any source: lists its chunks and counts them. If the store cannot list,
    /// nothing is known.
    pub(super) async fn of_any(source: &dyn Source, path: &str, node: &ArrayNode) -> Result<Self> {
        let everything = Region::whole(node.spec.shape());
        let mut found = source.chunks(path, &everything);
        let (mut chunks, mut bytes, mut unreadable) = (0, 0, 0);
        let mut packings = BTreeSet::new();
        let stored = loop {
            match found.next().await {
                Some(Ok((_, reference))) => {
                    chunks += 1;
                    if let ChunkRef::Slice { block, .. } = &reference {
                        let packing = block.codec.as_deref().unwrap_or("none");
                        if !packings.contains(packing) {
                            packings.insert(packing.to_owned());
                        }
                    }
                    bytes += reference.stored_len().unwrap_or(0);
                }
                // The rest is described in spite of damage.
                Some(Err(Error::Corrupt { .. })) => unreadable += 1,
                Some(Err(Error::Unsupported { .. })) => break Stored::default(),
                Some(Err(error)) => return Err(error.into()),
                None => break Stored { chunks: Some(chunks), bytes: Some(bytes), unreadable },
            }
        };
        Ok(Self { packings, ..Self::of_node(path, node, stored) })
    }

    /// For an array in any source, without its stored chunks.
    pub(super) fn in_short(path: &str, node: &ArrayNode) -> Self {
        Self::of_node(path, node, Stored::default())
    }

    fn of_node(path: &str, node: &ArrayNode, stored: Stored) -> Self {
        Self {
            path: path.to_owned(),
            spec: node.spec.clone(),
            sharding: node.sharding.clone(),
            stored,
            packings: BTreeSet::new(),
            logical_bytes: node.logical_bytes(),
        }
    }

    /// Whether the stored chunks are known.
    pub(super) fn is_counted(&self) -> bool {
        self.stored.bytes.is_some()
    }

    /// As JSON, with where its elements lie.
    pub(super) fn document_in(&self, survey: &Survey) -> Result<Value> {
        let mut document = self.document()?;
        if let (Some(members), Value::Object(space)) =
            (document.as_object_mut(), json!(survey.space(&self.path)))
        {
            members.extend(space);
        }
        Ok(document)
    }

    /// As JSON: the Zarr metadata in short.
    pub(super) fn document(&self) -> Result<Value> {
        let metadata = self.spec.metadata();
        let mut document = json!({
            "path": self.path,
            "type": "array",
            "shape": self.spec.shape(),
            "chunk-shape": self.spec.chunk_shape(),
            "data-type": metadata.data_type,
            "codecs": metadata.codecs,
            "fill-value": metadata.fill_value,
            "dimension-names": self.spec.dimension_names(),
        });
        if let Some(members) = document.as_object_mut() {
            if let Some(sharding) = &self.sharding {
                members.insert("shard-shape".into(), json!(sharding.shard_shape));
            }
            if !self.packings.is_empty() {
                members.insert("block-codecs".into(), json!(self.packings));
            }
            if let Some(chunks) = self.stored.chunks {
                members.insert("refs".into(), json!(chunks));
            }
            if let Some(bytes) = self.stored.bytes {
                members.insert("stored-bytes".into(), json!(bytes));
            }
            if self.stored.unreadable > 0 {
                members.insert("unreadable".into(), json!(self.stored.unreadable));
            }
        }
        Ok(document)
    }

    /// As one row of a long listing.
    pub(super) fn row(&self) -> Vec<String> {
        let chunks = self.spec.chunk_shape().map_or_else(|| "irregular".into(), shape);
        let chunks = match &self.sharding {
            Some(sharding) => format!("chunks {chunks} in shards {}", shape(&sharding.shard_shape)),
            None => format!("chunks {chunks}"),
        };
        let stored = match (self.stored.chunks, self.stored.bytes) {
            (Some(chunks), Some(bytes)) => {
                format!("{} stored, {}", count(chunks, "chunk"), size(bytes))
            }
            (Some(chunks), None) => format!("{} stored", count(chunks, "chunk")),
            _ => "stored: unknown".to_owned(),
        };
        let codecs: Vec<_> =
            self.spec.metadata().codecs.iter().map(|codec| codec.name().to_owned()).collect();
        vec![
            self.path.clone(),
            self.spec.data_type_name(),
            shape(self.spec.shape()),
            chunks,
            stored,
            codecs.join("+") + &self.in_blocks(),
        ]
    }

    /// How the blocks are packed, for the end of the list of codecs.
    fn in_blocks(&self) -> String {
        let packings: Vec<&str> = self.packings.iter().map(String::as_str).collect();
        match packings.is_empty() {
            true => String::new(),
            false => format!(", blocks {}", packings.join(" and ")),
        }
    }

    /// As a paragraph.
    pub(super) fn text(
        &self,
        attributes: &Attributes,
        survey: &Survey,
        output: Output,
    ) -> Result<String> {
        let metadata = self.spec.metadata();
        let mut rows = Vec::new();
        let mut row = |key: &str, value: String| rows.push((format!("  {key}"), value));
        let mut extents = shape(self.spec.shape());
        let space = survey.space(&self.path).cloned().unwrap_or_default();
        if space.axes.iter().any(|axis| axis.name.is_some()) {
            let names: Vec<_> = space.axes.iter().map(name).collect();
            extents.push_str(&format!("  ({})", names.join(", ")));
        }
        row("shape", extents);
        space_rows(&space).into_iter().for_each(|(key, value)| row(key, value));
        row("data type", metadata.data_type.to_string());
        match (self.spec.chunk_shape(), self.spec.grid()) {
            (Some(chunks), Ok(grid)) => {
                let all = grid.num_chunks();
                let stored = match self.stored.chunks {
                    Some(chunks) => format!("{chunks} of {all} stored"),
                    None => format!("{all} in all, stored: unknown"),
                };
                let unreadable = match self.stored.unreadable {
                    0 => String::new(),
                    n => output.red(&format!(", {n} unreadable")),
                };
                row("chunks", format!("{}, {stored}{unreadable}", shape(chunks)));
            }
            _ => row("chunks", metadata.chunk_grid.to_string()),
        }
        if let Some(sharding) = &self.sharding {
            row("shards", shape(&sharding.shard_shape));
        }
        let codecs: Vec<_> = metadata.codecs.iter().map(ToString::to_string).collect();
        row("codecs", codecs.join(", ") + &self.in_blocks());
        row("fill value", serde_json::to_string(&metadata.fill_value)?);
        let mut values = size(self.logical_bytes);
        if let Some(bytes) = self.stored.bytes.filter(|&bytes| bytes > 0) {
            let ratio = self.logical_bytes as f64 / bytes.max(1) as f64;
            values.push_str(&format!(", stored as {} (ratio {ratio:.1})", size(bytes)));
        }
        row("values", values);
        for (key, value) in attributes {
            row(&format!("@{key}"), value.to_string());
        }
        Ok(format!("{}\n{}", output.bold(&line(&self.path)), fitted(rows, output)))
    }
}

fn name(axis: &Axis) -> &str {
    axis.name.as_deref().unwrap_or("?")
}

/// Resolution, place and origin of an array, as far as they are stated.
fn space_rows(space: &Space) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if space.axes.iter().any(|axis| axis.unit.is_some() || axis.scale.is_some()) {
        let axis = |axis: &Axis| {
            let scale = axis.scale.map(|scale| format!(" {scale}")).unwrap_or_default();
            let unit = axis.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
            format!("{}{scale}{unit}", name(axis))
        };
        rows.push(("axes", listed(space.axes.iter().map(axis))));
    }
    if let Some(origin) = &space.origin {
        rows.push(("origin", listed(origin)));
    }
    if let Some(translation) = &space.translation {
        rows.push(("translation", listed(translation)));
    }
    rows
}

fn listed(values: impl IntoIterator<Item = impl ToString>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// The pyramids of a dataset and what was left out, as members of a document.
pub(super) fn survey_members(survey: &Survey) -> [(String, Value); 2] {
    let left_out = survey.findings.iter();
    let left_out = left_out.map(|finding| json!({"path": finding.file, "what": finding.what}));
    [
        ("multiscales".to_owned(), json!(survey.multiscales)),
        ("left-out".to_owned(), left_out.collect()),
    ]
}

/// The same as rows of a table.
pub(super) fn survey_rows(survey: &Survey) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for pyramid in &survey.multiscales {
        let paths = listed(pyramid.levels.iter().map(|level| &level.path));
        let version = pyramid.version.as_deref().unwrap_or("of no version");
        rows.push(("pyramid".to_owned(), format!("{paths} (OME-Zarr {version})")));
    }
    for finding in &survey.findings {
        rows.push(("left out".to_owned(), format!("{}: {}", finding.file, finding.what)));
    }
    rows
}

/// Rows of a key and a value; the value may be too long for a line.
pub(super) fn fitted(rows: Vec<(String, String)>, output: Output) -> String {
    let column = rows.iter().map(|(key, _)| key.chars().count() + 2).max().unwrap_or(0);
    let rows = rows.into_iter().map(|(key, value)| vec![key, output.fit(&value, column)]);
    columns(&rows.collect::<Vec<_>>())
}

/// Whether a path is a node or lies below it.
pub(super) fn is_below(path: &str, root: &str) -> bool {
    root == "/"
        || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
