//! The progress of an export: shards, blocks, bytes, rate and the time left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chunkyard_engine::export::{Progress, Reached};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units::{count, size};

const TEMPLATE: &str = "{msg} {wide_bar:.cyan/dim} {prefix} {eta} left";

/// A bar that follows an export until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    bar: ProgressBar,
    follower: tokio::task::JoinHandle<()>,
}

impl Watch {
    pub(crate) fn new(progress: Arc<Progress>, visible: bool) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message("exporting");
        let (shown, began) = (bar.clone(), Instant::now());
        let follower = tokio::spawn(async move {
            loop {
                let reached = progress.reached();
                shown.set_length(reached.weight_total);
                shown.set_position(reached.weight);
                shown.set_prefix(line(&reached, began.elapsed()));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Self { bar, follower }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.abort();
        self.bar.finish_and_clear();
    }
}

fn line(reached: &Reached, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(0.001);
    format!(
        "{}/{} {} {} {:.0}/s",
        reached.shards,
        count(reached.shards_total, "shard"),
        count(reached.blocks, "block"),
        size(reached.bytes),
        reached.blocks as f64 / seconds
    )
}
