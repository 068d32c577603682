//! Metadata made from other metadata: one member replaced, all others as they were.

use serde_json::{Map, Value, json};

use super::{ArraySpec, Attributes, document, non_finite};
use crate::{DType, Error, Result, codec, fill_element};

impl ArraySpec {
    /// The same array with other attributes.
    pub fn with_attributes(&self, attributes: Attributes) -> Result<Self> {
        self.with_member("attributes", Value::Object(attributes))
    }

    /// The same array with the caller's attributes in place of its own. The old list of numbers
    /// that are not finite goes too.
    pub fn replace_attributes(&self, attributes: Attributes) -> Result<Self> {
        self.without_members(&[non_finite::MEMBER])?.with_attributes(attributes)
    }

    /// The same array, resized. The rank must stay.
    pub fn with_shape(&self, shape: &[u64]) -> Result<Self> {
        if shape.len() != self.shape().len() {
            return Err(Error::invalid(format!(
                "an array of shape {:?} cannot be resized to {shape:?}, which has another rank",
                self.shape()
            )));
        }
        self.with_member("shape", json!(shape))
    }

    /// The same array, cut into chunks of another shape. An irregular grid becomes regular.
    ///
    /// The codecs stay; [`Codecs::new`](crate::Codecs::new) says whether they accept such chunks.
    pub fn with_chunk_shape(&self, chunk_shape: &[u64]) -> Result<Self> {
        let regular = || json!({"name": "regular", "configuration": {}});
        let mut grid = match self.chunk_shape() {
            Some(_) => self.document().get("chunk_grid").cloned().unwrap_or_else(regular),
            None => regular(),
        };
        grid["configuration"]["chunk_shape"] = json!(chunk_shape);
        self.with_member("chunk_grid", grid)
    }

    /// The same array with other codecs, as they stand in the metadata; see
    /// [`codec::parse_shorthand`] for a short way.
    pub fn with_codecs(&self, codecs: Vec<Value>) -> Result<Self> {
        self.with_member("codecs", Value::Array(codecs))
    }

    /// The same array of another data type, with a fill value of that type.
    ///
    /// Codecs that are configured by the size of an item follow: `bytes` has a byte order where the
    /// type has one, `blosc` and `numcodecs.shuffle` shuffle by the new size. Codecs inside shards
    /// do not follow; take the shards off first with [`ArraySpec::unsharded`].
    pub fn with_dtype(&self, dtype: Value, fill_value: Value) -> Result<Self> {
        let parsed = DType::parse(&dtype)?;
        let codecs = self.codecs_json().into_iter().map(|codec| adapted(codec, &parsed));
        let codecs = codecs.collect::<Result<Vec<_>>>()?;
        let mut members = self.document().clone();
        members.insert("data_type".into(), dtype);
        members.insert("fill_value".into(), fill_value);
        members.insert("codecs".into(), Value::Array(codecs));
        let spec = Self::from_document(members)?;
        fill_element(&parsed, &spec.metadata().fill_value)?;
        Ok(spec)
    }

    /// The same array with other chunk keys, as they stand in the metadata.
    pub fn with_chunk_key_encoding(&self, encoding: Value) -> Result<Self> {
        self.with_member("chunk_key_encoding", encoding)
    }

    /// The same array with names for its dimensions, or without any.
    pub fn with_dimension_names(&self, names: Option<&[Option<String>]>) -> Result<Self> {
        match names {
            Some(names) => self.with_member("dimension_names", json!(names)),
            None => self.without_members(&["dimension_names"]),
        }
    }

    /// The same array without some members of its document. Members that Zarr requires cannot go.
    pub fn without_members(&self, keys: &[&str]) -> Result<Self> {
        let mut members = self.document().clone();
        members.retain(|key, _| !keys.contains(&key.as_str()));
        Self::from_document(members)
    }

    /// The same array with more members in its document. Members that Zarr knows stay unchanged.
    pub fn with_members(&self, others: Attributes) -> Result<Self> {
        let mut members = self.document().clone();
        members.extend(others.into_iter().filter(|(key, _)| !document::is_known(key)));
        Self::from_document(members)
    }

    /// The codecs, as they stand in the metadata.
    pub fn codecs_json(&self) -> Vec<Value> {
        self.document().get("codecs").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// A member of its document.
    pub fn member(&self, key: &str) -> Option<&Value> {
        self.document().get(key)
    }

    /// The same array with a member of its document set.
    pub fn with_member(&self, key: &str, value: Value) -> Result<Self> {
        let mut members = self.document().clone();
        document::set(&mut members, key, value);
        Self::from_document(members)
    }
}

/// A codec as it must be configured for items of type `dtype`.
fn adapted(mut codec: Value, dtype: &DType) -> Result<Value> {
    let item_size = dtype.item_size();
    let name = codec.as_str().or_else(|| codec.get("name")?.as_str()).unwrap_or_default();
    let size_key = match name {
        "bytes" => {
            let endian = codec.pointer("/configuration/endian").is_some();
            let stays = endian && item_size.is_some_and(|size| size > 1);
            return if stays { Ok(codec) } else { codec::elements_to_bytes(dtype) };
        }
        "blosc" => "typesize",
        "numcodecs.shuffle" => "elementsize",
        _ => return Ok(codec),
    };
    let configuration = codec.get_mut("configuration").and_then(Value::as_object_mut);
    if let Some(member) = configuration.and_then(|map: &mut Map<_, _>| map.get_mut(size_key)) {
        *member = json!(item_size.unwrap_or(1));
    }
    Ok(codec)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{ArraySpec, Codecs, codec};

    fn spec(dtype: &str, compression: &str) -> ArraySpec {
        let builder = ArraySpec::builder(&[4, 6], &[2, 3], dtype).dimension_names(["y", "x"]);
        let spec = builder.build().unwrap();
        let codecs = codec::parse_shorthand(compression, &spec.dtype().unwrap()).unwrap();
        spec.with_codecs(codecs).unwrap()
    }

    #[test]
    fn one_member_changes_and_no_other() {
        let before = spec("uint16", "zstd:3");
        let changes = [
            ("shape", before.with_shape(&[9, 9])),
            ("chunk_grid", before.with_chunk_shape(&[4, 6])),
            ("codecs", before.with_codecs(vec![json!("bytes")])),
            ("chunk_key_encoding", before.with_chunk_key_encoding(json!("v2"))),
            ("dimension_names", before.with_dimension_names(Some(&[None, Some("x".into())]))),
            ("dimension_names", before.with_dimension_names(None)),
            ("dimension_names", before.without_members(&["dimension_names", "absent"])),
        ];
        let document = |spec: &ArraySpec| serde_json::from_slice::<Value>(&spec.render()).unwrap();
        for (key, after) in changes {
            let (old, mut new) = (document(&before), document(&after.unwrap()));
            assert_ne!(old[key], new[key], "{key}");
            new[key] = old[key].clone();
            assert_eq!(old, new, "{key}");
        }
        assert_eq!(before.codecs_json(), document(&before)["codecs"].as_array().unwrap()[..]);
    }

    #[test]
    fn members_that_zarr_knows_are_not_replaced_by_others() {
        let before = spec("uint16", "zstd:3");
        assert!(before.members().is_empty());
        let others = json!({"units": {"must_understand": false}, "shape": [1], "attributes": 5});
        let after = before.with_members(others.as_object().unwrap().clone()).unwrap();
        assert_eq!(Value::Object(after.members()), json!({"units": others["units"]}));
        assert_eq!(after.without_members(&["units"]).unwrap(), before);
    }

    #[test]
    fn contradictions_are_refused() {
        let spec = spec("uint16", "zstd:3");
        assert!(spec.with_chunk_shape(&[2]).is_err());
        assert!(spec.with_chunk_shape(&[2, 0]).is_err());
        assert!(spec.with_codecs(vec![]).is_err());
        assert!(spec.with_codecs(vec![json!(1)]).is_err());
        assert!(spec.with_dtype(json!("uint8"), json!(256)).is_err());
        assert!(spec.with_dtype(json!("nonsense"), json!(0)).is_err());
        assert!(spec.with_chunk_key_encoding(json!(1)).is_err());
        assert!(spec.with_dimension_names(Some(&[None])).is_err());
        assert!(spec.without_members(&["codecs"]).is_err());
    }

    #[test]
    fn a_grid_that_is_not_regular_can_be_made_so() {
        let mut document: Value = serde_json::from_slice(&spec("uint8", "none").render()).unwrap();
        document["chunk_grid"] = json!({"name": "rectangular", "configuration": {"a": 1}});
        let uneven = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
        let regular = uneven.with_chunk_shape(&[2, 2]).unwrap();
        assert_eq!(regular.grid().unwrap().num_chunks(), 6);
    }

    #[test]
    fn codecs_follow_the_size_of_an_item() {
        let bytes = |order: &str| json!({"name": "bytes", "configuration": {"endian": order}});
        let dtypes = ["uint8", "bool", "int16", "float32", "complex128", "string"];
        for compression in ["none", "blosc:lz4:5:shuffle", "blosc:zstd:1:noshuffle", "zstd+crc32c"]
        {
            for before in &dtypes[..5] {
                let before = spec(before, compression);
                for after in dtypes {
                    let fill = match after {
                        "string" => json!("x"),
                        "bool" => json!(true),
                        "complex128" => json!([1.0, 0.0]),
                        _ => json!(1),
                    };
                    let found = before.with_dtype(json!(after), fill).unwrap();
                    let same = spec(after, compression);
                    assert!(Codecs::new(&found).is_ok(), "{after} {compression}");
                    // The shuffle is a choice of the user, and stays.
                    assert_eq!(found.codecs_json()[0], same.codecs_json()[0]);
                    if compression.ends_with(":shuffle") && after != "string" {
                        assert_eq!(found.codecs_json(), same.codecs_json(), "{after}");
                    }
                }
            }
        }
        let shuffle = json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}});
        let wide = spec("int16", "none").with_codecs(vec![bytes("big"), shuffle]).unwrap();
        let wide = wide.with_dtype(json!("int64"), json!(0)).unwrap().codecs_json();
        assert_eq!(wide[0], bytes("big"));
        assert_eq!(wide[1]["configuration"]["elementsize"], 8);
        let narrow = spec("int16", "none").with_codecs(vec![bytes("big")]).unwrap();
        let narrow = narrow.with_dtype(json!("int8"), json!(0)).unwrap();
        assert_eq!(narrow.codecs_json(), [json!({"name": "bytes"})]);
    }
}
