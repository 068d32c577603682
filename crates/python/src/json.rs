//! JSON and Python: numbers keep their value, whatever their size.
//!
//! Values with a Rust type go through [`to_python`] and [`of_python`]. Attributes go through
//! [`attributes`], which also takes numbers that are not finite (`chunkyard_array::non_finite`).

use chunkyard_array::{Attributes, non_finite};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySequence, PySet, PyString,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// How deep lists and objects may be nested; deeper ones could not be read back.
const DEPTH_MAX: usize = 120;

/// A value that Rust serialises, as a Python object.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &(impl Serialize + ?Sized),
) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|error| {
        PyValueError::new_err(format!("this cannot be given to Python: {error}"))
    })?;
    object(py, &value)
}

/// A value that Rust deserialises, from a Python object.
pub(crate) fn of_python<T: DeserializeOwned>(given: &Bound<'_, PyAny>) -> PyResult<T> {
    let value = value(given, 0)?;
    if non_finite::has_any(&value) {
        return Err(PyValueError::new_err(format!("a number that is not finite: {value}")));
    }
    serde_json::from_value(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Attributes that a caller gives.
pub(crate) fn attributes(given: &Bound<'_, PyAny>) -> PyResult<Attributes> {
    match value(given, 0)? {
        Value::Object(attributes) => Ok(attributes),
        other => Err(PyTypeError::new_err(format!("attributes are a mapping, not {other}"))),
    }
}

/// The same for a document that must be finite: metadata of a commit or of a repository.
pub(crate) fn properties(given: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let properties = Value::Object(attributes(given)?);
    if non_finite::has_any(&properties) {
        return Err(PyValueError::new_err(format!("a number that is not finite: {properties}")));
    }
    match properties {
        Value::Object(properties) => Ok(properties),
        _ => Ok(Map::new()),
    }
}

/// A value as a Python object.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => self::number(py, number)?,
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(members) => {
            let dictionary = PyDict::new(py);
            for (key, member) in members {
                dictionary.set_item(key, object(py, member)?)?;
            }
            dictionary.into_any()
        }
    })
}

fn number<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(value) = number.as_i64() {
        return Ok(value.into_pyobject(py)?.into_any());
    }
    if let Some(value) = number.as_u64() {
        return Ok(value.into_pyobject(py)?.into_any());
    }
    let text = number.as_str();
    let whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match whole {
        true => py.get_type::<PyInt>().call1((text,)),
        // As `json.loads` does, even if the number is out of range or not a number.
        false => py.get_type::<PyFloat>().call1((text,)),
    }
}

fn value(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        let what = format!("lists and mappings lie deeper in one another than {DEPTH_MAX} levels");
        return Err(PyValueError::new_err(what));
    }
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = given.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if let Ok(value) = given.cast::<PyInt>() {
        return whole(value);
    }
    if let Ok(value) = given.cast::<PyFloat>() {
        let value = value.value();
        return Ok(Number::from_f64(value).map_or_else(|| non_finite::number(value), Value::Number));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::from(text.to_str()?));
    }
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let mut members = Map::new();
        for member in mapping.items()? {
            let (key, member): (Bound<'_, PyAny>, Bound<'_, PyAny>) = member.extract()?;
            let Ok(key) = key.cast::<PyString>() else {
                let what = format!("the keys of attributes are text, not {}", key.repr()?);
                return Err(PyTypeError::new_err(what));
            };
            members.insert(key.to_str()?.to_owned(), value(&member, depth + 1)?);
        }
        return Ok(Value::Object(members));
    }
    let is_list = given.cast::<PySequence>().is_ok() && !is_bytes(given);
    if is_list || given.cast::<PySet>().is_ok() || given.cast::<PyFrozenSet>().is_ok() {
        let items = given.try_iter()?.map(|item| value(&item?, depth + 1));
        return items.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    let what = format!("JSON has no {}: {}", given.get_type().name()?, given.repr()?);
    Err(PyTypeError::new_err(what))
}

fn is_bytes(given: &Bound<'_, PyAny>) -> bool {
    use pyo3::types::{PyByteArray, PyBytes};
    given.cast::<PyBytes>().is_ok() || given.cast::<PyByteArray>().is_ok()
}

/// A whole number, digit by digit if it is large. Python itself refuses to print very large ones.
fn whole(given: &Bound<'_, PyInt>) -> PyResult<Value> {
    if let Ok(value) = given.extract::<i64>() {
        return Ok(value.into());
    }
    // For a subclass, such as an enumeration, the number and not the name.
    let text = given.call_method0("__int__")?.str()?;
    let number: Number = serde_json::from_str(text.to_str()?)
        .map_err(|error| PyValueError::new_err(format!("{text} is no number: {error}")))?;
    Ok(Value::Number(number))
}
