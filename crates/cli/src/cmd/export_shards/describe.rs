//! What an export wrote, and what a check found, for people and as JSON.

use std::time::Duration;

use chunkyard_engine::export::{Checked, Report, Spread};
use serde_json::{Value, json};

use crate::units::{count, lasting, shape, size};

/// Lines of a list that are printed.
const LISTED: usize = 20;

pub(super) fn document(target: &str, report: &Report) -> Value {
    let mut document = json!({"target": target});
    if let (Some(members), Ok(Value::Object(report))) =
        (document.as_object_mut(), serde_json::to_value(report))
    {
        members.extend(report);
    }
    document
}

pub(super) fn summary(target: &str, report: &Report, time: Duration) -> String {
    let total = &report.total;
    let mut text = format!(
        "{target}: {}, {}, {} in {}",
        count(total.shards, "shard"),
        count(total.blocks, "block"),
        size(total.bytes),
        lasting(time)
    );
    if report.resumed > 0 {
        text.push_str(&format!("; {} finished before", count(report.resumed, "shard")));
    }
    for scale in &report.scales {
        let totals = &scale.totals;
        text.push_str(&format!(
            "\n  s{}: {} voxels, {}, {}, {}",
            scale.scale,
            shape(&scale.volume),
            count(totals.shards, "shard"),
            count(totals.blocks, "block"),
            size(totals.bytes)
        ));
        if let Some(ratio) = totals.ratio {
            text.push_str(&format!(", blocks {ratio:.2} : 1"));
        }
        if totals.blocks > 0 {
            text.push_str(&format!("\n      labels of a block: {}", spread(&scale.sizes.labels)));
            text.push_str(&format!("\n      bytes of a block: {}", spread(&scale.sizes.plain)));
        }
        if totals.empty > 0 {
            let what = count(totals.empty, "block");
            text.push_str(&format!("\n      left out: {what} of nothing but label 0"));
        }
        if totals.outside > 0 {
            let what = count(totals.outside, "block");
            text.push_str(&format!("\n      left out: {what} outside of the volume"));
        }
    }
    text
}

fn spread(spread: &Spread) -> String {
    format!("{} to {}, {:.0} on average", spread.min, spread.max, spread.mean())
}

pub(super) fn checked(target: &str, checked: &Checked) -> String {
    let mut text = format!(
        "{target}: {} expected, {} present, {} with nothing but label 0, {} missing",
        count(checked.expected, "shard"),
        checked.present,
        checked.empty,
        checked.missing.len()
    );
    for name in checked.missing.iter().take(LISTED) {
        text.push_str(&format!("\n  missing: shard {} of scale {}", name.shard, name.scale));
    }
    for found in checked.damaged.iter().take(LISTED) {
        text.push_str(&format!("\n  damaged: {}: {}", found.path, found.what));
    }
    for path in checked.unexpected.iter().take(LISTED) {
        text.push_str(&format!("\n  belongs to no shard: {path}"));
    }
    text
}
