//! `WORKLOAD DIRECTORY [KEY=VALUE …]`.

use std::collections::HashMap;
use std::error::Error;

/// The arguments of a worker.
pub struct Options {
    /// The workload.
    pub workload: String,
    /// The directory.
    pub directory: String,
    values: HashMap<String, String>,
}

impl Options {
    /// From the command line.
    pub fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut arguments = std::env::args().skip(1);
        let usage = "WORKLOAD DIRECTORY [KEY=VALUE …]";
        let workload = arguments.next().ok_or(usage)?;
        let directory = arguments.next().ok_or(usage)?;
        let values = arguments
            .filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
            .collect();
        Ok(Self { workload, directory, values })
    }

    /// A text, or nothing.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// Whether an option is on: `KEY=yes`.
    pub fn is(&self, key: &str) -> bool {
        self.text(key) == "yes"
    }

    /// A number, or its default.
    pub fn number(&self, key: &str, default: u64) -> Result<u64, Box<dyn Error>> {
        match self.values.get(key) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{key}={text}: no number").into()),
        }
    }
}
