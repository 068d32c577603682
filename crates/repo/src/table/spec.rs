//! What a table is: its columns, and how many of them are the key.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The column that marks deleted rows.
pub(crate) const REMOVED: &str = "_removed";
/// Columns of a table at most.
const COLUMNS_MAX: usize = 1000;

/// A table to be created, or as it was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct TableSpec {
    schema: SchemaRef,
    key: usize,
    attributes: Map<String, Value>,
}

impl TableSpec {
    /// A table with these columns, of which the first `key` are the sort key. Key columns hold
    /// integers of 32 or 64 bits, text or bytes, and no nulls; other columns hold these, floating point
    /// numbers, booleans, and lists of integers.
    pub fn new(schema: SchemaRef, key: usize) -> Result<Self> {
        let fields = schema.fields();
        if key == 0 || key > fields.len() || fields.len() > COLUMNS_MAX {
            return Err(invalid(format!(
                "a table has 1 to {COLUMNS_MAX} columns, of which the first ones are its key; this one has {} \
                 columns and a key of {key}",
                fields.len()
            )));
        }
        for (at, field) in fields.iter().enumerate() {
            let (name, kind) = (field.name(), field.data_type());
            if name.is_empty() || name == REMOVED {
                return Err(invalid(format!("a column cannot be called {name:?}")));
            }
            if fields.iter().take(at).any(|before| before.name() == name) {
                return Err(invalid(format!("two columns are called {name:?}")));
            }
            if at < key && (!is_key_type(kind) || field.is_nullable()) {
                return Err(invalid(format!(
                    "the key column {name:?} is {kind}{}; a key is of uint64, uint32, int64, int32, utf8 or \
                     binary, and not nullable",
                    if field.is_nullable() { ", nullable" } else { "" }
                )));
            }
            if type_name(field).is_none() {
                return Err(Error::Unsupported {
                    what: format!("a table column of type {kind} ({name:?})"),
                });
            }
        }
        // Metadata of the schema is not kept, so it must not make two equal tables differ.
        let plain =
            |field: &Arc<Field>| parse_field(field.name(), &type_name(field)?, field.is_nullable());
        let plain = fields.iter().map(plain).collect::<Option<Vec<Field>>>();
        let schema = Arc::new(Schema::new(plain.unwrap_or_default()));
        Ok(Self { schema, key, attributes: Map::new() })
    }

    /// With user attributes.
    #[must_use]
    pub fn with_attributes(mut self, attributes: Map<String, Value>) -> Self {
        self.attributes = attributes;
        self
    }

    /// All columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many of the first columns are the key.
    pub fn key(&self) -> usize {
        self.key
    }

    /// The columns of the key.
    pub fn key_schema(&self) -> SchemaRef {
        let fields: Vec<_> = self.schema.fields().iter().take(self.key).cloned().collect();
        Arc::new(Schema::new(fields))
    }

    /// User attributes to create the table with.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// As it stands in a structure file.
    pub(crate) fn render(&self) -> Map<String, Value> {
        let columns: Vec<Value> = self
            .schema
            .fields()
            .iter()
            .map(|field| {
                let kind = type_name(field).unwrap_or_default();
                json!({"name": field.name(), "type": kind, "nullable": field.is_nullable()})
            })
            .collect();
        Map::from_iter([("table".to_owned(), json!({"key": self.key, "columns": columns}))])
    }

    /// Parses what [`TableSpec::render`] wrote.
    pub(crate) fn parse(document: &Map<String, Value>) -> Result<Self, String> {
        let table = document.get("table").ok_or("no key \"table\"")?;
        let key = table.get("key").and_then(Value::as_u64).ok_or("no key \"key\"")?;
        let columns = table.get("columns").and_then(Value::as_array).ok_or("no key \"columns\"")?;
        let column = |column: &Value| {
            let name = column.get("name")?.as_str()?;
            let nullable = column.get("nullable")?.as_bool()?;
            parse_field(name, column.get("type")?.as_str()?, nullable)
        };
        let fields = columns
            .iter()
            .map(|value| column(value).ok_or_else(|| format!("a column {value}")))
            .collect::<Result<Vec<_>, _>>()?;
        let key = usize::try_from(key).map_err(|_| format!("a key of {key} columns"))?;
        Self::new(Arc::new(Schema::new(fields)), key).map_err(|error| error.to_string())
    }
}

impl From<TableSpec> for Map<String, Value> {
    fn from(spec: TableSpec) -> Self {
        spec.render()
    }
}

impl TryFrom<Map<String, Value>> for TableSpec {
    type Error = String;

    fn try_from(document: Map<String, Value>) -> Result<Self, String> {
        Self::parse(&document)
    }
}

fn invalid(what: String) -> Error {
    Error::Invalid { what }
}

pub(crate) fn is_key_type(kind: &DataType) -> bool {
    use DataType::{Binary, Int32, Int64, UInt32, UInt64, Utf8};
    matches!(kind, UInt64 | UInt32 | Int64 | Int32 | Utf8 | Binary)
}

const PLAIN: [(&str, DataType); 13] = [
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("bool", DataType::Boolean),
    ("utf8", DataType::Utf8),
    ("binary", DataType::Binary),
];

fn plain_name(kind: &DataType) -> Option<&'static str> {
    PLAIN.iter().find(|(_, known)| known == kind).map(|(name, _)| *name)
}

/// The name of a type in the format: `uint64`, `list<uint64>`; `None` for types that a table has not.
fn type_name(field: &Field) -> Option<String> {
    match field.data_type() {
        DataType::List(item) if item.data_type().is_integer() => {
            Some(format!("list<{}>", plain_name(item.data_type())?))
        }
        plain => plain_name(plain).map(str::to_owned),
    }
}

fn parse_field(name: &str, kind: &str, nullable: bool) -> Option<Field> {
    let plain =
        |name: &str| PLAIN.iter().find(|(known, _)| *known == name).map(|(_, kind)| kind.clone());
    let kind = match kind.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')) {
        None => plain(kind)?,
        Some(item) => {
            let item = plain(item).filter(DataType::is_integer)?;
            // As Arrow's builders call it; the items are never null.
            DataType::List(Arc::new(Field::new("item", item, true)))
        }
    };
    Some(Field::new(name, kind, nullable))
}
