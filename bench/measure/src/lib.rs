//! What the benchmark workers in Rust share: clocks, samples, options, and the answer.
//!
//! A worker is called as `WORKER WORKLOAD DIRECTORY [KEY=VALUE …]`, does one workload in its own
//! process, and prints one JSON line:
//!
//! ```json
//! {"measures": {"returned": {"wall": [0.5], "cpu": [0.9]}}, "equal": true, "facts": {}}
//! ```
//!
//! All samples are printed; only the harness evaluates them.

mod clock;
mod data;
mod memory;
mod options;

use std::error::Error;

use serde_json::{Map, Value, json};

pub use clock::{Clock, Samples};
pub use data::{Data, series_point};
pub use memory::{Idle, bytes_read, peak, resident};
pub use options::Options;

/// The result of a workload.
pub type Outcome = Result<Answer, Box<dyn Error>>;

/// The answer of a worker.
#[derive(Default)]
pub struct Answer {
    measures: Map<String, Value>,
    facts: Map<String, Value>,
    equal: Option<bool>,
}

impl Answer {
    /// With samples under a name.
    #[must_use]
    pub fn measure(mut self, name: &str, samples: &Samples) -> Self {
        self.measures.insert(name.into(), samples.to_json());
        self
    }

    /// With another fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// With the result of comparing the data with its source; one difference decides.
    #[must_use]
    pub fn equal(mut self, equal: bool) -> Self {
        self.equal = Some(equal && self.equal.unwrap_or(true));
        self
    }

    /// The line to print.
    pub fn line(self) -> String {
        json!({"measures": self.measures, "facts": self.facts, "equal": self.equal}).to_string()
    }
}
