//! What a caller asks for when it starts an export.

use chunkyard_engine::export::{self, ArrowOptions, Codec, Emit};
use chunkyard_engine::format::OpenOptions;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::Uid;
use chunkyard_engine::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::failure::{Failed, Outcome};
use super::make::Source;

/// Bytes of a key at most.
const KEY_BYTES_MAX: usize = 256;
/// Voxels that become one at most, along an axis.
const FACTOR_MAX: u64 = 1 << 16;

/// The members of `export.start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) at: Option<String>,
    #[serde(default)]
    pub(crate) path: Option<String>,
    #[serde(default = "bodies")]
    pub(crate) ids: Ids,
    #[serde(default)]
    pub(crate) scales: Option<usize>,
    #[serde(default)]
    pub(crate) spec: Option<Value>,
    #[serde(default = "no_factor")]
    pub(crate) factor: [u64; 3],
    #[serde(default)]
    pub(crate) codec: Codec,
}

pub(super) fn bodies() -> Ids {
    Ids::Bodies
}

pub(super) fn no_factor() -> [u64; 3] {
    [1; 3]
}

/// The identity of a job, and the name of its directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct JobId(String);

impl JobId {
    const DIGITS: usize = 32;

    /// Reads an identity. What is none names no job.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == Self::DIGITS && text.bytes().all(digit) {
            true => Ok(Self(text.to_owned())),
            false => Err(Failed::from(Error::invalid(format!(
                "a job is named by {} hexadecimal digits, not {:?}",
                Self::DIGITS,
                text.chars().take(64).collect::<String>()
            )))),
        }
    }

    /// The job that a key names.
    fn of_key(key: &str) -> Self {
        Self(hex(Sha256::digest(key.as_bytes()).as_slice()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(JobId::DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

impl Request {
    /// Refuses what makes no sense, gives the job a key if it has none, and says what the job is called.
    pub(crate) fn settle(mut self) -> Result<(Self, JobId)> {
        let key = match self.key.take() {
            Some(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) => key,
            Some(key) => {
                return Err(Error::invalid(format!(
                    "a key has 1 to {KEY_BYTES_MAX} bytes, not {}",
                    key.len()
                )));
            }
            None => hex(Uid::fresh()?.as_bytes()),
        };
        if self.factor.iter().any(|factor| !(1..=FACTOR_MAX).contains(factor)) {
            return Err(Error::invalid(format!(
                "1 to {FACTOR_MAX} voxels become one along an axis, not {:?}",
                self.factor
            )));
        }
        let id = JobId::of_key(&key);
        Ok((Self { key: Some(key), ..self }, id))
    }

    /// The export that it is, of a source.
    pub(super) fn export(&self, source: &Source, options: &OpenOptions) -> export::Request {
        let strip_labels = self.codec != Codec::Keep;
        export::Request {
            source: source.url.clone(),
            open: OpenOptions { version: source.version.clone(), ..options.clone() },
            spec: self.spec.as_ref().map(|spec| spec.to_string().into_bytes()),
            array: source.path.clone(),
            scales: self.scales,
            ids: self.ids,
            // Blocks come in the order in which a table has them.
            emit: vec![Emit::Table],
            arrow: ArrowOptions { codec: self.codec, strip_labels, ..ArrowOptions::default() },
            factor: self.factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_names_the_same_job_and_without_one_each_job_is_new() {
        let request = |text: &str| serde_json::from_str::<Request>(text).unwrap();
        let id = |text| request(text).settle().unwrap().1;
        assert_eq!(id(r#"{"source": "a", "key": "k"}"#), id(r#"{"source": "b", "key": "k"}"#));
        assert_ne!(id(r#"{"source": "a"}"#), id(r#"{"source": "a"}"#));
        let named = id(r#"{"source": "a", "key": "k"}"#);
        assert_eq!(JobId::parse(named.as_str()).unwrap(), named);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            r#"{"source": "a", "key": ""}"#.to_owned(),
            format!(r#"{{"source": "a", "key": "{}"}}"#, "k".repeat(257)),
            r#"{"source": "a", "factor": [0, 1, 1]}"#.to_owned(),
            r#"{"source": "a", "factor": [1, 1, 18446744073709551615]}"#.to_owned(),
        ] {
            assert!(serde_json::from_str::<Request>(&text).unwrap().settle().is_err(), "{text}");
        }
        for text in [
            "{}",
            r#"{"source": "a", "sauce": 1}"#,
            r#"{"source": "a", "codec": "zstd:99"}"#,
            r#"{"source": "a", "ids": "ghosts"}"#,
            r#"{"source": "a", "factor": [1, 1]}"#,
        ] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
        let long = "a".repeat(33);
        for text in ["", "..", "../../../../../../../../../../etc", "0123", long.as_str()] {
            assert!(JobId::parse(text).is_err(), "{text}");
        }
    }
}
