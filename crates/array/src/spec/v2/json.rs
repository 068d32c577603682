//! JSON as Python writes it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::document;
use crate::Result;

/// Numbers that JSON does not have and that Python's `json` module writes all the same, longest
/// first. They are common in attributes, as the `_FillValue` of xarray.
const NOT_JSON: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Reads an object. A bare `NaN` or `Infinity` becomes a string, as Zarr v3 spells them.
pub(super) fn parse(what: &str, text: &[u8]) -> Result<Map<String, Value>> {
    document::parse(what, &quote_non_json(text))
}

/// The text with quotes around the `NaN`, `Infinity` and `-Infinity` that Python writes and JSON does not
/// have.
pub fn quote_non_json(text: &[u8]) -> Cow<'_, [u8]> {
    if !NOT_JSON.iter().any(|word| text.windows(word.len()).any(|part| part == word.as_bytes())) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    let (mut rest, mut in_string) = (text, false);
    while let Some((&first, after)) = rest.split_first() {
        let word = NOT_JSON.iter().find(|word| !in_string && rest.starts_with(word.as_bytes()));
        if let Some(word) = word {
            out.extend([b"\"", word.as_bytes(), b"\""].concat());
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        out.push(first);
        rest = after;
        match (first, after.split_first()) {
            (b'"', _) => in_string = !in_string,
            (b'\\', Some((&escaped, after))) if in_string => {
                out.push(escaped);
                rest = after;
            }
            _ => {}
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    #[test]
    fn numbers_that_are_not_json_become_strings() {
        let text =
            r#"{"a": NaN, "b": [-Infinity, Infinity, 1], "NaN": "x NaN \" NaN \\", "c": "\\NaN"}"#;
        let found = Value::Object(parse("text", text.as_bytes()).unwrap());
        let expected = json!({
            "a": "NaN", "b": ["-Infinity", "Infinity", 1], "NaN": "x NaN \" NaN \\", "c": "\\NaN",
        });
        assert_eq!(found, expected);
        for broken in
            ["", "NaN", "{NaN", "{\"a\": NaNNaN}", "{\"a\": \"NaN", "\"\\", "{\"a\": nan}"]
        {
            assert!(parse("text", broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
