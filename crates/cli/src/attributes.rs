//! Attributes as they are typed: what to set, to remove, and of which type.

use anyhow::Result;
use chunkyard_array::{Attributes, non_finite};
use chunkyard_engine::format::container::AttributeType;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::change::Changing;
use crate::units::parse_pair;

/// How attributes change.
#[derive(Debug, Args)]
pub(crate) struct AttributeArgs {
    /// An attribute to set, its value as JSON or plain text, or an object of JSON with several; may be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    set: Vec<Setting>,

    /// An attribute to remove; may be repeated
    #[arg(long, visible_alias = "remove", value_name = "KEY")]
    unset: Vec<String>,

    /// In a container, the type of the new values: Bool, Int8 … UInt64, Float32, Float64, String;
    /// KEY=TYPE for one of several
    #[arg(long = "type", value_name = "[KEY=]TYPE", requires = "set", value_parser = parse_type)]
    kind: Vec<(Option<String>, AttributeType)>,
}

/// What one `--set` says.
#[derive(Debug, Clone)]
enum Setting {
    /// The value as it was typed: its type may want the text.
    Pair(String, String),
    Object(Map<String, Value>),
}

impl AttributeArgs {
    /// Whether anything changes.
    pub(crate) fn any(&self) -> bool {
        !self.set.is_empty() || !self.unset.is_empty()
    }

    /// Changes the attributes of a node; other attributes keep their value, and where the format has
    /// types, their type.
    pub(crate) async fn change(&self, changing: &Changing<'_>, path: &str) -> Result<Value> {
        let types = self.types()?;
        let editor = &changing.editor;
        let set = match &changing.container {
            Some(container) => {
                let (attributes, set) = self.applied(container.plain_attributes(path).await?)?;
                container.set_typed_attributes(path, attributes, &types).await?;
                set
            }
            None if !types.is_empty() => return Err(changing.not_a_container("--type").into()),
            None => {
                let (attributes, set) = self.applied(editor.attributes(path).await?)?;
                editor.set_attributes(path, attributes).await?;
                set
            }
        };
        Ok(json!({"path": path, "set": set, "unset": self.unset.len()}))
    }

    /// The attributes with the wished changes, and how many were set.
    fn applied(&self, mut attributes: Attributes) -> Result<(Attributes, usize)> {
        for key in &self.unset {
            attributes.shift_remove(key).ok_or_else(|| missing(key))?;
        }
        let mut set = 0;
        for setting in &self.set {
            match setting {
                Setting::Pair(key, text) => {
                    attributes.insert(key.clone(), self.value(key, text));
                    set += 1;
                }
                Setting::Object(object) => {
                    attributes.extend(object.clone());
                    set += object.len();
                }
            }
        }
        Ok((attributes, set))
    }

    fn value(&self, key: &str, text: &str) -> Value {
        match self.kind_of(key) {
            // Keep the text as typed: 007 has three digits.
            Some(AttributeType::String) => Value::from(text),
            _ => value_of(text),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &String> {
        self.set.iter().flat_map(|setting| match setting {
            Setting::Pair(key, _) => vec![key],
            Setting::Object(object) => object.keys().collect(),
        })
    }

    /// The types that were given, by key. Refuses a type of what is not set.
    fn types(&self) -> Result<Vec<(String, AttributeType)>> {
        let mut named = self.kind.iter().filter_map(|(of, _)| of.as_deref());
        if let Some(stray) = named.find(|of| self.keys().all(|key| key != of)) {
            let what = format!("--type of {stray:?}, which is not set here");
            return Err(Error::invalid(what).into());
        }
        Ok(self.keys().filter_map(|key| Some((key.clone(), self.kind_of(key)?))).collect())
    }

    /// The type that was given for a key.
    fn kind_of(&self, key: &str) -> Option<AttributeType> {
        let named = self.kind.iter().rev().find(|(of, _)| of.as_deref() == Some(key));
        let any = || self.kind.iter().rev().find(|(of, _)| of.is_none());
        named.or_else(any).map(|(_, kind)| *kind)
    }
}

/// A value as the user types it: JSON, NaN or an infinity as Python writes them, or else plain text.
pub(crate) fn value_of(text: &str) -> Value {
    non_finite::parse(text.as_bytes()).unwrap_or_else(|_| Value::from(text))
}

/// The error for an attribute that is not there.
pub(crate) fn missing(key: &str) -> Error {
    Error::NotFound { what: Noun::Attribute, name: key.to_owned() }
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    match (text.starts_with('{'), non_finite::parse(text.as_bytes())) {
        (true, Ok(Value::Object(object))) => return Ok(Setting::Object(object)),
        // Quotes before the first = begin an object that is not finished, not a key.
        (true, Err(error)) if text.split('=').next().is_some_and(|key| key.contains('"')) => {
            return Err(format!("no JSON: {error}"));
        }
        _ => {}
    }
    let (key, value) = parse_pair(text).map_err(|what| format!("{what} or an object of JSON"))?;
    Ok(Setting::Pair(key, value))
}

fn parse_type(text: &str) -> Result<(Option<String>, AttributeType), String> {
    let (key, name) = match text.rsplit_once('=') {
        Some((key, name)) => (Some(key.to_owned()), name),
        None => (None, text),
    };
    let kind = AttributeType::parse(name).map_err(|error| error.to_string())?;
    Ok((key, kind))
}
