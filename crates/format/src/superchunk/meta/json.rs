//! JSON as Python writes and reads it.

use serde_json::{Map, Number, Value};

use super::seal;

/// What Python writes for the floating-point values that JSON does not have.
pub(super) const SPECIAL: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The value as Python's `json.dumps` writes it: a blank behind each comma and colon, and nothing but
/// printable ASCII.
pub fn ascii_json(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quoted(text),
        Value::Array(items) => list(items.iter().map(ascii_json)),
        Value::Object(map) => object(&members(map)),
    }
}

/// The members of an object, each a key and the JSON of its value.
pub(super) fn members(map: &Map<String, Value>) -> Vec<(&str, String)> {
    map.iter().map(|(key, value)| (key.as_str(), ascii_json(value))).collect()
}

/// A list of JSON texts.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// An object of JSON texts.
pub(super) fn object(members: &[(&str, String)]) -> String {
    let members = members.iter().map(|(key, value)| format!("{}: {value}", quoted(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// A file of one object.
pub(super) fn line(members: &[(&str, String)]) -> Vec<u8> {
    let mut line = object(members).into_bytes();
    line.push(b'\n');
    line
}

/// A file of one object, with a checksum at its end if `sealed`.
pub(super) fn file(members: &[(&str, String)], sealed: bool) -> Vec<u8> {
    match sealed {
        true => seal::sealed(line(members)),
        false => line(members),
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                out.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    out.push('"');
    out
}

fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(value) => float_text(value),
        None => number.to_string(),
    }
}

/// A number as Python's `repr` writes it: the shortest digits, with an exponent only if the number is
/// below 0.0001 or has more than 16 digits before its point.
fn float_text(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match exponent {
        -4..16 => format!("{value:?}"),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
    }
}
