//! What is known of segments, for a viewer to list, search and sort: labels, numbers, tags.
//!
//! Specification: neuroglancer, `segment_properties.md`: a directory beside the scales with a file `info`, in which everything
//! is inline. The member `segment_properties` of the volume names the directory. A browser reads all of it at once, so the
//! writer has a bound and says how many segments it left out.

use std::collections::BTreeMap;

use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::json::{Members, Wrong, found};

/// What `@type` says.
const TYPE: &str = "neuroglancer_segment_properties";

/// The member that says how many segments were left out. Others ignore it.
const LEFT_OUT: &str = "chunkyard_left_out";

/// Segments and what is known of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SegmentProperties {
    /// The segments, in the order in which they are listed.
    pub ids: Vec<u64>,
    /// Properties, each with a value per segment.
    pub properties: Vec<Property>,
    /// Segments that are not listed, because there are too many.
    pub left_out: u64,
}

/// One property of all segments.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub id: String,
    /// What it means, for people.
    pub description: Option<String>,
    /// A value per segment.
    pub values: PropertyValues,
}

/// A value per segment.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValues {
    /// What a segment is called. There can be one property of this sort.
    Label(Vec<String>),
    /// What is said of a segment. There can be one property of this sort.
    Description(Vec<String>),
    /// Any text.
    Text(Vec<String>),
    /// Words that apply to a segment: for each, ascending positions in the list of all words.
    Tags {
        /// All words.
        tags: Vec<String>,
        /// Those that apply.
        values: Vec<Vec<u32>>,
    },
    /// Numbers that fit the type of this name: `uint8` to `int32` or `float32`. There are none of 64 bits.
    Number {
        /// The type.
        data_type: String,
        /// The numbers.
        values: Vec<f64>,
    },
}

/// The types that numbers can have.
const NUMBERS: [&str; 7] = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"];

impl Property {
    /// Sizes or other counts, which have 64 bits, as the floats next to them: the format has no wider integers.
    pub fn counts(id: impl Into<String>, counts: impl IntoIterator<Item = u64>) -> Self {
        let values = counts.into_iter().map(|count| f64::from(count as f32)).collect();
        let values = PropertyValues::Number { data_type: "float32".to_owned(), values };
        Self { id: id.into(), description: None, values }
    }

    /// A column of words as tags: each distinct word is one, and empty words are none.
    pub fn tags<'a>(id: impl Into<String>, words: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = words.into_iter().collect();
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for word in words.iter().filter(|word| !word.is_empty()) {
            numbers.insert(word, 0);
        }
        numbers.values_mut().zip(0..).for_each(|(number, at)| *number = at);
        let tags = numbers.keys().map(|word| (*word).to_owned()).collect();
        let values = words.iter().map(|word| numbers.get(word).copied().into_iter().collect());
        let values = PropertyValues::Tags { tags, values: values.collect() };
        Self { id: id.into(), description: None, values }
    }
}

impl PropertyValues {
    fn len(&self) -> usize {
        match self {
            Self::Label(values) | Self::Description(values) | Self::Text(values) => values.len(),
            Self::Tags { values, .. } => values.len(),
            Self::Number { values, .. } => values.len(),
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            Self::Label(values) | Self::Description(values) | Self::Text(values) => {
                values.truncate(len);
            }
            Self::Tags { values, .. } => values.truncate(len),
            Self::Number { values, .. } => values.truncate(len),
        }
    }
}

impl SegmentProperties {
    /// Lists the first `most` segments only, and counts the others.
    #[must_use]
    pub fn capped(mut self, most: usize) -> Self {
        let beyond = self.ids.len().saturating_sub(most);
        self.left_out = self.left_out.saturating_add(beyond as u64);
        self.ids.truncate(most);
        self.properties.iter_mut().for_each(|property| property.values.truncate(most));
        self
    }

    /// Reads the file `info` of such a directory, whose path is for messages.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        Self::of(bytes).map_err(|Wrong { what, expected, found }| Error::Corrupt {
            file: path.to_owned(),
            what,
            expected,
            found,
        })
    }

    fn of(bytes: &[u8]) -> Result<Self, Wrong> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| Wrong {
            what: "info".to_owned(),
            expected: "JSON".to_owned(),
            found: error.to_string(),
        })?;
        let mut members = Members::of("", &document)?;
        members.word("@type", &[(TYPE, ())])?;
        let inline = members.need("inline", "an object")?;
        let left_out = members.take(LEFT_OUT).and_then(|count| count.as_u64()).unwrap_or(0);
        let mut inline = Members::of("inline", &inline)?;
        let ids = inline.need("ids", "a list of numbers as texts")?;
        let ids: Option<Vec<u64>> =
            ids.as_array().and_then(|ids| ids.iter().map(|id| id.as_str()?.parse().ok()).collect());
        let expected = "a list of numbers as texts";
        let ids = ids.ok_or_else(|| inline.wrong("ids", expected, "another".to_owned()))?;
        let listed = inline.take("properties").unwrap_or_else(|| json!([]));
        let listed = listed
            .as_array()
            .ok_or_else(|| inline.wrong("properties", "a list", found(&listed)))?;
        let properties = listed.iter().enumerate();
        let properties = properties
            .map(|(at, value)| property(&format!("properties[{at}]"), value, ids.len()))
            .collect::<Result<_, _>>()?;
        Ok(Self { ids, properties, left_out })
    }

    /// The file `info`. Fails where a property has not one value per segment, or numbers that its type does not have.
    pub fn render(&self) -> Result<Vec<u8>> {
        let mut properties = Vec::with_capacity(self.properties.len());
        for property in &self.properties {
            properties.push(rendered(property, self.ids.len())?);
        }
        let ids: Vec<String> = self.ids.iter().map(u64::to_string).collect();
        let mut document = json!({"@type": TYPE, "inline": {"ids": ids, "properties": properties}});
        if self.left_out > 0 {
            document[LEFT_OUT] = self.left_out.into();
        }
        Ok(document.to_string().into_bytes())
    }
}

fn rendered(property: &Property, count: usize) -> Result<Value> {
    let refuse = |why: String| Err(Error::invalid(format!("property {}: {why}", property.id)));
    if property.values.len() != count {
        return refuse(format!("{} values for {count} segments", property.values.len()));
    }
    let mut members = Map::new();
    members.insert("id".to_owned(), property.id.clone().into());
    if let Some(description) = &property.description {
        members.insert("description".to_owned(), description.clone().into());
    }
    let (kind, values) = match &property.values {
        PropertyValues::Label(values) => ("label", json!(values)),
        PropertyValues::Description(values) => ("description", json!(values)),
        PropertyValues::Text(values) => ("string", json!(values)),
        PropertyValues::Tags { tags, values } => {
            let ascend = |own: &Vec<u32>| {
                own.is_sorted_by(|a, b| a < b) && own.iter().all(|at| (*at as usize) < tags.len())
            };
            if !values.iter().all(ascend) {
                return refuse("tags that are not ascending positions in the list".to_owned());
            }
            members.insert("tags".to_owned(), json!(tags));
            ("tags", json!(values))
        }
        PropertyValues::Number { data_type, values } => {
            if !NUMBERS.contains(&data_type.as_str()) {
                return refuse(format!("numbers of {data_type}; there are {}", NUMBERS.join(", ")));
            }
            let fits = |value: &f64| match data_type.as_str() {
                "float32" => value.is_finite(),
                integer => in_range(integer, *value),
            };
            if let Some(other) = values.iter().find(|value| !fits(value)) {
                return refuse(format!("{other} is no {data_type}"));
            }
            members.insert("data_type".to_owned(), data_type.clone().into());
            let whole = |value: &f64| match value.fract() == 0.0 && value.abs() < 9e15 {
                true => json!(*value as i64),
                false => json!(value),
            };
            ("number", values.iter().map(whole).collect())
        }
    };
    members.insert("type".to_owned(), kind.into());
    members.insert("values".to_owned(), values);
    Ok(Value::Object(members))
}

fn in_range(integer: &str, value: f64) -> bool {
    let (least, most) = match integer {
        "uint8" => (0.0, f64::from(u8::MAX)),
        "int8" => (f64::from(i8::MIN), f64::from(i8::MAX)),
        "uint16" => (0.0, f64::from(u16::MAX)),
        "int16" => (f64::from(i16::MIN), f64::from(i16::MAX)),
        "uint32" => (0.0, f64::from(u32::MAX)),
        _ => (f64::from(i32::MIN), f64::from(i32::MAX)),
    };
    value.fract() == 0.0 && (least..=most).contains(&value)
}

fn property(at: &str, value: &Value, count: usize) -> Result<Property, Wrong> {
    let mut members = Members::of(at, value)?;
    let id = members.text("id")?;
    let kind = members.text("type")?;
    let description = members.take("description").and_then(|text| text.as_str().map(str::to_owned));
    let list = members.need("values", "a list with a value per segment")?;
    let of_count = list.as_array().filter(|values| values.len() == count);
    let list = of_count.ok_or_else(|| {
        members.wrong("values", &format!("a list of {count} values"), found(&list))
    })?;
    let other = |members: &Members, expected: &str| {
        members.wrong("values", expected, "other values".to_owned())
    };
    let texts = |members: &Members| {
        let texts = list.iter().map(|value| value.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>().ok_or_else(|| other(members, "texts"))
    };
    let values = match kind.as_str() {
        "label" => PropertyValues::Label(texts(&members)?),
        "description" => PropertyValues::Description(texts(&members)?),
        "string" => PropertyValues::Text(texts(&members)?),
        "tags" => {
            let tags = members.need("tags", "a list of words")?;
            let words = tags.as_array().and_then(|tags| {
                tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            });
            let tags =
                words.ok_or_else(|| members.wrong("tags", "a list of words", found(&tags)))?;
            let position = |value: &Value| {
                u32::try_from(value.as_u64()?).ok().filter(|at| (*at as usize) < tags.len())
            };
            let own = |value: &Value| value.as_array()?.iter().map(position).collect();
            let values: Option<Vec<Vec<u32>>> = list.iter().map(own).collect();
            let values = values.ok_or_else(|| other(&members, "lists of positions in tags"))?;
            PropertyValues::Tags { tags, values }
        }
        "number" => {
            let data_type = members.text("data_type")?;
            let values: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
            let values = values.ok_or_else(|| other(&members, "numbers"))?;
            PropertyValues::Number { data_type, values }
        }
        _ => {
            let expected = "label, description, string, tags or number";
            return Err(members.wrong("type", expected, kind));
        }
    };
    Ok(Property { id, description, values })
}
