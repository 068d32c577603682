//! Numbers that JSON does not have.
//!
//! zarr-python writes attributes with Python's `json`, which spells numbers that are not finite as
//! `NaN`, `Infinity` and `-Infinity`: a `missing_value` of NaN is in many climate datasets. No other
//! reader takes such a document. A repository keeps JSON: the numbers as the strings that Zarr v3 has
//! for them in fill values, and in a member of the document which of its strings are numbers. From
//! that, [`restore`] makes what was written.

use serde_json::{Map, Value, json};

/// The member that lists, as JSON pointers, the attributes that are numbers.
pub(crate) const MEMBER: &str = "chunkyard_non_finite";
const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
/// Tells a number from a string with the same letters while a document is on its way. A character for
/// private use, which no text means anything by.
const MARK: char = '\u{f0f0f}';

/// Reads a document that may hold such numbers.
pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<Map<String, Value>> {
    let error = match serde_json::from_slice(bytes) {
        Ok(document) => return Ok(document),
        Err(error) => error,
    };
    let Some(marked) = std::str::from_utf8(bytes).ok().and_then(mark) else { return Err(error) };
    let mut document: Map<String, Value> = serde_json::from_str(&marked)?;
    let mut found = Vec::new();
    for (name, member) in &mut document {
        let before = found.len();
        if name.starts_with(MARK) || !unmark(member, String::new(), &mut found) {
            return Err(error);
        }
        if name != "attributes" {
            // A fill value, say, for which Zarr has these very strings.
            found.truncate(before);
        }
    }
    if !found.is_empty() {
        document.insert(MEMBER.into(), json!({"must_understand": false, "attributes": found}));
    }
    Ok(document)
}

/// The text with each such number as a string that is told by its mark; `None` if there is none.
fn mark(text: &str) -> Option<String> {
    let mut marked = String::with_capacity(text.len() + 16);
    let (mut rest, mut found) = (text, false);
    while let Some(next) = rest.chars().next() {
        let taken = match WORDS.iter().find(|word| rest.starts_with(**word)) {
            Some(word) => {
                marked.extend(['"', MARK]);
                marked.push_str(word);
                marked.push('"');
                found = true;
                word.len()
            }
            None => {
                let len = if next == '"' { string_len(rest) } else { next.len_utf8() };
                marked.push_str(rest.get(..len)?);
                len
            }
        };
        rest = rest.get(taken..)?;
    }
    found.then_some(marked)
}

/// Bytes of the string that a text begins with, its quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Takes the marks off again, and notes where they were; whether all of them were at values.
fn unmark(value: &mut Value, pointer: String, found: &mut Vec<String>) -> bool {
    match value {
        Value::String(text) => {
            if let Some(word) = text.strip_prefix(MARK) {
                *text = word.to_owned();
                found.push(pointer);
            }
            true
        }
        Value::Array(items) => {
            let mut items = items.iter_mut().enumerate();
            items.all(|(at, item)| unmark(item, format!("{pointer}/{at}"), found))
        }
        Value::Object(members) => members.iter_mut().all(|(key, member)| {
            let escaped = key.replace('~', "~0").replace('/', "~1");
            !key.starts_with(MARK) && unmark(member, format!("{pointer}/{escaped}"), found)
        }),
        _ => true,
    }
}

/// The text of a document, its numbers spelled as they were written.
pub(super) fn restore(mut document: Map<String, Value>) -> serde_json::Result<String> {
    let listed = document.shift_remove(MEMBER);
    let pointers = listed.as_ref().and_then(|member| member.get("attributes")?.as_array());
    let mut found = false;
    for pointer in pointers.into_iter().flatten().filter_map(Value::as_str) {
        let attribute = document.get_mut("attributes").and_then(|all| all.pointer_mut(pointer));
        // Somebody may have changed the attributes since, who knows nothing of the list.
        if let Some(Value::String(text)) = attribute
            && WORDS.contains(&text.as_str())
        {
            text.insert(0, MARK);
            found = true;
        }
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(document))?;
    if found {
        for word in WORDS {
            text = text.replace(&format!("\"{MARK}{word}\""), word);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_come_back_and_strings_stay_strings() {
        let written = r#"{
  "fill_value": NaN,
  "attributes": {
    "missing_value": NaN,
    "text": "NaN, \"Infinity\" and -Infinity \\",
    "word": "NaN",
    "a/b~c": [
      -Infinity,
      {
        "": Infinity
      },
      1.5
    ]
  }
}"#;
        let document = parse(written.as_bytes()).unwrap();
        assert_eq!(document["fill_value"], "NaN");
        assert_eq!(document["attributes"]["missing_value"], "NaN");
        let listed = json!(["/missing_value", "/a~1b~0c/0", "/a~1b~0c/1/"]);
        assert_eq!(document[MEMBER]["attributes"], listed);
        let expected = written.replacen("NaN", "\"NaN\"", 1);
        assert_eq!(restore(document).unwrap(), expected);
    }

    #[test]
    fn a_list_that_no_longer_fits_is_ignored() {
        let mut document = parse(br#"{"attributes": {"a": NaN, "b": NaN}}"#).unwrap();
        document["attributes"] = json!({"a": 1});
        assert_eq!(restore(document).unwrap(), "{\n  \"attributes\": {\n    \"a\": 1\n  }\n}");
    }

    #[test]
    fn what_is_no_json_otherwise_is_still_none() {
        for text in [
            "",
            "NaN",
            "{\"a\": NaNa}",
            "{\"a\": \"NaN}",
            "{NaN: 1}",
            "{\"a\": {NaN: 1}}",
            "[NaN]",
            "{\"a\": nan}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_written_makes_it_panic(text in "[\"\\\\{}:, aNInfity-]{0,40}") {
            parse(text.as_bytes()).ok();
        }
    }
}
