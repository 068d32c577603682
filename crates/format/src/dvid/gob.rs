//! Go's gob: a stream of values that describes its own types.
//!
//! ```text
//!  message: length │ -id │ definition of type id        any number of these, then
//!           length │  id │ value of that type
//! ```
//!
//! DVID keeps its metadata so: a repository, its versions and its data are values of types that encode
//! themselves, which a gob holds as bytes; inside them is another gob. This decoder turns a stream into
//! [`Value`]s and leaves those bytes as [`Value::Opaque`]. It keeps no more than the stream can hold: a length
//! is believed only if that many bytes are left.
//!
//! Specification: Go's package `encoding/gob`. Compatible implementations: Go.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_store::{Error, Result};

/// How deep values may lie in one another.
const DEPTH_MAX: usize = 32;
/// Values in a stream. Elements without bytes would otherwise make many of a few.
const VALUES_MAX: usize = 1 << 22;
/// Types that a stream may define, and fields that a type may have.
const TYPES_MAX: usize = 4096;

/// The ids that every stream knows.
const BOOL: i64 = 1;
const INT: i64 = 2;
const UINT: i64 = 3;
const FLOAT: i64 = 4;
const BYTES: i64 = 5;
const STRING: i64 = 6;
const COMPLEX: i64 = 7;
const INTERFACE: i64 = 8;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text, which need not be UTF-8 in Go and is mended here.
    String(String),
    /// A slice or an array.
    List(Vec<Value>),
    /// A map, in the order of the stream.
    Map(Vec<(Value, Value)>),
    /// The fields of a struct that are not zero, by name. All values of a type share its names.
    Struct(Vec<(Arc<str>, Value)>),
    /// Nothing, where any type could be.
    Nil,
    /// A value of a type that encodes itself.
    Opaque(Vec<u8>),
}

impl Value {
    /// An unsigned integer.
    pub fn as_uint(&self) -> Option<u64> {
        match self {
            Self::Uint(value) => Some(*value),
            _ => None,
        }
    }

    /// Text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }

    /// The pairs of a map.
    pub fn as_map(&self) -> Option<&[(Value, Value)]> {
        match self {
            Self::Map(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The bytes of a value that encodes itself.
    pub fn as_opaque(&self) -> Option<&[u8]> {
        match self {
            Self::Opaque(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A field of a struct.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => {
                fields.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// The values of a stream, in order; `what` is what errors call it.
pub fn decode(what: &str, bytes: &[u8]) -> Result<Vec<Value>> {
    let mut stream =
        Stream { what, bytes, at: 0, end: 0, types: HashMap::new(), values: 0, depth: 0 };
    let mut values = Vec::new();
    while stream.at < bytes.len() {
        stream.next_message()?;
        let id = stream.int()?;
        if id < 0 {
            stream.define(id)?;
            stream.expect_end()?;
            continue;
        }
        let value = stream.top(id)?;
        stream.expect_end()?;
        values.push(value);
    }
    Ok(values)
}

/// A type that a stream defines.
#[derive(Debug)]
enum Type {
    Array { element: i64, len: u64 },
    Slice { element: i64 },
    Struct { fields: Vec<(Arc<str>, i64)> },
    Map { key: i64, element: i64 },
    Opaque,
}

struct Stream<'a> {
    what: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The end of the message.
    end: usize,
    types: HashMap<i64, Arc<Type>>,
    values: usize,
    depth: usize,
}

impl<'a> Stream<'a> {
    fn corrupt(&self, expected: &str, found: impl Into<String>) -> Error {
        Error::Corrupt {
            file: self.what.to_owned(),
            what: format!("gob at byte {}", self.at),
            expected: expected.to_owned(),
            found: found.into(),
        }
    }

    /// Takes the length of the next message.
    fn next_message(&mut self) -> Result<()> {
        self.end = self.bytes.len();
        let length = self.uint()?;
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        self.end = end
            .filter(|end| *end <= self.bytes.len())
            .ok_or_else(|| self.corrupt("a message", format!("one of {length} bytes, cut off")))?;
        Ok(())
    }

    fn expect_end(&self) -> Result<()> {
        if self.at == self.end {
            return Ok(());
        }
        Err(self.corrupt("the end of a message", format!("{} bytes more", self.end - self.at)))
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken = end.filter(|end| *end <= self.end).and_then(|end| self.bytes.get(self.at..end));
        let Some(taken) = taken else {
            return Err(self.corrupt(&format!("{count} bytes"), "the end of a message"));
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn uint(&mut self) -> Result<u64> {
        let first = self.take(1)?.first().copied().unwrap_or_default();
        if first < 128 {
            return Ok(first.into());
        }
        let count = 256 - u64::from(first);
        if count > 8 {
            return Err(self.corrupt("an integer of at most 8 bytes", format!("{count}")));
        }
        Ok(self.take(count)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn int(&mut self) -> Result<i64> {
        let raw = self.uint()?;
        let half = (raw >> 1) as i64;
        Ok(if raw & 1 == 1 { !half } else { half })
    }

    fn float(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.uint()?.swap_bytes()))
    }

    fn text(&mut self) -> Result<String> {
        let len = self.uint()?;
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    /// A count of things that take a byte each at least.
    fn count(&mut self) -> Result<usize> {
        let count = self.uint()?;
        let left = self.end.saturating_sub(self.at);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= left)
            .ok_or_else(|| self.corrupt(&format!("at most {left} elements"), format!("{count}")))
    }

    /// A value that stands alone: all but structs have a zero before them.
    fn top(&mut self, id: i64) -> Result<Value> {
        if !matches!(self.types.get(&id).map(|kind| &**kind), Some(Type::Struct { .. })) {
            let delta = self.uint()?;
            if delta != 0 {
                return Err(self.corrupt("a value that stands alone", format!("field {delta}")));
            }
        }
        self.value(id)
    }

    fn value(&mut self, id: i64) -> Result<Value> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(self.corrupt(&format!("at most {VALUES_MAX} values"), "more"));
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.corrupt(&format!("values at most {DEPTH_MAX} deep"), "deeper ones"));
        }
        let value = match id {
            BOOL => Value::Bool(self.uint()? != 0),
            INT => Value::Int(self.int()?),
            UINT => Value::Uint(self.uint()?),
            FLOAT => Value::Float(self.float()?),
            COMPLEX => Value::Complex(self.float()?, self.float()?),
            BYTES => {
                let len = self.uint()?;
                Value::Bytes(self.take(len)?.to_vec())
            }
            STRING => Value::String(self.text()?),
            INTERFACE => self.interface()?,
            _ => self.defined(id)?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn defined(&mut self, id: i64) -> Result<Value> {
        let Some(kind) = self.types.get(&id).cloned() else {
            return Err(self.corrupt("a known type", format!("type {id}")));
        };
        match &*kind {
            Type::Opaque => {
                let len = self.uint()?;
                Ok(Value::Opaque(self.take(len)?.to_vec()))
            }
            Type::Array { element, len } => {
                let count = self.count()?;
                if count as u64 != *len {
                    return Err(self.corrupt(&format!("{len} elements"), format!("{count}")));
                }
                self.list(*element, count)
            }
            Type::Slice { element } => {
                let count = self.count()?;
                self.list(*element, count)
            }
            Type::Map { key, element } => {
                let count = self.count()?;
                let mut pairs = Vec::new();
                for _ in 0..count {
                    pairs.push((self.value(*key)?, self.value(*element)?));
                }
                Ok(Value::Map(pairs))
            }
            Type::Struct { fields } => {
                let mut values = Vec::new();
                while let Some(number) = self.next_field(&values_at(&values))? {
                    let Some((name, id)) = fields.get(number) else {
                        return Err(self.corrupt(
                            &format!("{} fields", fields.len()),
                            format!("field {number}"),
                        ));
                    };
                    values.push((number, name.clone(), self.value(*id)?));
                }
                let named = values.into_iter().map(|(_, name, value)| (name, value));
                Ok(Value::Struct(named.collect()))
            }
        }
    }

    /// The number of the next field of a struct, given the one before; `None` at its end.
    fn next_field(&mut self, before: &Option<usize>) -> Result<Option<usize>> {
        let delta = self.uint()?;
        if delta == 0 {
            return Ok(None);
        }
        let delta = usize::try_from(delta).ok();
        let number = match before {
            None => delta.map(|delta| delta - 1),
            Some(before) => delta.and_then(|delta| before.checked_add(delta)),
        };
        number.map(Some).ok_or_else(|| self.corrupt("a field", "one far away"))
    }

    fn list(&mut self, element: i64, count: usize) -> Result<Value> {
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(element)?);
        }
        Ok(Value::List(values))
    }

    /// A name, the id of a type, which may have to be defined first, a length, and a value that stands alone.
    fn interface(&mut self) -> Result<Value> {
        if self.text()?.is_empty() {
            return Ok(Value::Nil);
        }
        loop {
            if self.at == self.end {
                self.next_message()?;
            }
            let id = self.int()?;
            if id >= 0 {
                self.uint()?;
                return self.top(id);
            }
            self.define(id)?;
            if self.at < self.end {
                self.uint()?;
            }
        }
    }

    /// Reads the definition of a type: a struct in which one field is set, which says the kind of type.
    fn define(&mut self, negative: i64) -> Result<()> {
        let id = negative.checked_neg().filter(|id| *id > INTERFACE);
        let Some(id) = id.filter(|_| self.types.len() < TYPES_MAX) else {
            return Err(self.corrupt("the definition of a type", format!("type {negative}")));
        };
        let mut kind = None;
        let mut before = None;
        while let Some(field) = self.next_field(&before)? {
            kind = Some(match field {
                0 => self.array_type()?,
                1 => {
                    let (_, numbers) = self.parts(2)?;
                    Type::Slice { element: number(&numbers, 1) }
                }
                2 => Type::Struct { fields: self.fields()? },
                3 => {
                    let (_, numbers) = self.parts(3)?;
                    Type::Map { key: number(&numbers, 1), element: number(&numbers, 2) }
                }
                4..=6 => {
                    self.parts(1)?;
                    Type::Opaque
                }
                _ => return Err(self.corrupt("a kind of type", format!("kind {field}"))),
            });
            before = Some(field);
        }
        let kind = kind.ok_or_else(|| self.corrupt("a kind of type", "none"))?;
        self.types.insert(id, Arc::new(kind));
        Ok(())
    }

    fn array_type(&mut self) -> Result<Type> {
        let (_, numbers) = self.parts(3)?;
        let len = u64::try_from(number(&numbers, 2)).unwrap_or_default();
        Ok(Type::Array { element: number(&numbers, 1), len })
    }

    /// A struct of which field 0 is the common part, with a name and an id, and all others are integers.
    fn parts(&mut self, fields: usize) -> Result<(String, Vec<(usize, i64)>)> {
        let (mut name, mut numbers, mut before) = (String::new(), Vec::new(), None);
        while let Some(field) = self.next_field(&before)? {
            match field {
                0 => name = self.common()?,
                _ if field < fields => numbers.push((field, self.int()?)),
                _ => return Err(self.corrupt("the parts of a type", format!("part {field}"))),
            }
            before = Some(field);
        }
        Ok((name, numbers))
    }

    /// The name and the id of a type.
    fn common(&mut self) -> Result<String> {
        let (mut name, mut before) = (String::new(), None);
        while let Some(field) = self.next_field(&before)? {
            match field {
                0 => name = self.text()?,
                1 => {
                    self.int()?;
                }
                _ => return Err(self.corrupt("the name of a type", format!("part {field}"))),
            }
            before = Some(field);
        }
        Ok(name)
    }

    /// The names and types of the fields of a struct.
    fn fields(&mut self) -> Result<Vec<(Arc<str>, i64)>> {
        let (mut fields, mut before) = (Vec::new(), None);
        while let Some(part) = self.next_field(&before)? {
            match part {
                0 => {
                    self.common()?;
                }
                1 => {
                    let count = self.count()?;
                    if count > TYPES_MAX {
                        return Err(self.corrupt("a struct", format!("one of {count} fields")));
                    }
                    for _ in 0..count {
                        fields.push(self.field()?);
                    }
                }
                _ => return Err(self.corrupt("the parts of a struct", format!("part {part}"))),
            }
            before = Some(part);
        }
        Ok(fields)
    }

    fn field(&mut self) -> Result<(Arc<str>, i64)> {
        let (mut name, mut id, mut before) = (String::new(), 0, None);
        while let Some(part) = self.next_field(&before)? {
            match part {
                0 => name = self.text()?,
                1 => id = self.int()?,
                _ => return Err(self.corrupt("the parts of a field", format!("part {part}"))),
            }
            before = Some(part);
        }
        Ok((name.into(), id))
    }
}

fn values_at(values: &[(usize, Arc<str>, Value)]) -> Option<usize> {
    values.last().map(|(number, _, _)| *number)
}

fn number(numbers: &[(usize, i64)], field: usize) -> i64 {
    numbers.iter().find(|(known, _)| *known == field).map_or(0, |(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two structs and a number, as Go writes them. `P` is `[2]int32`, registered as `p.P`:
    /// `T{A: -3, B: "hi", C: []uint{1, 300}, D: map[string]any{"k": P{-64, 65}}, F: 1.5, G: []byte{7}, H: true, I: 1+2i}`,
    /// `T{E: T{A: 1, E: P{1, 2}}}` and `uint(9)`.
    const STREAM: &str = "467f030101015401ff80000109010141010400010142010c0001014301ff820001014401\
        ff8400010145011000010146010800010147010a00010148010200010149010e00000014ff81020101065b5d7569\
        6e7401ff82000106000027ff83040101176d61705b737472696e675d696e74657266616365207b7d01ff8400010c\
        0110000027ff80010501026869010201fe012c0101016b03702e50ff85010101015001ff86000104010400001\
        7ff860500027fff8202fef83f010107010101fef03f40001aff800503712e51ff800f01020403702e50ff860400\
        020204000003060009";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    #[test]
    fn values_of_basic_types_stand_alone() {
        let values =
            decode("test", &bytes("03060001 050c0002 6869 03020001 04040005")).unwrap_err();
        assert!(values.to_string().contains("gob"), "{values}");
        let values = decode("test", &bytes("03060001 050c00026869 03020001 03040005")).unwrap();
        let expected =
            [Value::Uint(1), Value::String("hi".into()), Value::Bool(true), Value::Int(-3)];
        assert_eq!(values, expected);
    }

    #[test]
    fn structs_maps_and_values_of_any_type_are_read() {
        let values = decode("test", &bytes(STREAM)).unwrap();
        let [first, second, Value::Uint(9)] = values.as_slice() else { panic!("{values:?}") };
        assert_eq!(first.field("A"), Some(&Value::Int(-3)));
        assert_eq!(first.field("B").and_then(Value::as_str), Some("hi"));
        assert_eq!(first.field("C"), Some(&Value::List(vec![Value::Uint(1), Value::Uint(300)])));
        let point = |a, b| Value::List(vec![Value::Int(a), Value::Int(b)]);
        let pair = (Value::String("k".into()), point(-64, 65));
        assert_eq!(first.field("D"), Some(&Value::Map(vec![pair])));
        assert_eq!(first.field("E"), None);
        assert_eq!(first.field("F"), Some(&Value::Float(1.5)));
        assert_eq!(first.field("G"), Some(&Value::Bytes(vec![7])));
        assert_eq!(first.field("H"), Some(&Value::Bool(true)));
        assert_eq!(first.field("I"), Some(&Value::Complex(1.0, 2.0)));
        let inner = second.field("E").unwrap();
        assert_eq!(inner.field("A"), Some(&Value::Int(1)));
        assert_eq!(inner.field("E"), Some(&point(1, 2)));
    }

    #[test]
    fn every_cut_of_a_stream_is_an_error_or_a_shorter_stream() {
        let whole = bytes(STREAM);
        for end in 0..whole.len() {
            let _ = decode("test", &whole[..end]);
        }
    }

    /// Each value of a struct would otherwise have its own copy of a name of any length.
    #[test]
    fn values_of_a_type_share_the_names_of_its_fields() {
        let name = "n".repeat(1 << 16);
        let number = |value: usize| match value {
            0..128 => vec![value as u8],
            _ => [&[0xfd][..], &(value as u32).to_be_bytes()[1..]].concat(),
        };
        let message = |body: &[u8]| [&number(body.len())[..], body].concat();
        // Type 65 is a struct of one uint with that name; type 66 is a list of them.
        let field = [&[1, 1][..], &number(name.len()), name.as_bytes(), &[1, 0x06, 0]].concat();
        let kind = [&[0xff, 0x81, 3, 1, 2, 0xff, 0x82, 0, 1][..], &field, &[0, 0]].concat();
        let list = [0xff, 0x83, 2, 1, 2, 0xff, 0x84, 0, 1, 0xff, 0x82, 0, 0];
        let count = 1000;
        let values = [1, 7, 0].repeat(count);
        let values = [&[0xff, 0x84, 0][..], &number(count), &values].concat();
        let stream = [message(&kind), message(&list), message(&values)].concat();
        let decoded = decode("test", &stream).unwrap();
        let all = decoded[0].as_list().unwrap();
        assert_eq!((decoded.len(), all.len()), (1, count));
        let name_of = |value: &Value| match value {
            Value::Struct(fields) => fields[0].0.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!((&*name_of(&all[0]), all[0].field(&name)), (&*name, Some(&Value::Uint(7))));
        assert!(all.iter().all(|value| Arc::ptr_eq(&name_of(value), &name_of(&all[0]))));
    }

    #[test]
    fn a_length_that_is_not_there_is_refused() {
        for hex in ["f8ffffffffffffffff", "7f", "0c0c00f8ffffffffffffffff", "ff"] {
            assert!(decode("test", &bytes(hex)).is_err(), "{hex}");
        }
    }
}
