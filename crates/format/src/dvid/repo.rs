//! What DVID knows about a repository: its versions, and the data in it.
//!
//! It is read from the store itself, where it is a [gob](super::gob), or from the answer of the server to
//! `GET /api/repos/info`, which a user may keep beside a store.

use chunkyard_array::codec::label_block::value;
use chunkyard_store::{Error, Result};
use serde::Serialize;
use serde_json::Value as Json;

use super::dag::{Dag, VersionNode};
use super::gob::{self, Value};

/// The type of data that holds segmentations.
pub const LABELMAP: &str = "labelmap";
/// Bytes of the metadata of one repository.
const REPO_BYTES_MAX: usize = 256 << 20;
/// Seconds from the year 1, where Go's times begin, to 1970.
const EPOCH_SECONDS: i64 = 62_135_596_800;
/// A block of a labelmap that says nothing else.
const BLOCK_EDGE: u32 = 64;

/// A repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Repo {
    /// The UUID of its first version.
    pub root: String,
    /// Its name for people.
    pub alias: String,
    /// Its versions.
    pub dag: Dag,
    /// The data in it.
    pub instances: Vec<Instance>,
}

/// Data of a repository: a name with a type, in all versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_name: String,
    /// Its number in keys, if the metadata says it.
    pub id: Option<u32>,
    /// Its UUID, by which mutation logs are named.
    pub data_uuid: String,
    /// Voxels of a block along z, y, x.
    pub block: [u32; 3],
    /// Size of a voxel along z, y, x.
    pub voxel_size: Option<[f64; 3]>,
    /// The unit of the size of a voxel.
    pub unit: Option<String>,
    /// The coarsest scale.
    pub scale_max: Option<u8>,
}

impl Instance {
    /// Whether it holds a segmentation.
    pub fn is_labelmap(&self) -> bool {
        self.type_name == LABELMAP
    }
}

impl Repo {
    /// Reads the stored value of a repository; `what` is what errors call it.
    pub fn parse_value(what: &str, bytes: &[u8]) -> Result<Self> {
        let plain = value::unwrap(bytes, REPO_BYTES_MAX)?;
        Self::parse_gob(what, &plain)
    }

    /// Reads the gob of a repository.
    pub fn parse_gob(what: &str, bytes: &[u8]) -> Result<Self> {
        let missing = |what: &str, part: &str| Error::Corrupt {
            file: what.to_owned(),
            what: "repository".into(),
            expected: part.to_owned(),
            found: "a gob without it".into(),
        };
        let outer = gob::decode(what, bytes)?;
        let inner = outer.first().and_then(Value::as_opaque);
        let parts = gob::decode(what, inner.ok_or_else(|| missing(what, "a repository"))?)?;
        // Its number, root, alias, description, log, properties, two times; then data and versions.
        let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
        let &[root, alias, ..] = texts.as_slice() else {
            return Err(missing(what, "a root and an alias"));
        };
        let dag = parts
            .iter()
            .filter_map(Value::as_opaque)
            .filter_map(|part| gob::decode(what, part).ok())
            .find_map(|part| match part.as_slice() {
                [Value::String(_), Value::Map(versions), ..] => Some(versions.clone()),
                _ => None,
            })
            .ok_or_else(|| missing(what, "versions"))?;
        let mut nodes = Vec::with_capacity(dag.len());
        for (id, version) in &dag {
            let parts = version.as_opaque().map(|bytes| gob::decode(what, bytes)).transpose()?;
            let node = id.as_uint().and_then(|id| node_of(id, &parts.unwrap_or_default()));
            nodes.push(node.ok_or_else(|| missing(what, "the parts of a version"))?);
        }
        // The properties of a repository are a map too, but never of data.
        let data = parts.iter().filter_map(Value::as_map);
        let instances = data
            .flatten()
            .filter_map(|(name, data)| instance_of(what, name.as_str()?, data.as_opaque()?))
            .collect();
        Ok(Self {
            root: root.to_owned(),
            alias: alias.to_owned(),
            dag: Dag::new(what, nodes)?,
            instances,
        })
    }

    /// Reads the answer to `GET /api/repos/info`; `what` is what errors call it.
    pub fn parse_json(what: &str, bytes: &[u8]) -> Result<Vec<Self>> {
        let corrupt = |found: String| Error::Corrupt {
            file: what.to_owned(),
            what: "repositories".into(),
            expected: "the answer of DVID to GET /api/repos/info".into(),
            found,
        };
        let json: Json =
            serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        let Json::Object(repos) = json else { return Err(corrupt("no object".into())) };
        let mut found = Vec::new();
        for (root, repo) in repos {
            let nodes = repo.get("DAG").and_then(|dag| dag.get("Nodes")).and_then(Json::as_object);
            let Some(nodes) = nodes else { return Err(corrupt(format!("{root} has no DAG"))) };
            let nodes: Option<Vec<VersionNode>> = nodes.values().map(json_node).collect();
            let nodes =
                nodes.ok_or_else(|| corrupt(format!("a version of {root} lacks a part")))?;
            let data = repo.get("DataInstances").and_then(Json::as_object);
            let instances =
                data.into_iter().flatten().filter_map(|(name, data)| json_instance(name, data));
            found.push(Self {
                alias: text(&repo, "Alias").unwrap_or_default(),
                dag: Dag::new(what, nodes)?,
                instances: instances.collect(),
                root,
            });
        }
        Ok(found)
    }

    /// The instance that a user names; with nothing, the only labelmap.
    pub fn labelmap(&self, name: Option<&str>) -> Result<&Instance> {
        let labelmaps: Vec<&Instance> =
            self.instances.iter().filter(|instance| instance.is_labelmap()).collect();
        let names: Vec<&str> = labelmaps.iter().map(|instance| instance.name.as_str()).collect();
        match name {
            Some(name) => {
                labelmaps.iter().find(|known| known.name == name).copied().ok_or_else(|| {
                    Error::invalid(format!(
                        "there is no labelmap {name:?}; there are: {}",
                        names.join(", ")
                    ))
                })
            }
            None => match labelmaps.as_slice() {
                [one] => Ok(one),
                [] => Err(Error::invalid("there is no labelmap in this repository")),
                _ => Err(Error::invalid(format!(
                    "name one of the labelmaps by data=: {}",
                    names.join(", ")
                ))),
            },
        }
    }
}

/// Note, log, data that is available, UUID, number, locked, parents, children, two times, branch.
fn node_of(id: u64, parts: &[Value]) -> Option<VersionNode> {
    let [note, _, _, uuid, number, locked, parents, _, created, updated, rest @ ..] = parts else {
        return None;
    };
    if number.as_uint() != Some(id) {
        return None;
    }
    let parent = |parent: &Value| u32::try_from(parent.as_uint()?).ok();
    Some(VersionNode {
        id: u32::try_from(id).ok()?,
        uuid: uuid.as_str()?.to_owned(),
        parents: parents.as_list()?.iter().map(parent).collect::<Option<_>>()?,
        branch: rest.first().and_then(Value::as_str).unwrap_or_default().to_owned(),
        note: note.as_str()?.to_owned(),
        created_ms: created.as_opaque().and_then(time_ms),
        updated_ms: updated.as_opaque().and_then(time_ms),
        locked: locked.as_bool()?,
    })
}

/// A time of Go: a version, seconds since the year 1, nanoseconds, minutes from Greenwich.
fn time_ms(bytes: &[u8]) -> Option<i64> {
    let (_, rest) = bytes.split_first()?;
    let (seconds, rest) = rest.split_first_chunk::<8>()?;
    let (nanos, _) = rest.split_first_chunk::<4>()?;
    let seconds = i64::from_be_bytes(*seconds).checked_sub(EPOCH_SECONDS)?;
    seconds.checked_mul(1000)?.checked_add(i64::from(i32::from_be_bytes(*nanos)) / 1_000_000)
}

/// Data of a type that this knows nothing of may be encoded in any way: it is left out.
fn instance_of(what: &str, name: &str, bytes: &[u8]) -> Option<Instance> {
    let parts = gob::decode(what, bytes).ok()?;
    let own = parts.iter().rev().find_map(Value::as_uint);
    // A labelmap wraps an image, and that wraps what all data has.
    let mut level = parts;
    let mut properties = None;
    for _ in 0..4 {
        if let [Value::String(type_name), _, _, Value::String(known), Value::Uint(id), ..] =
            level.as_slice()
        {
            if known != name {
                return None;
            }
            let uuid = level.get(10).and_then(Value::as_str).unwrap_or_default();
            let mut instance = Instance {
                name: name.to_owned(),
                type_name: type_name.clone(),
                id: u32::try_from(*id).ok(),
                data_uuid: uuid.to_owned(),
                block: [BLOCK_EDGE; 3],
                voxel_size: None,
                unit: None,
                scale_max: own.and_then(|scale| u8::try_from(scale).ok()),
            };
            if let Some(properties) = &properties {
                describe(&mut instance, properties);
            }
            return Some(instance);
        }
        properties = properties
            .or_else(|| level.iter().find(|part| matches!(part, Value::Struct(_))).cloned());
        let deeper = level.first().and_then(Value::as_opaque)?;
        level = gob::decode(what, deeper).ok()?;
    }
    None
}

fn describe(instance: &mut Instance, properties: &Value) {
    if let Some([Value::Int(x), Value::Int(y), Value::Int(z)]) =
        properties.field("BlockSize").and_then(Value::as_list)
        && let [Ok(z), Ok(y), Ok(x)] = [*z, *y, *x].map(u32::try_from)
    {
        instance.block = [z, y, x];
    }
    let Some(resolution) = properties.field("Resolution") else { return };
    if let Some([Value::Float(x), Value::Float(y), Value::Float(z)]) =
        resolution.field("VoxelSize").and_then(Value::as_list)
    {
        instance.voxel_size = sizes([*z, *y, *x]);
    }
    let units = resolution.field("VoxelUnits").and_then(Value::as_list).unwrap_or_default();
    let units: Vec<&str> = units.iter().filter_map(Value::as_str).collect();
    instance.unit = one_unit(&units);
}

/// A size that a voxel can have.
fn sizes(sizes: [f64; 3]) -> Option<[f64; 3]> {
    sizes.iter().all(|size| size.is_finite() && *size > 0.0).then_some(sizes)
}

/// The unit of all axes, in the words of OME.
fn one_unit(units: &[&str]) -> Option<String> {
    let first = *units.first()?;
    let same = units.iter().all(|unit| *unit == first) && !first.is_empty();
    same.then(|| match first {
        "nanometers" => "nanometer".to_owned(),
        "micrometers" | "microns" => "micrometer".to_owned(),
        "millimeters" => "millimeter".to_owned(),
        other => other.to_owned(),
    })
}

fn text(json: &Json, name: &str) -> Option<String> {
    json.get(name)?.as_str().map(str::to_owned)
}

fn json_node(json: &Json) -> Option<VersionNode> {
    let id = |id: &Json| u32::try_from(id.as_u64()?).ok();
    let time = |name: &str| {
        let time: jiff::Timestamp = text(json, name)?.parse().ok()?;
        Some(time.as_millisecond())
    };
    let parents = json.get("Parents").and_then(Json::as_array).map(Vec::as_slice);
    Some(VersionNode {
        id: id(json.get("VersionID")?)?,
        uuid: text(json, "UUID")?,
        parents: parents.unwrap_or_default().iter().map(id).collect::<Option<_>>()?,
        branch: text(json, "Branch").unwrap_or_default(),
        note: text(json, "Note").unwrap_or_default(),
        created_ms: time("Created"),
        updated_ms: time("Updated"),
        locked: json.get("Locked").and_then(Json::as_bool).unwrap_or_default(),
    })
}

fn json_instance(name: &str, json: &Json) -> Option<Instance> {
    let base = json.get("Base")?;
    let extended = json.get("Extended");
    let list = |name: &str| extended?.get(name)?.as_array();
    let block = list("BlockSize").and_then(|sizes| {
        let size = |size: &Json| u32::try_from(size.as_u64()?).ok();
        let sizes: Option<Vec<u32>> = sizes.iter().map(size).collect();
        <[u32; 3]>::try_from(sizes?).ok()
    });
    let voxel = list("VoxelSize").and_then(|sizes| {
        let sizes: Option<Vec<f64>> = sizes.iter().map(Json::as_f64).collect();
        <[f64; 3]>::try_from(sizes?).ok()
    });
    let units: Vec<&str> =
        list("VoxelUnits").into_iter().flatten().filter_map(Json::as_str).collect();
    let scale = extended.and_then(|extended| extended.get("MaxDownresLevel"));
    let reversed = |[x, y, z]: [f64; 3]| [z, y, x];
    Some(Instance {
        name: name.to_owned(),
        type_name: text(base, "TypeName")?,
        id: None,
        data_uuid: text(base, "DataUUID").unwrap_or_default(),
        block: block.map_or([BLOCK_EDGE; 3], |[x, y, z]| [z, y, x]),
        voxel_size: voxel.map(reversed).and_then(sizes),
        unit: one_unit(&units),
        scale_max: scale.and_then(Json::as_u64).and_then(|scale| u8::try_from(scale).ok()),
    })
}
