//! A bar in bytes, and in packs if there are any, on standard error: hidden without a terminal, with
//! `--quiet` and with `--json`.

use std::sync::Arc;
use std::time::Duration;

use chunkyard_engine::Meter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printable::brief;
use crate::units::count;

const TEMPLATE: &str =
    "{msg:24!} {bar:30.cyan/dim} {binary_bytes:>11} of {binary_total_bytes} {binary_bytes_per_sec}";

/// With packs, in the prefix, and the time left; the bar takes the rest of the line.
const TEMPLATE_PACKS: &str = "{msg} {wide_bar:.cyan/dim} {binary_bytes} of {binary_total_bytes} \
     {prefix} {binary_bytes_per_sec} {eta} left";

/// A progress bar that clears itself when dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(what: &str, bytes: u64, visible: bool) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        set_template(&bar, TEMPLATE);
        bar.set_message(brief(what));
        if visible {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// Adds bytes that are done.
    pub(crate) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// What is being done now.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(brief(what));
    }
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
}

/// Shows the progress of an operation of the engine, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch(tokio::task::JoinHandle<()>);

impl Watch {
    pub(crate) fn new(what: &str, meter: Arc<Meter>, visible: bool) -> Self {
        let progress = Progress::new(what, 0, visible);
        Self(tokio::spawn(async move {
            let mut in_packs = false;
            loop {
                let (packs_done, packs) = meter.packs();
                if packs > 0 && !in_packs {
                    set_template(&progress.0, TEMPLATE_PACKS);
                    in_packs = true;
                }
                progress.0.set_prefix(format!("{packs_done}/{}", count(packs, "pack")));
                progress.0.set_length(meter.total());
                progress.0.set_position(meter.done());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
