//! Numbers that JSON does not have.
//!
//! Python's `json` spells numbers that are not finite `NaN`, `Infinity` and `-Infinity`, and so do
//! zarr-python and xarray: a `missing_value` of NaN is in many climate datasets. Such a number takes
//! three forms on its way:
//!
//! | form | where |
//! |---|---|
//! | a bare word in the text | files of plain Zarr and of BLZ, what a caller types |
//! | a [`Value::Number`] with that word as its digits | attributes that a caller gives, see [`parse`] |
//! | a string, and its JSON pointer in the member [`MEMBER`] | documents in memory and in repositories, see [`seal`] |
//!
//! The strings are the ones that Zarr v3 has for fill values. With them a document is JSON to every
//! reader, and the list shows which strings are numbers.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use super::Attributes;

/// The member of a document that lists, as JSON pointers, which of its attributes are numbers.
pub const MEMBER: &str = "chunkyard_non_finite";

/// The words; if one ends with another, the longer comes first.
const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];

/// The number for a word.
pub fn number(value: f64) -> Value {
    let word = match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    of_word(word)
}

fn of_word(word: &str) -> Value {
    // The only way to make such a number; the parser makes none.
    Value::Number(Number::from_string_unchecked(word.to_owned()))
}

/// The word of a number that is not finite.
fn word_of(value: &Value) -> Option<&'static str> {
    let Value::Number(number) = value else { return None };
    WORDS.into_iter().find(|word| *word == number.as_str())
}

/// Whether a value is, or holds, a number that is not finite.
pub fn has_any(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_any),
        Value::Object(members) => members.values().any(has_any),
        other => word_of(other).is_some(),
    }
}

/// Reads JSON that may hold the bare words, which become numbers.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let error = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let Ok(text) = std::str::from_utf8(text) else { return Err(error) };
    // Numbers are read verbatim, but for the sign and the letter of an exponent. These have an exponent
    // that no other number of the text has.
    let taken: BTreeSet<&str> = exponents(text).collect();
    let mut free =
        (1u64..).map(|n| n.to_string()).filter(|digits| !taken.contains(digits.as_str()));
    let exponent = free.next().unwrap_or_default();
    let stand_ins = WORDS.map(|word| match word {
        "NaN" => (format!("0e+{exponent}"), word),
        "Infinity" => (format!("1e+{exponent}"), word),
        _ => (format!("-1e+{exponent}"), word),
    });
    let Some(replaced) = replace(text, &stand_ins) else { return Err(error) };
    let mut value: Value = serde_json::from_str(&replaced).map_err(|_| error)?;
    put_back(&mut value, &stand_ins);
    Ok(value)
}

/// The digits of everything that may be an exponent.
fn exponents(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(['e', 'E']).filter_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        digits.get(..len).filter(|digits| !digits.is_empty())
    })
}

/// The text with a number in place of each bare word; `None` if there is none.
fn replace(text: &str, stand_ins: &[(String, &str); 3]) -> Option<String> {
    let mut replaced = String::with_capacity(text.len() + 32);
    let (mut rest, mut found) = (text, false);
    while let Some(next) = rest.chars().next() {
        let taken = match stand_ins.iter().find(|(_, word)| rest.starts_with(word)) {
            Some((stand_in, word)) => {
                // Blanks separate it from its neighbours.
                replaced.extend([" ", stand_in, " "]);
                found = true;
                word.len()
            }
            None => {
                let len = if next == '"' { string_len(rest) } else { next.len_utf8() };
                replaced.push_str(rest.get(..len)?);
                len
            }
        };
        rest = rest.get(taken..)?;
    }
    found.then_some(replaced)
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

fn put_back(value: &mut Value, stand_ins: &[(String, &str); 3]) {
    match value {
        Value::Number(number) => {
            let known = stand_ins.iter().find(|(stand_in, _)| stand_in == number.as_str());
            if let Some((_, word)) = known {
                *value = of_word(word);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_back(item, stand_ins)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| put_back(member, stand_ins));
        }
        _ => {}
    }
}

/// A value with strings in place of numbers that are not finite, where the context says that they
/// are numbers: as in fill values.
pub fn spelled(mut value: Value) -> Value {
    seal_value(&mut value, "", &mut Vec::new());
    value
}

/// Turns the numbers of attributes that are not finite into strings, and gives pointers to them.
pub fn seal(attributes: &mut Attributes) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in attributes {
        seal_value(value, &pointer_to("", key), &mut found);
    }
    found
}

fn seal_value(value: &mut Value, pointer: &str, found: &mut Vec<String>) {
    if let Some(word) = word_of(value) {
        *value = Value::from(word);
        found.push(pointer.to_owned());
        return;
    }
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                seal_value(item, &format!("{pointer}/{at}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                seal_value(member, &pointer_to(pointer, key), found);
            }
        }
        _ => {}
    }
}

/// The inverse of [`seal`]: attributes with the numbers that the members of their document list.
pub fn unseal(attributes: &Attributes, members: &Attributes) -> Attributes {
    let mut unsealed = Value::Object(attributes.clone());
    for pointer in pointers(members) {
        // A writer that does not know the list may have changed the attributes.
        if let Some(value) = unsealed.pointer_mut(pointer)
            && let Some(word) = WORDS.into_iter().find(|word| value.as_str() == Some(word))
        {
            *value = of_word(word);
        }
    }
    match unsealed {
        Value::Object(attributes) => attributes,
        _ => Attributes::new(),
    }
}

/// The pointers that the members of a document list.
pub fn pointers(members: &Attributes) -> impl Iterator<Item = &str> {
    let listed = members.get(MEMBER).and_then(|member| member.get("attributes")?.as_array());
    listed.into_iter().flatten().filter_map(Value::as_str)
}

/// The member that lists pointers.
pub fn member(pointers: &[String]) -> Value {
    json!({"must_understand": false, "attributes": pointers})
}

/// RFC 6901: the pointer to a member of another pointer's target.
fn pointer_to(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Reads a document of Zarr, and the documents that it repeats as consolidated metadata.
pub(super) fn parse_document(text: &[u8]) -> serde_json::Result<Map<String, Value>> {
    match parse(text)? {
        Value::Object(document) => Ok(sealed_document(document)),
        // Fails with an error that names the actual kind of value.
        other => serde_json::from_value(other),
    }
}

fn sealed_document(mut document: Map<String, Value>) -> Map<String, Value> {
    if !document.values().any(has_any) {
        return document;
    }
    if let Some(nodes) = repeated(&mut document) {
        for node in nodes.values_mut() {
            if let Value::Object(members) = node {
                *members = sealed_document(std::mem::take(members));
            }
        }
    }
    let mut listed = Vec::new();
    for (key, member) in &mut document {
        match member {
            Value::Object(attributes) if key == "attributes" => listed = seal(attributes),
            // For example a fill value, which Zarr writes as these very strings.
            other => seal_value(other, "", &mut Vec::new()),
        }
    }
    if !listed.is_empty() {
        document.insert(MEMBER.to_owned(), member(&listed));
    }
    document
}

/// A document whose attributes may come from a caller: lists the numbers that are not finite, and
/// keeps older entries that still apply.
pub(super) fn listed(mut document: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Object(attributes)) = document.get_mut("attributes") else { return document };
    if !attributes.values().any(has_any) {
        return document;
    }
    let mut found = seal(attributes);
    let there = Value::Object(attributes.clone());
    for pointer in pointers(&document) {
        let word = there.pointer(pointer).and_then(Value::as_str);
        if word.is_some_and(|word| WORDS.contains(&word)) && !found.iter().any(|it| it == pointer) {
            found.push(pointer.to_owned());
        }
    }
    document.insert(MEMBER.to_owned(), member(&found));
    document
}

/// The document as zarr-python writes it: with the bare words, and without the list.
pub fn plain_document(mut document: Map<String, Value>) -> Map<String, Value> {
    if let Some(nodes) = repeated(&mut document) {
        for node in nodes.values_mut() {
            if let Value::Object(members) = node {
                *members = plain_document(std::mem::take(members));
            }
        }
    }
    if document.contains_key(MEMBER) {
        if let Some(Value::Object(attributes)) = document.get("attributes") {
            let unsealed = unseal(attributes, &document);
            document.insert("attributes".to_owned(), Value::Object(unsealed));
        }
        document.shift_remove(MEMBER);
    }
    document
}

/// The documents that a group repeats.
fn repeated(document: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    document.get_mut("consolidated_metadata")?.get_mut("metadata")?.as_object_mut()
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
    "number": 0e+1,
    "a/b~c": [
      -Infinity,
      {
        "": Infinity
      },
      1.5
    ]
  }
}"#;
        let document = parse_document(written.as_bytes()).unwrap();
        assert_eq!(document["fill_value"], "NaN");
        assert_eq!(document["attributes"]["missing_value"], "NaN");
        let listed = json!(["/missing_value", "/a~1b~0c/0", "/a~1b~0c/1/"]);
        assert_eq!(document[MEMBER]["attributes"], listed);
        let expected = written.replacen("NaN", "\"NaN\"", 1);
        let plain = serde_json::to_string_pretty(&plain_document(document)).unwrap();
        assert_eq!(plain, expected);
    }

    #[test]
    fn the_documents_that_a_group_repeats_have_lists_of_their_own() {
        let written = r#"{"attributes":{"a":NaN},"consolidated_metadata":{"metadata":{"x":{"attributes":{"b":-Infinity}},"y":{"attributes":{"c":"NaN"}}}}}"#;
        let document = parse_document(written.as_bytes()).unwrap();
        let nodes = &document["consolidated_metadata"]["metadata"];
        assert_eq!(nodes["x"][MEMBER]["attributes"], json!(["/b"]));
        assert_eq!(nodes["y"].get(MEMBER), None);
        assert_eq!(serde_json::to_string(&plain_document(document)).unwrap(), written);
    }

    #[test]
    fn a_list_that_no_longer_fits_is_ignored() {
        let mut document = parse_document(br#"{"attributes": {"a": NaN, "b": NaN}}"#).unwrap();
        document["attributes"] = json!({"a": 1});
        let plain = serde_json::to_string(&plain_document(document)).unwrap();
        assert_eq!(plain, r#"{"attributes":{"a":1}}"#);
    }

    #[test]
    fn text_that_is_otherwise_not_json_is_still_refused() {
        for text in [
            "",
            "NaN",
            "{\"a\": NaNa}",
            "{\"a\": 1NaN}",
            "{\"a\": NaN1}",
            "{\"a\": NaNNaN}",
            "{\"a\": -NaN}",
            "{\"a\": \"NaN}",
            "{NaN: 1}",
            "{\"a\": {NaN: 1}}",
            "[NaN]",
            "{\"a\": nan}",
            "{\"a\": inf}",
        ] {
            assert!(parse_document(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_that_is_spelled_like_a_stand_in_stays_what_it_is() {
        let text = b"[NaN, 0e+1, 0E1, 1e2, -1E+03, \"e4\", Infinity, -Infinity]";
        let value = parse(text).unwrap();
        assert_eq!(value.to_string(), "[NaN,0e+1,0e+1,1e+2,-1e+03,\"e4\",Infinity,-Infinity]");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_written_makes_it_panic(text in "[\"\\\\{}:, aNInfity0-9eE+-]{0,40}") {
            parse(text.as_bytes()).ok();
            parse_document(text.as_bytes()).ok();
        }
    }
}
