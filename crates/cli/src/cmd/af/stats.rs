//! `chunkyard af stats`: smallest and largest elements, and how many are null.

use anyhow::Result;
use chunkyard_engine::format::container::model::{ArrayStats, StatValue};
use clap::Args;
use serde_json::{Value, json};

use super::LayerArgs;
use crate::context::Context;
use crate::output::columns;

/// Print statistics of arrays: min, max, and how many elements are null
///
/// They are kept with the layers; no element is read. An element is null if it was never written, or
/// equals the fill value.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard af stats buoys.af north/temperature")]
pub(crate) struct Stats {
    /// The container
    file: String,

    /// The array; all of them if not given
    name: Option<String>,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Stats {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let container = super::readable(&self.file, self.layer.at, context).await?;
        let names = match &self.name {
            Some(typed) => vec![super::name(typed).to_owned()],
            // A slash at the end means a group.
            None => {
                let names = container.names().await?;
                names.into_iter().filter(|name| !name.ends_with('/')).collect()
            }
        };
        let mut all = Vec::new();
        for name in names {
            let stats = container.statistics(&name).await?;
            all.push((name, stats));
        }
        let documents: Vec<Value> =
            all.iter().map(|(name, stats)| document(name, stats.as_ref())).collect();
        context.output.result(&documents, || {
            let head = ["array", "elements", "null", "min", "max"].map(str::to_owned).to_vec();
            let rows = all.iter().map(|(name, stats)| row(name, stats.as_ref()));
            columns(&[head].into_iter().chain(rows).collect::<Vec<_>>())
        })
    }
}

fn row(name: &str, stats: Option<&ArrayStats>) -> Vec<String> {
    let Some(stats) = stats else { return vec![name.to_owned(), "unknown".to_owned()] };
    let text = |value: &Option<StatValue>| match json_of(value.as_ref()) {
        Value::Null => "-".to_owned(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    vec![
        name.to_owned(),
        stats.row_count.to_string(),
        stats.null_count.to_string(),
        text(&stats.min),
        text(&stats.max),
    ]
}

fn document(name: &str, stats: Option<&ArrayStats>) -> Value {
    let Some(stats) = stats else { return json!({"name": name, "known": false}) };
    json!({
        "name": name,
        "known": true,
        "elements": stats.row_count,
        "null": stats.null_count,
        "min": json_of(stats.min.as_ref()),
        "max": json_of(stats.max.as_ref()),
    })
}

/// A value as JSON. Bytes, and numbers that JSON lacks, are text.
fn json_of(value: Option<&StatValue>) -> Value {
    match value {
        None => Value::Null,
        Some(StatValue::Int(value) | StatValue::TimestampNs(value)) => json!(value),
        Some(StatValue::UInt(value)) => json!(value),
        Some(StatValue::Float(value)) if value.is_finite() => json!(value),
        Some(StatValue::Float(value)) => json!(value.to_string()),
        Some(StatValue::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
    }
}
