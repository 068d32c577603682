//! Names of dimensions, from the dimension scales that a dataset refers to.
//!
//! A scale is a dataset; its name is the name of the dimension. NetCDF-4 is built on scales, h5py
//! offers them as `dims`. In the order of trust: a label on the axis, the scale attached to it, the
//! dataset itself if it is a scale of one dimension, and netCDF's numbers of dimensions.

use std::collections::HashMap;

use hdf5_reader::RawAttribute;
use hdf5_reader::messages::datatype::Datatype;
use serde_json::Value;

use super::attributes::{Resolve, find, is_dimension_scale, text_of, value};
use super::contents::name_of;

/// How netCDF marks a dimension that is not a variable as well.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// All scales of a file.
#[derive(Debug, Default)]
pub(super) struct Scales {
    /// The path of every dataset: any of them may be attached.
    by_address: HashMap<u64, String>,
    by_id: HashMap<i64, String>,
}

impl Scales {
    /// Records a dataset, if it is a scale.
    pub(super) fn note(&mut self, address: u64, path: &str, stored: &[RawAttribute]) {
        self.by_address.entry(address).or_insert_with(|| path.to_owned());
        if is_dimension_scale(stored)
            && let Some(id) = numbers(stored, "_Netcdf4Dimid").first()
        {
            self.by_id.entry(*id).or_insert_with(|| name_of(path).to_owned());
        }
    }

    /// The names of the dimensions of a dataset; `None` if no dimension has a name.
    pub(super) fn names(
        &self,
        name: &str,
        rank: usize,
        stored: &[RawAttribute],
        attached: &[Option<String>],
        resolve: &Resolve<'_>,
    ) -> Option<Vec<Option<String>>> {
        let labels = texts(stored, "DIMENSION_LABELS", resolve);
        let numbered = numbers(stored, "_Netcdf4Coordinates");
        let own = (rank == 1 && is_dimension_scale(stored)).then(|| name.to_owned());
        let names: Vec<Option<String>> = (0..rank)
            .map(|axis| {
                let label = labels.get(axis).filter(|label| !label.is_empty());
                let scale = attached.get(axis).and_then(Option::as_deref).map(name_of);
                let number = || numbered.get(axis).and_then(|id| self.by_id.get(id));
                let label = label.map(String::as_str).or(scale).or(own.as_deref());
                label.or_else(|| number().map(String::as_str)).map(str::to_owned)
            })
            .collect();
        names.iter().any(Option::is_some).then_some(names)
    }

    /// The path of the first scale of each axis. HDF5 allows several; netCDF makes the first.
    pub(super) fn attached(
        &self,
        stored: &[RawAttribute],
        resolve: &Resolve<'_>,
    ) -> Vec<Option<String>> {
        let Some(list) = find(stored, "DIMENSION_LIST") else { return Vec::new() };
        let Datatype::VarLen { base, .. } = &list.message().datatype else { return Vec::new() };
        let Datatype::Reference { size, .. } = **base else { return Vec::new() };
        let (data, axes) = (&list.message().raw_data, &list.message().dataspace.dims);
        let Some(&axes) = axes.first().filter(|&&axes| (1..=32).contains(&axes)) else {
            return Vec::new();
        };
        let first = |references: &[u8]| {
            let found = resolve(references, usize::from(size)).ok()?;
            let bytes = found.get(..usize::from(size).min(8))?;
            let address = bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            self.by_address.get(&address).cloned()
        };
        data.chunks_exact((data.len() / axes as usize).max(1)).map(first).collect()
    }
}

/// Whether a dataset only names a dimension, and holds nothing.
pub(super) fn is_mere_dimension(stored: &[RawAttribute]) -> bool {
    is_dimension_scale(stored)
        && text_of(stored, "NAME").is_some_and(|name| name.starts_with(NO_VARIABLE))
}

fn list(stored: &[RawAttribute], name: &str, resolve: &Resolve<'_>) -> Vec<Value> {
    let Some(attribute) = find(stored, name) else { return Vec::new() };
    match value(attribute.message(), attribute.raw_datatype(), resolve) {
        Ok(Value::Array(values)) => values,
        Ok(value) => vec![value],
        Err(_) => Vec::new(),
    }
}

fn numbers(stored: &[RawAttribute], name: &str) -> Vec<i64> {
    let none = |_: &[u8], _: usize| Err(String::new());
    list(stored, name, &none).iter().filter_map(Value::as_i64).collect()
}

fn texts(stored: &[RawAttribute], name: &str, resolve: &Resolve<'_>) -> Vec<String> {
    let values = list(stored, name, resolve);
    values.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect()
}
