//! The names of a container's files.
//!
//! ```text
//!  x.af                 the base, layer 0
//!  x.N.af               layer N, N ≥ 1, no leading zeros
//!  x.stats              statistics, for other programs
//!  .x.af.chunkyard/     work in progress; nothing in it counts
//! ```

use chunkyard_store::{Error, Result};

/// The ending of all layers.
const ENDING: &str = ".af";

/// The files of one container, in the folder where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    stem: String,
}

impl Names {
    /// The files of the container with this base.
    pub(crate) fn new(base: &str) -> Result<Self> {
        match base.strip_suffix(ENDING) {
            Some(stem) if !stem.is_empty() => Ok(Self { stem: stem.to_owned() }),
            _ => Err(Error::invalid(format!("{base}: the name of a container ends in {ENDING}"))),
        }
    }

    /// The base.
    pub(crate) fn base(&self) -> String {
        format!("{}{ENDING}", self.stem)
    }

    /// A layer; 0 is the base.
    pub(crate) fn layer(&self, number: u64) -> String {
        match number {
            0 => self.base(),
            number => format!("{}.{number}{ENDING}", self.stem),
        }
    }

    /// The statistics file.
    pub(crate) fn statistics(&self) -> String {
        format!("{}.stats", self.stem)
    }

    /// The folder of work in progress.
    pub(crate) fn work(&self) -> String {
        format!(".{}.chunkyard", self.base())
    }

    /// The new name of a layer that cannot be read; the word says why.
    pub(crate) fn set_aside(&self, number: u64, word: &str) -> String {
        format!("{}.{number}.{word}", self.stem)
    }

    /// The number of a layer by its name; `None` for other files, and for the base.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.stem)?.strip_prefix('.')?.strip_suffix(ENDING)?;
        // As other programs read it: 32 bits, and only in the form that they write.
        let number: u32 = digits.parse().ok()?;
        (number > 0 && number.to_string() == digits).then_some(number.into())
    }
}

/// Whether two names in one folder would share files, if they were containers: one is a layer of the
/// other, or its statistics.
pub fn share_files(a: &str, b: &str) -> bool {
    let has = |base: &str, name: &str| {
        Names::new(base).is_ok_and(|names| {
            names.number(name).is_some() || names.base() == name || names.statistics() == name
        })
    };
    has(a, b) || has(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_recognised_by_their_names_and_nothing_else_is() {
        let names = Names::new("x.af").unwrap();
        assert_eq!(names.layer(0), "x.af");
        assert_eq!(names.number(&names.layer(12)), Some(12));
        for other in ["x.af", "x.0.af", "x.01.af", "x.+1.af", "x.1.stats", "xx.1.af", "x.1.1.af"] {
            assert_eq!(names.number(other), None, "{other}");
        }
        assert_eq!(names.number("x.4294967296.af"), None);
        // `x.1.af` may be a container of its own, with layers of its own.
        assert_eq!(Names::new("x.1.af").unwrap().number("x.1.2.af"), Some(2));
        assert!(Names::new("x.zarr").is_err() && Names::new(".af").is_err());
    }

    #[test]
    fn a_container_shares_files_with_its_layers_and_its_statistics() {
        for (a, b) in [("x.af", "x.2.af"), ("x.2.af", "x.af"), ("x.stats", "x.af")] {
            assert!(share_files(a, b), "{a} {b}");
        }
        for (a, b) in [("x.af", "y.af"), ("x.af", "x.02.af"), ("x.zarr", "x.1.zarr")] {
            assert!(!share_files(a, b), "{a} {b}");
        }
    }
}
