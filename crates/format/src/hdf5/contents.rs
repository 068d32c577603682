//! The content of a file: groups and arrays with their metadata, and everything that could not be
//! taken along.

use std::collections::HashMap;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use hdf5_reader::{Hdf5File, RawAttribute};

use super::attributes::{self, find};
use super::dimensions::{Scales, is_mere_dimension};
use super::metadata::{Chunks, Description};
use super::tree::{self, NamedObject};
use crate::Loss;

/// How netCDF names a variable that is called like a dimension but is not its coordinate.
const NOT_A_COORDINATE: &str = "_nc4_non_coord_";

/// The loss of attributes that JSON cannot express.
const ATTRIBUTES: &str = "attributes";

/// The groups and arrays of a file.
#[derive(Debug)]
pub(super) struct Contents {
    /// By path, `/` first.
    pub(super) groups: Vec<(String, GroupSpec)>,
    pub(super) arrays: Vec<Array>,
    /// Everything that is in neither.
    pub(super) losses: Vec<Loss>,
}

/// A dataset that is an array.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) path: String,
    /// The dataset's path in the file, without soft links.
    pub(super) hard_path: String,
    pub(super) spec: ArraySpec,
    /// The path in the file of the scale of each axis.
    pub(super) scales: Vec<Option<String>>,
    pub(super) chunks: Chunks,
}

/// Reads everything but the data.
pub(super) fn read(file: &Hdf5File) -> Result<Contents, String> {
    let tree = tree::walk(file).map_err(|cause| cause.to_string())?;
    let mut reading = Reading { file, losses: tree.losses, scales: Scales::default() };

    let groups: Vec<_> = tree
        .groups
        .into_iter()
        .map(|place| {
            let stored = file.group(&place.path).and_then(|group| group.raw_attributes());
            let stored = stored.unwrap_or_else(|cause| reading.no_attributes(&place, &cause));
            (place, stored)
        })
        .collect();
    let mut attributes = HashMap::new();
    for place in &tree.datasets {
        if place.path == place.hard_path {
            let stored = file.dataset(&place.path).and_then(|dataset| dataset.raw_attributes());
            let stored = stored.unwrap_or_else(|cause| reading.no_attributes(place, &cause));
            reading.scales.note(place.address, &place.path, &stored);
            attributes.insert(place.address, stored);
        }
    }
    let is_netcdf = groups.iter().any(|(_, stored)| find(stored, "_NCProperties").is_some())
        || attributes.values().any(|stored| find(stored, "_Netcdf4Dimid").is_some());

    let groups: Vec<_> = groups
        .into_iter()
        .map(|(place, stored)| {
            let attributes = reading.attributes(&place, &stored, is_netcdf);
            (place.path, GroupSpec::new(attributes))
        })
        .collect();
    let mut arrays = Vec::new();
    for place in tree.datasets {
        let stored = attributes.get(&place.address).map(Vec::as_slice).unwrap_or_default();
        if is_netcdf && is_mere_dimension(stored) {
            continue;
        }
        match reading.array(&place, stored, is_netcdf) {
            Ok(array) => arrays.push(array),
            Err(what) => reading.losses.push(Loss { name: place.path.clone(), what }),
        }
    }
    if is_netcdf {
        restore_names(&mut arrays, &groups);
    }
    arrays.sort_by(|a, b| a.path.cmp(&b.path));
    reading.losses.sort_by(|a, b| (&a.name, &a.what).cmp(&(&b.name, &b.what)));
    Ok(Contents { groups, arrays, losses: reading.losses })
}

struct Reading<'a> {
    file: &'a Hdf5File,
    losses: Vec<Loss>,
    scales: Scales,
}

impl Reading<'_> {
    fn array(
        &mut self,
        place: &NamedObject,
        stored: &[RawAttribute],
        is_netcdf: bool,
    ) -> Result<Array, String> {
        let said = |cause: hdf5_reader::error::Error| cause.to_string();
        let header = self.file.get_or_parse_header(place.address).map_err(said)?;
        let description = Description::of(place.address, &header);
        let dataset = self.file.dataset(&place.hard_path).map_err(said)?;
        let raw_datatype = dataset.raw_datatype().map_err(said)?;
        let resolve = |reference: &[u8], bytes: usize| {
            dataset.resolve_vlen_reference_bytes(reference, bytes).map_err(said)
        };
        let (rank, name) = (description.rank(), name_of(&place.hard_path));
        let scales = self.scales.attached(stored, &resolve);
        let names = self.scales.names(name, rank, stored, &scales, &resolve);
        let attributes = self.attributes(place, stored, is_netcdf);
        let (spec, chunks) = description.array(self.file, &raw_datatype, names, attributes)?;
        let (path, hard_path) = (place.path.clone(), place.hard_path.clone());
        Ok(Array { path, hard_path, spec, scales, chunks })
    }

    fn attributes(
        &mut self,
        place: &NamedObject,
        stored: &[RawAttribute],
        is_netcdf: bool,
    ) -> Attributes {
        let root = self.file.root_group();
        let resolve = |reference: &[u8], bytes: usize| {
            let root = root.as_ref().map_err(ToString::to_string)?;
            root.resolve_vlen_reference_bytes(reference, bytes).map_err(|cause| cause.to_string())
        };
        let (attributes, lost) = attributes::read(stored, &resolve, is_netcdf);
        for what in lost {
            self.lose_attribute(place, &what);
        }
        attributes
    }

    fn no_attributes(
        &mut self,
        place: &NamedObject,
        cause: &hdf5_reader::error::Error,
    ) -> Vec<RawAttribute> {
        self.lose_attribute(place, &format!("its attributes cannot be read: {cause}"));
        Vec::new()
    }

    fn lose_attribute(&mut self, place: &NamedObject, what: &str) {
        let what = format!("{}: {what}", place.path);
        self.losses.push(Loss { name: ATTRIBUTES.to_owned(), what });
    }
}

/// Gives variables the names they have in netCDF, where that name is free.
fn restore_names(arrays: &mut [Array], groups: &[(String, GroupSpec)]) {
    for at in 0..arrays.len() {
        let Some(path) = arrays.get(at).map(|array| array.path.clone()) else { continue };
        let (group, name) = path.rsplit_once('/').unwrap_or_default();
        let Some(name) = name.strip_prefix(NOT_A_COORDINATE) else { continue };
        let restored = format!("{group}/{name}");
        let taken = arrays.iter().any(|array| array.path == restored)
            || groups.iter().any(|(path, _)| *path == restored);
        if let Some(array) = arrays.get_mut(at).filter(|_| !taken && !name.is_empty()) {
            array.path = restored;
        }
    }
}

/// The last component of a path.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
