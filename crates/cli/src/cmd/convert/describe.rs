//! What a conversion will do, and what it has done, as text and as JSON.

use std::time::Duration;

use chunkyard_engine::format::{ArrayNode, Finding, Format};
use chunkyard_engine::pipeline::{ArrayPlan, Outcome, Plan};
use serde_json::{Value, json};

use crate::output::{Output, columns};
use crate::units::{count, lasting, shape, short, size};

/// The two places as the user typed them, and their formats.
pub(super) struct Sides<'a> {
    pub(super) source: (&'a str, &'a dyn Format),
    pub(super) target: (&'a str, &'a dyn Format),
}

/// A complete conversion.
pub(super) struct Done<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) left_out: &'a [Finding],
    pub(super) time: Duration,
    pub(super) verified: bool,
}

/// The plan, and its outcome, as JSON.
pub(super) fn document(sides: &Sides<'_>, plan: &Plan, done: Option<&Done<'_>>) -> Value {
    let side = |(url, format): (&str, &dyn Format)| json!({"url": url, "format": format.name()});
    let arrays: Vec<Value> = plan.arrays.iter().map(array_document).collect();
    let mut document = json!({
        "source": side(sides.source),
        "target": side(sides.target),
        "dry-run": done.is_none(),
        "arrays": arrays,
        "packs": plan.packs(),
        "bytes": plan.bytes(),
    });
    if let (Some(done), Some(members)) = (done, document.as_object_mut()) {
        let outcome = done.outcome;
        let outcome = json!({
            "packs": outcome.packs,
            "resumed": outcome.resumed,
            "chunks": outcome.chunks,
            "bytes": outcome.bytes,
            "bytes-stored": outcome.bytes_stored,
            "snapshot": outcome.published.snapshot,
            "damaged": outcome.damaged,
            "left-out": done.left_out,
            "verified": done.verified,
            "seconds": done.time.as_secs_f64(),
        });
        members.insert("outcome".into(), outcome);
    }
    document
}

fn array_document(array: &ArrayPlan) -> Value {
    let side = |path: &str, node: &ArrayNode| {
        json!({
            "path": path,
            "shape": node.spec.shape(),
            "data-type": node.spec.metadata().data_type,
            "chunk-shape": node.spec.chunk_shape(),
            "shard-shape": node.sharding.as_ref().map(|sharding| &sharding.shard_shape),
            "codecs": node.spec.metadata().codecs,
        })
    };
    json!({
        "source": side(&array.source, &array.from),
        "target": side(&array.target, &array.to),
        "movement": array.movement.to_string(),
        "why": array.why,
        "packs": array.packs.num_chunks(),
        "pack-shape": array.packs.chunk_shape(),
        "bytes": array.bytes,
        "stores-every-chunk": array.every,
    })
}

/// The plan as text.
pub(super) fn plan(sides: &Sides<'_>, plan: &Plan, output: Output) -> String {
    let side = |name: &str, (url, format): (&str, &dyn Format)| {
        vec![name.to_owned(), format!("{}  ({})", output.bold(url), format.name())]
    };
    let total = format!(
        "{}, {}, {}",
        count(plan.arrays.len() as u64, "array"),
        count(plan.packs(), "pack"),
        size(plan.bytes())
    );
    let mut text = columns(&[
        side("source", sides.source),
        side("target", sides.target),
        vec!["work".into(), total],
    ]);
    for array in &plan.arrays {
        text.push('\n');
        text.push_str(&array_text(array, output));
    }
    text
}

fn array_text(array: &ArrayPlan, output: Output) -> String {
    let (from, to) = (&*array.from, &*array.to);
    let change = |what: &dyn Fn(&ArrayNode) -> String| {
        let (before, after) = (what(from), what(to));
        if before == after { before } else { format!("{before} → {after}") }
    };
    let shard = |node: &ArrayNode| {
        node.sharding.as_ref().map_or("none".into(), |sharding| shape(&sharding.shard_shape))
    };
    let movement = format!("{}: {}", output.green(&array.movement.to_string()), array.why);
    let packs = format!(
        "{} of up to {}, {}",
        count(array.packs.num_chunks(), "pack"),
        shape(array.packs.chunk_shape()),
        size(array.bytes)
    );
    let mut rows = Vec::new();
    let mut row = |key: &str, value: String| rows.push(vec![format!("  {key}"), value]);
    row("movement", movement);
    row("shape", change(&|node| shape(node.spec.shape())));
    row("data type", change(&|node| node.spec.data_type_name()));
    row("chunks", change(&|node| node.spec.chunk_shape().map_or("irregular".into(), shape)));
    if from.sharding.is_some() || to.sharding.is_some() {
        row("shards", change(&shard));
    }
    row("codecs", change(&codecs));
    row("work", packs);
    if array.every {
        row("stores", "every chunk, also those that hold the fill value only".into());
    }
    let name = match *array.source == *array.target {
        true => output.bold(&array.target),
        false => format!("{} → {}", array.source, output.bold(&array.target)),
    };
    format!("{name}\n{}", columns(&rows))
}

fn codecs(node: &ArrayNode) -> String {
    let codecs = &node.spec.metadata().codecs;
    codecs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// One line about what was done.
pub(super) fn summary(sides: &Sides<'_>, plan: &Plan, done: &Done<'_>) -> String {
    let outcome = done.outcome;
    let ratio = outcome.bytes as f64 / outcome.bytes_stored.max(1) as f64;
    let rate = outcome.bytes as f64 / done.time.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{}: {}, {} stored as {} (ratio {ratio:.1}) in {}, {}/s",
        sides.target.0,
        count(plan.arrays.len() as u64, "array"),
        size(outcome.bytes),
        size(outcome.bytes_stored),
        lasting(done.time),
        size(rate as u64)
    );
    if outcome.resumed > 0 {
        let packs = count(outcome.packs, "pack");
        text.push_str(&format!("; {} of {packs} were done before", outcome.resumed));
    }
    if done.verified {
        text.push_str("; read back and equal");
    }
    if let Some(snapshot) = &outcome.published.snapshot {
        text.push_str(&format!("; snapshot {}", short(snapshot)));
    }
    text
}
