//! `chunkyard af attrs`: the attributes of an array or a group.

use anyhow::Result;
use chunkyard_engine::format::container::mapping::attribute_json;
use chunkyard_engine::format::container::{AttributeType, ContainerEditor};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Map, Value, json};

use super::LayerArgs;
use crate::args::attribute_value;
use crate::context::Context;
use crate::units::parse_pair;

/// Print or change attributes
///
/// Without options prints them as JSON. Other attributes keep their value and type. A new value is
/// Int64, Float64, String or Bool, unless --type says otherwise; null, lists and objects are kept as
/// text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af attrs buoys.af north/temperature
  chunkyard af attrs buoys.af north/temperature --set units=K --set offset=273.15 --remove note
  chunkyard af attrs buoys.af north/temperature --set valid_min=-5 --type Int8
  chunkyard af attrs buoys.af north/temperature --types")]
pub(crate) struct Attrs {
    /// The container
    file: String,

    /// The array or group; / is the root
    name: String,

    /// An attribute to set, its value as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair, conflicts_with = "at")]
    set: Vec<(String, String)>,

    /// The type of the new values: Bool, Int8 … UInt64, Float32, Float64, String; KEY=TYPE for one of
    /// several
    #[arg(long = "type", value_name = "[KEY=]TYPE", requires = "set", value_parser = parse_type)]
    kind: Vec<(Option<String>, AttributeType)>,

    /// An attribute to remove; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "at")]
    remove: Vec<String>,

    /// Print each with its type and its stored form
    #[arg(long, conflicts_with_all = ["set", "remove"])]
    types: bool,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        if self.set.is_empty() && self.remove.is_empty() {
            let container = super::readable(&self.file, &self.layer, context).await?;
            let mixed = container.mixed(super::name(&self.name)).await?;
            mixed.iter().for_each(|mixed| context.output.warn(mixed));
            let editor = ContainerEditor::new(container);
            if self.types {
                let stored = editor.typed_attributes(&self.name).await?;
                let typed = stored.iter().map(|(key, value)| {
                    let value = json!({"type": value.type_word(), "value": attribute_json(value)});
                    (key.clone(), value)
                });
                return context.output.document(&typed.collect::<Map<String, Value>>());
            }
            return context.output.document(&editor.attributes(&self.name).await?);
        }
        let editor = super::writable(&self.file, None, context).await?;
        let mut attributes = editor.plain_attributes(&self.name).await?;
        for key in &self.remove {
            if attributes.shift_remove(key).is_none() {
                return Err(Error::NotFound { what: Noun::Attribute, name: key.clone() }.into());
            }
        }
        let mut types = Vec::new();
        for (key, text) in &self.set {
            let kind = self.kind_of(key);
            types.extend(kind.map(|kind| (key.clone(), kind)));
            let value = match kind {
                // Keep the text as typed: 007 has three digits.
                Some(AttributeType::String) => Value::from(text.as_str()),
                _ => attribute_value(text),
            };
            attributes.insert(key.clone(), value);
        }
        self.refuse_stray_types()?;
        editor.set_typed_attributes(&self.name, attributes, &types).await?;
        super::flush(&editor, &format!("changed the attributes of {}", self.name), context).await
    }

    /// The type that was given for a key.
    fn kind_of(&self, key: &str) -> Option<AttributeType> {
        let named = self.kind.iter().rev().find(|(of, _)| of.as_deref() == Some(key));
        let any = || self.kind.iter().rev().find(|(of, _)| of.is_none());
        named.or_else(any).map(|(_, kind)| *kind)
    }

    fn refuse_stray_types(&self) -> Result<()> {
        let stray = self.kind.iter().filter_map(|(of, _)| of.as_deref()).find(|of| {
            let mut set = self.set.iter();
            set.all(|(key, _)| key != of)
        });
        match stray {
            None => Ok(()),
            Some(key) => {
                Err(Error::invalid(format!("--type of {key:?}, which is not set here")).into())
            }
        }
    }
}

fn parse_type(text: &str) -> Result<(Option<String>, AttributeType), String> {
    let (key, name) = match text.rsplit_once('=') {
        Some((key, name)) => (Some(key.to_owned()), name),
        None => (None, text),
    };
    let kind = AttributeType::parse(name).map_err(|error| error.to_string())?;
    Ok((key, kind))
}
