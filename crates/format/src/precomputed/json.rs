//! Members of a JSON object, each taken once; what is left over is unknown and kept.

use serde_json::{Map, Value};

/// The longest value from a file that a message shows.
const CHARS_MAX: usize = 60;

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) found: String,
}

/// The members of an object.
pub(super) struct Members {
    /// Where the object is, for messages: `scales[0].`.
    at: String,
    rest: Map<String, Value>,
}

/// The greatest size, offset or number in a document: TensorStore's bound, with which sums of two still are numbers
/// of 64 bits.
pub(super) const EXTENT_MAX: u64 = 1 << 62;

impl Members {
    pub(super) fn of(at: &str, value: &Value) -> Result<Self, Wrong> {
        match value {
            Value::Object(members) => {
                let at = if at.is_empty() { String::new() } else { format!("{at}.") };
                Ok(Self { at, rest: members.clone() })
            }
            other => Err(wrong(at, "an object", other)),
        }
    }

    /// The members that were not taken.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.rest
    }

    /// Takes a member; `null` is none.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.shift_remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn need(&mut self, name: &str, expected: &str) -> Result<Value, Wrong> {
        self.take(name).ok_or_else(|| self.wrong(name, expected, "nothing".to_owned()))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, Wrong> {
        let value = self.need(name, &one_of(words))?;
        self.parse_word(name, words, &value)
    }

    /// One of some words, if it is there.
    pub(super) fn word_or<T: Copy>(
        &mut self,
        name: &str,
        words: &[(&str, T)],
        otherwise: T,
    ) -> Result<T, Wrong> {
        match self.take(name) {
            None => Ok(otherwise),
            Some(value) => self.parse_word(name, words, &value),
        }
    }

    fn parse_word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        value: &Value,
    ) -> Result<T, Wrong> {
        let known = words.iter().find(|(word, _)| value.as_str() == Some(word));
        known
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| self.wrong(name, &one_of(words), found(value)))
    }

    /// A number of bits, at most `most`.
    pub(super) fn bits(&mut self, name: &str, most: u32) -> Result<u32, Wrong> {
        let expected = format!("a number from 0 to {most}");
        let value = self.need(name, &expected)?;
        let bits = value.as_u64().and_then(|bits| u32::try_from(bits).ok());
        bits.filter(|bits| *bits <= most).ok_or_else(|| self.wrong(name, &expected, found(&value)))
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Wrong> {
        let value = self.need(name, "a text")?;
        match value {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(name, "a text", found(&other))),
        }
    }

    /// What `parse` makes of the three members of a list, one per axis.
    pub(super) fn triple<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<[T; 3], Wrong> {
        let value = self.need(name, expected)?;
        triple(&value, parse).ok_or_else(|| self.wrong(name, expected, listed(&value)))
    }

    pub(super) fn wrong(&self, name: &str, expected: &str, found: String) -> Wrong {
        Wrong { what: format!("{}{name}", self.at), expected: expected.to_owned(), found }
    }
}

/// What `parse` makes of the three members of a list.
pub(super) fn triple<T>(value: &Value, parse: impl Fn(&Value) -> Option<T>) -> Option<[T; 3]> {
    match value.as_array().map(Vec::as_slice) {
        Some([x, y, z]) => Some([parse(x)?, parse(y)?, parse(z)?]),
        _ => None,
    }
}

/// A size of at least `least`.
pub(super) fn extent(value: &Value, least: u64) -> Option<u64> {
    value.as_u64().filter(|extent| (least..=EXTENT_MAX).contains(extent))
}

pub(super) fn wrong(what: &str, expected: &str, value: &Value) -> Wrong {
    Wrong { what: what.to_owned(), expected: expected.to_owned(), found: found(value) }
}

/// A list of numbers, or any other value, for a message.
pub(super) fn listed(value: &Value) -> String {
    match value.as_array() {
        Some(values) if values.len() <= 4 => {
            let values: Vec<String> = values.iter().map(found).collect();
            format!("[{}]", values.join(", "))
        }
        _ => found(value),
    }
}

/// A value from a file, short enough for a message.
pub(super) fn found(value: &Value) -> String {
    let whole = match value {
        Value::Array(values) => return format!("a list of {}", values.len()),
        Value::Object(members) => return format!("an object with {} members", members.len()),
        other => other.to_string(),
    };
    match whole.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", whole.get(..at).unwrap_or_default()),
        None => whole,
    }
}

/// The word for a value.
pub(super) fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.join(" or ")
}
