//! Elements of one data type as elements of another, without loss or not at all.
//!
//! A [`Cast`] is made once for a pair of types and applied to chunk after chunk. Every value must be
//! the same number afterwards; one that has no equal in the target type is an error that names it.
//!
//! | from, to | condition |
//! |---|---|
//! | integer or bool to integer or bool | in range; a bool is 0 or 1 |
//! | integer to float | no digit is lost |
//! | float to integer | integral and in range; -0.0 is 0 |
//! | float to float | exact, or rounded to the nearest on request; never to infinity |
//! | real to complex, complex to real | as for the real part; the imaginary part is zero |
//! | `numpy.datetime64` or `timedelta64` to the same in another unit | a whole number of units |
//!
//! Between floats, NaN is NaN, infinities and the sign of zero are kept; NaT is NaT. Elements are in
//! little-endian order, as decoded chunks are.
//!
//! ```
//! # use chunkyard_array::{Cast, DType};
//! # use serde_json::json;
//! let (narrow, wide) = (DType::parse(&json!("uint8"))?, DType::parse(&json!("uint16"))?);
//! let mut out = [0; 4];
//! Cast::new(&narrow, &wide, false)?.unwrap().apply(&[1, 255], &mut out)?;
//! assert_eq!(out, [1, 0, 255, 0]);
//!
//! let narrowing = Cast::new(&wide, &narrow, false)?.unwrap();
//! let error = narrowing.apply(&[1, 0, 0, 1], &mut [0; 2]).unwrap_err();
//! assert_eq!(error.to_string(), "element 1 is 256, a uint16 that no uint8 equals");
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

mod number;
mod pairs;
#[cfg(test)]
mod tests;
mod time;

use serde_json::Value;
use zarrs::array::{FillValue, FillValueMetadata};

use self::pairs::{Numbers, display};
use self::time::Ratio;
use crate::{DType, Error, Result, fill_element};

/// A checked conversion from one data type to another.
#[derive(Clone, Debug)]
pub struct Cast {
    source: DType,
    target: DType,
    source_bytes: usize,
    target_bytes: usize,
    rule: Rule,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Numbers(Numbers),
    Time(Ratio),
}

impl Cast {
    /// The conversion from `source` to `target`; `None` where the types are equal and there is
    /// nothing to do. With `rounding`, floats that are too fine for the target are rounded to the
    /// nearest one, ties to even.
    pub fn new(source: &DType, target: &DType, rounding: bool) -> Result<Option<Self>> {
        if source.zarrs() == target.zarrs() {
            return Ok(None);
        }
        let rule = match Ratio::between(source, target) {
            Some(ratio) => Some(Rule::Time(ratio)),
            None => Numbers::between(source.name(), target.name(), rounding).map(Rule::Numbers),
        };
        match (rule, source.item_size(), target.item_size()) {
            (Some(rule), Some(source_bytes), Some(target_bytes)) => Ok(Some(Self {
                source: source.clone(),
                target: target.clone(),
                source_bytes,
                target_bytes,
                rule,
            })),
            _ => Err(Error::unsupported(format!("a cast from {source} to {target}"))),
        }
    }

    /// The source type.
    pub fn source(&self) -> &DType {
        &self.source
    }

    /// The target type.
    pub fn target(&self) -> &DType {
        &self.target
    }

    /// Converts elements. After an error, what is in `target` has no meaning.
    pub fn apply(&self, source: &[u8], target: &mut [u8]) -> Result<()> {
        let count = source.len() / self.source_bytes;
        let fits = source.len() == count * self.source_bytes
            && target.len().checked_div(self.target_bytes) == Some(count)
            && target.len().is_multiple_of(self.target_bytes);
        if !fits {
            return Err(Error::invalid(format!(
                "{} bytes of {} cannot be cast to {} bytes of {}",
                source.len(),
                self.source,
                target.len(),
                self.target
            )));
        }
        match self.convert(source, target) {
            None => Ok(()),
            Some(element) => Err(self.refuse(&format!("element {element}"), source, element)),
        }
    }

    /// Converts a fill value, as it stands in the metadata.
    pub fn fill_value(&self, metadata: &FillValueMetadata) -> Result<Value> {
        let source = fill_element(&self.source, metadata)?;
        let mut target = vec![0; self.target_bytes];
        if self.convert(&source, &mut target).is_some() {
            return Err(self.refuse("the fill value", &source, 0));
        }
        let unfit = || Error::invalid(format!("a fill value of {}", self.target));
        let metadata = self.target.zarrs().metadata_fill_value(&FillValue::new(target));
        let metadata = metadata.map_err(|cause| unfit().because(cause))?;
        serde_json::to_value(metadata).map_err(|cause| unfit().because(cause))
    }

    /// Converts all elements; returns the position of the first that cannot be converted, if any.
    fn convert(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        match &self.rule {
            Rule::Numbers(numbers) => numbers.convert(source, target),
            Rule::Time(ratio) => ratio.convert(source, target),
        }
    }

    fn refuse(&self, what: &str, source: &[u8], element: usize) -> Error {
        let bytes = source.chunks_exact(self.source_bytes).nth(element).unwrap_or_default();
        let value = match &self.rule {
            Rule::Numbers(_) => display(self.source.name(), bytes),
            Rule::Time(_) => display("int64", bytes),
        };
        let (source, target) = (&self.source, &self.target);
        Error::invalid(format!("{what} is {value}, a {source} that no {target} equals"))
    }
}
