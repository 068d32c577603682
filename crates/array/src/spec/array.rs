//! Metadata of an array.

use serde_json::{Map, Value, json};
use zarrs::array::ArrayMetadataV3;

use super::{ArrayBuilder, Attributes, document, non_finite};
use crate::{DType, Error, Grid, Result};

/// The complete metadata of an array: shape, data type, chunk grid, codecs, fill value and
/// everything else in the document.
#[derive(Clone, Debug)]
pub struct ArraySpec {
    metadata: ArrayMetadataV3,
    attributes: Attributes,
    document: Map<String, Value>,
    chunk_shape: Option<Vec<u64>>,
}

/// Specs are equal when they render to the same bytes. The order of attributes is part of that;
/// see [`ArraySpec::same_encoding`] for the question whether chunks can be copied verbatim.
impl PartialEq for ArraySpec {
    fn eq(&self, other: &Self) -> bool {
        self.render() == other.render()
    }
}

impl ArraySpec {
    /// Reads the content of a `zarr.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        Self::from_document(document::parse("array metadata", json)?)
    }

    /// Wraps metadata made elsewhere.
    pub fn from_metadata(metadata: ArrayMetadataV3) -> Result<Self> {
        let json = serde_json::to_vec(&metadata)
            .map_err(|cause| Error::invalid("array metadata").because(cause))?;
        Self::parse(&json)
    }

    /// Begins the metadata of a new array; `dtype` is a name, or an object for types that have a
    /// configuration.
    ///
    /// ```
    /// # use chunkyard_array::ArraySpec;
    /// let spec = ArraySpec::builder(&[100, 100], &[10, 10], "float32").fill_value("NaN").build()?;
    /// assert_eq!(spec.grid()?.num_chunks(), 100);
    /// # Ok::<(), chunkyard_array::Error>(())
    /// ```
    pub fn builder(shape: &[u64], chunk_shape: &[u64], dtype: impl Into<Value>) -> ArrayBuilder {
        ArrayBuilder::new(shape, chunk_shape, dtype.into())
    }

    pub(super) fn from_document(document: Map<String, Value>) -> Result<Self> {
        let document = non_finite::listed(document);
        let metadata: ArrayMetadataV3 = serde_json::from_value(document::typed(&document))
            .map_err(|cause| Error::invalid("array metadata is not Zarr v3").because(cause))?;
        let attributes = document::attributes(&document)?;
        let rank = metadata.shape.len();
        let chunk_shape = regular_chunk_shape(&metadata)?;
        if let Some(chunk_shape) = &chunk_shape {
            Grid::new(&metadata.shape, chunk_shape)?;
        }
        if let Some(names) = &metadata.dimension_names
            && names.len() != rank
        {
            return Err(Error::invalid(format!(
                "an array of rank {rank} has {} dimension names",
                names.len()
            )));
        }
        if metadata.codecs.is_empty() {
            return Err(Error::invalid("array metadata has no codecs"));
        }
        Ok(Self { metadata, attributes, document: document::ordered(document), chunk_shape })
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

    /// The document behind it, its members in their order.
    pub(super) fn document(&self) -> &Map<String, Value> {
        &self.document
    }

    /// The typed view, without the attributes.
    pub fn metadata(&self) -> &ArrayMetadataV3 {
        &self.metadata
    }

    /// Shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.metadata.shape
    }

    /// Shape of the chunks, where the grid is regular.
    pub fn chunk_shape(&self) -> Option<&[u64]> {
        self.chunk_shape.as_deref()
    }

    /// The chunk grid, where it is regular.
    pub fn grid(&self) -> Result<Grid> {
        match &self.chunk_shape {
            Some(chunk_shape) => Grid::new(self.shape(), chunk_shape),
            None => Err(Error::unsupported(format!("chunk grid {}", self.metadata.chunk_grid))),
        }
    }

    /// The data type.
    pub fn dtype(&self) -> Result<DType> {
        DType::from_metadata(&self.metadata.data_type)
    }

    /// Zarr's name of the data type.
    pub fn data_type_name(&self) -> String {
        self.metadata.data_type.name().to_owned()
    }

    /// The user attributes. Numbers that are not finite are strings here.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The user attributes as they were given, see [`non_finite`].
    pub fn plain_attributes(&self) -> Attributes {
        non_finite::unseal(&self.attributes, &self.document)
    }

    /// The members of its document that Zarr does not know.
    pub fn members(&self) -> Attributes {
        let others = self.document.iter().filter(|(key, _)| !document::is_known(key));
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Names of the dimensions, where there are any; each may be missing.
    pub fn dimension_names(&self) -> Option<&[Option<String>]> {
        self.metadata.dimension_names.as_deref()
    }

    /// Whether a chunk of this array means the same elements in the other one, so that its bytes
    /// can be copied verbatim. The shapes of the arrays may differ.
    pub fn same_encoding(&self, other: &Self) -> bool {
        // Compared as JSON values: the order of members in a configuration does not matter.
        let extensions = ["data_type", "chunk_grid", "codecs"].iter().all(|key| {
            let [ours, theirs] = [self, other].map(|spec| spec.document.get(*key).map(canonical));
            ours == theirs
        });
        // Compared as text: numbers that are equal may still differ in the sign of their zero.
        let fill_value = |spec: &Self| spec.document.get("fill_value").map(Value::to_string);
        extensions && fill_value(self) == fill_value(other)
    }

    /// Refuses members that may be carried along but must not be ignored when chunks are read.
    ///
    /// Zarr v3 §"Metadata": an implementation must fail on a member it does not know, unless that
    /// says `"must_understand": false`.
    pub fn check_understood(&self) -> Result<()> {
        for (key, field) in &self.metadata.additional_fields {
            if field.must_understand() {
                return Err(Error::unsupported(format!("metadata member '{key}'")));
            }
        }
        match self.metadata.storage_transformers.first() {
            Some(transformer) => {
                Err(Error::unsupported(format!("storage transformer {transformer}")))
            }
            None => Ok(()),
        }
    }
}

/// One spelling where Zarr v3 §"Extension definition" allows several: a name alone, an object that
/// holds it, an object with an empty configuration.
fn canonical(extension: &Value) -> Value {
    match extension {
        Value::String(name) => json!({"name": name}),
        Value::Array(chain) => chain.iter().map(canonical).collect(),
        Value::Object(members) => {
            let mut members = members.clone();
            match members.get_mut("configuration").and_then(Value::as_object_mut) {
                Some(configuration) if configuration.is_empty() => {
                    members.shift_remove("configuration");
                }
                Some(configuration) => {
                    // Sharding holds chains of its own.
                    for key in ["codecs", "index_codecs"] {
                        if let Some(chain) = configuration.get_mut(key).filter(|c| c.is_array()) {
                            *chain = canonical(chain);
                        }
                    }
                }
                None => {}
            }
            Value::Object(members)
        }
        other => other.clone(),
    }
}

fn regular_chunk_shape(metadata: &ArrayMetadataV3) -> Result<Option<Vec<u64>>> {
    if metadata.chunk_grid.name() != "regular" {
        return Ok(None);
    }
    let member = metadata.chunk_grid.configuration().and_then(|map| map.get("chunk_shape"));
    let found = member.cloned().unwrap_or_default();
    let chunk_shape = serde_json::from_value(found).map_err(|cause| {
        Error::invalid("a regular chunk grid needs a chunk_shape of integers").because(cause)
    })?;
    Ok(Some(chunk_shape))
}
