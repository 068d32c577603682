//! The types of a container's attributes, by name.

use chunkyard_store::{Error, Result};

use crate::container::model::AttributeValue;

/// The type of an attribute. Lists and binary, which version 5 has, cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttributeType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    String,
}

/// All of them, with their names.
const TYPES: &[(AttributeType, &str)] = &[
    (AttributeType::Bool, "Bool"),
    (AttributeType::Int8, "Int8"),
    (AttributeType::Int16, "Int16"),
    (AttributeType::Int32, "Int32"),
    (AttributeType::Int64, "Int64"),
    (AttributeType::UInt8, "UInt8"),
    (AttributeType::UInt16, "UInt16"),
    (AttributeType::UInt32, "UInt32"),
    (AttributeType::UInt64, "UInt64"),
    (AttributeType::Float32, "Float32"),
    (AttributeType::Float64, "Float64"),
    (AttributeType::String, "String"),
];

impl AttributeType {
    /// The type with that name, in any capitalisation.
    pub fn parse(name: &str) -> Result<Self> {
        let known = TYPES.iter().find(|(_, word)| word.eq_ignore_ascii_case(name));
        known.map(|(found, _)| *found).ok_or_else(|| {
            let words: Vec<&str> = TYPES.iter().map(|(_, word)| *word).collect();
            Error::invalid(format!(
                "{name:?} is no type of attributes; there are {}",
                words.join(", ")
            ))
        })
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        TYPES.iter().find(|(known, _)| *known == self).map_or("", |(_, word)| word)
    }

    /// A value as one of this type. Refuses a conversion that would change the value, except that a
    /// fraction is rounded to Float32.
    pub fn value(self, value: &AttributeValue) -> Result<AttributeValue> {
        let refuse =
            || Error::invalid(format!("{} does not fit into {}", shown(value), self.word()));
        self.cast(value).ok_or_else(refuse)
    }

    fn cast(self, value: &AttributeValue) -> Option<AttributeValue> {
        use AttributeValue as Value;
        let whole = || integer(value);
        Some(match self {
            Self::Bool => match value {
                Value::Bool(truth) => Value::Bool(*truth),
                _ => return None,
            },
            Self::Int8 => Value::Int8(whole()?.try_into().ok()?),
            Self::Int16 => Value::Int16(whole()?.try_into().ok()?),
            Self::Int32 => Value::Int32(whole()?.try_into().ok()?),
            Self::Int64 => Value::Int64(whole()?.try_into().ok()?),
            Self::UInt8 => Value::UInt8(whole()?.try_into().ok()?),
            Self::UInt16 => Value::UInt16(whole()?.try_into().ok()?),
            Self::UInt32 => Value::UInt32(whole()?.try_into().ok()?),
            Self::UInt64 => Value::UInt64(whole()?.try_into().ok()?),
            Self::Float32 => {
                let double = float(value)?;
                let single = double as f32;
                let is_kept = single.is_finite() || !double.is_finite();
                // An integer is not rounded.
                let is_whole = integer(value).is_none_or(|whole| single as i128 == whole);
                Value::Float32((is_kept && is_whole).then_some(single)?)
            }
            Self::Float64 => {
                let double = float(value)?;
                let is_whole = integer(value).is_none_or(|whole| double as i128 == whole);
                Value::Float64(is_whole.then_some(double)?)
            }
            Self::String => match value {
                Value::String(text) => Value::String(text.clone()),
                _ => return None,
            },
        })
    }
}

impl AttributeValue {
    /// The name of its type.
    pub fn type_word(&self) -> &'static str {
        match self {
            Self::Bool(_) => "Bool",
            Self::Int8(_) => "Int8",
            Self::Int16(_) => "Int16",
            Self::Int32(_) => "Int32",
            Self::Int64(_) => "Int64",
            Self::UInt8(_) => "UInt8",
            Self::UInt16(_) => "UInt16",
            Self::UInt32(_) => "UInt32",
            Self::UInt64(_) => "UInt64",
            Self::Float32(_) => "Float32",
            Self::Float64(_) => "Float64",
            Self::String(_) => "String",
            Self::Binary(_) => "Binary",
            Self::BoolList(_) => "BoolList",
            Self::Int8List(_) => "Int8List",
            Self::Int16List(_) => "Int16List",
            Self::Int32List(_) => "Int32List",
            Self::Int64List(_) => "Int64List",
            Self::UInt8List(_) => "UInt8List",
            Self::UInt16List(_) => "UInt16List",
            Self::UInt32List(_) => "UInt32List",
            Self::UInt64List(_) => "UInt64List",
            Self::Float32List(_) => "Float32List",
            Self::Float64List(_) => "Float64List",
            Self::StringList(_) => "StringList",
            Self::BinaryList(_) => "BinaryList",
        }
    }

    /// Whether two values are the same, whatever their types: one of them may have been through JSON,
    /// which knows one sort of integer and one NaN.
    pub(crate) fn means(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (whole_number(self), whole_number(other)) {
            return a == b;
        }
        match (fraction(self), fraction(other)) {
            (Some(a), Some(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => self == other,
        }
    }
}

/// A value as an integer, if its type is an integer.
fn whole_number(value: &AttributeValue) -> Option<i128> {
    use AttributeValue as Value;
    Some(match value {
        Value::Int8(value) => i128::from(*value),
        Value::Int16(value) => i128::from(*value),
        Value::Int32(value) => i128::from(*value),
        Value::Int64(value) => i128::from(*value),
        Value::UInt8(value) => i128::from(*value),
        Value::UInt16(value) => i128::from(*value),
        Value::UInt32(value) => i128::from(*value),
        Value::UInt64(value) => i128::from(*value),
        _ => return None,
    })
}

fn fraction(value: &AttributeValue) -> Option<f64> {
    match value {
        AttributeValue::Float32(value) => Some(f64::from(*value)),
        AttributeValue::Float64(value) => Some(*value),
        _ => None,
    }
}

/// A value as an integer, if it is whole.
fn integer(value: &AttributeValue) -> Option<i128> {
    let whole = || fraction(value).filter(|value| value.fract() == 0.0 && value.abs() < 1e20);
    whole_number(value).or_else(|| whole().map(|value| value as i128))
}

/// A value as a fraction; values that JSON does not have are words.
fn float(value: &AttributeValue) -> Option<f64> {
    if let AttributeValue::String(word) = value {
        return match word.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        };
    }
    fraction(value).or_else(|| whole_number(value).map(|value| value as f64))
}

fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::String(text) => format!("the text {text:?}"),
        AttributeValue::Bool(truth) => truth.to_string(),
        other => match (whole_number(other), fraction(other)) {
            (Some(number), _) => number.to_string(),
            (_, Some(number)) => number.to_string(),
            _ => "a list".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttributeValue as Value;

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        let int8 = AttributeType::parse("int8").unwrap();
        assert_eq!(int8.value(&Value::Int64(-128)).unwrap(), Value::Int8(-128));
        assert_eq!(int8.value(&Value::Float64(5.0)).unwrap(), Value::Int8(5));
        for refused in [Value::Int64(128), Value::Float64(0.5), Value::String("5".into())] {
            assert!(int8.value(&refused).is_err(), "{refused:?}");
        }
        let single = AttributeType::Float32;
        assert_eq!(single.value(&Value::Float64(0.1)).unwrap(), Value::Float32(0.1));
        assert_eq!(single.value(&Value::Int64(1 << 24)).unwrap(), Value::Float32(16_777_216.0));
        assert!(single.value(&Value::Int64((1 << 24) + 1)).is_err());
        assert!(single.value(&Value::Float64(1e300)).is_err());
        let infinite = single.value(&Value::String("-Infinity".into())).unwrap();
        assert_eq!(infinite, Value::Float32(f32::NEG_INFINITY));
        let large = AttributeType::UInt64.value(&Value::UInt64(u64::MAX)).unwrap();
        assert_eq!(large, Value::UInt64(u64::MAX));
        assert!(AttributeType::Float64.value(&Value::UInt64(u64::MAX)).is_err());
        assert!(AttributeType::parse("Int7").is_err());
    }

    #[test]
    fn a_value_means_the_same_after_it_was_json() {
        assert!(Value::Int8(5).means(&Value::Int64(5)));
        assert!(Value::Float32(f32::NAN).means(&Value::Float64(f64::NAN)));
        assert!(!Value::Float32(5.0).means(&Value::Int64(5)));
        assert!(!Value::Float64(0.0).means(&Value::Float64(-0.0)));
    }
}
