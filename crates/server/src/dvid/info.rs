//! What is said about a labelmap: `info` and `metadata`, in the words of DVID.

use axum::extract::{Path, State as Shared};
use axum::response::Response;
use chunkyard_engine::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::address::{Address, Holder, data_name, resolve};
use super::answer;
use super::ask::turned;
use super::segmentation::{At, Frame, Segmentation};
use crate::State;
use crate::http::Failure;

/// `GET info`.
pub(super) async fn get_info(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let address = resolve(&state, &uuid, &data).await?;
    let root = root(&address).await?;
    let seg = Segmentation::open(&state, &address).await?;
    let mut info = describe(&address, &root, seg.frame());
    info["Extended"]["MaxRepoLabel"] = json!(seg.greatest_id().await?);
    Ok(answer::json(info.to_string()))
}

/// `GET metadata`.
pub(super) async fn get_metadata(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    let frame = seg.frame();
    let properties = properties(frame);
    let axis = |(number, name): (usize, &str)| {
        let axis = 2 - number;
        json!({
            "Label": name,
            "Resolution": frame.voxel_size[axis],
            "Units": units(frame),
            "Size": frame.voxels.1[axis] - frame.voxels.0[axis],
            "Offset": frame.voxels.0[axis],
        })
    };
    let axes: Vec<Value> = ["X", "Y", "Z"].into_iter().enumerate().map(axis).collect();
    Ok(answer::json(json!({ "Axes": axes, "Properties": properties }).to_string()))
}

/// The first version of the repository of an address.
async fn root(address: &Address) -> Result<String> {
    match &address.holder {
        Holder::Repository(session) => {
            let known = session.repository().state().await?;
            Ok(known.snapshots.first().map(|first| first.snapshot_id.clone()).unwrap_or_default())
        }
        Holder::Store { store, version, .. } => {
            let has = |repo: &&chunkyard_engine::format::dvid::Repo| {
                repo.dag.get(*version).is_some_and(|node| node.uuid == address.version)
            };
            Ok(store.repos().iter().find(has).map(|repo| repo.root.clone()).unwrap_or_default())
        }
    }
}

/// What DVID says about data.
pub(super) fn describe(address: &Address, root: &str, frame: &Frame) -> Value {
    let data_uuid = match &address.holder {
        Holder::Store { instance, .. } => instance.data_uuid.clone(),
        // The same at every version, and different in every repository.
        Holder::Repository(session) => {
            let of = format!("{} {}", session.repository().dataset_id(), address.path);
            Sha256::digest(of).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
        }
    };
    let mut extended = properties(frame);
    if let Some(extended) = extended.as_object_mut() {
        let coarsest = frame.scales.len().saturating_sub(1);
        extended.insert("MaxLabel".to_owned(), json!({}));
        extended.insert("MaxRepoLabel".to_owned(), json!(0));
        extended.insert("NextLabel".to_owned(), json!(0));
        extended.insert("IndexedLabels".to_owned(), json!(true));
        extended.insert("MaxDownresLevel".to_owned(), json!(coarsest));
    }
    let (low, high) = points(frame);
    json!({
        "Base": {
            "TypeName": "labelmap",
            "TypeURL": "github.com/janelia-flyem/dvid/datatype/labelmap",
            "TypeVersion": "0.1",
            "DataUUID": data_uuid,
            "Name": data_name(&address.place, &address.path),
            "RepoUUID": root,
            "Compression": "gzip compression, level -1",
            "Checksum": "No checksum",
            "Syncs": [],
            "Versioned": true,
            "KVStore": "chunkyard",
            "LogStore": "chunkyard",
            "Tags": {},
        },
        "Extended": extended,
        "Extents": { "MinPoint": low, "MaxPoint": high },
    })
}

fn properties(frame: &Frame) -> Value {
    let (low, high) = points(frame);
    let (first, end) = frame.scales.first().copied().unwrap_or_default();
    let last: At = std::array::from_fn(|axis| end[axis] - 1);
    let some = |at: At| if frame.is_empty() { Value::Null } else { json!(turned(at)) };
    let [z, y, x] = frame.voxel_size;
    let [depth, height, width] = frame.block;
    let units = units(frame);
    json!({
        "Values": [{ "DataType": "uint64", "Label": "labelmap" }],
        "Interpolable": false,
        "BlockSize": [width, height, depth],
        "VoxelSize": [x, y, z],
        "VoxelUnits": [units, units, units],
        "MinPoint": low,
        "MaxPoint": high,
        "MinIndex": some(first),
        "MaxIndex": some(last),
        "Background": 0,
        "GridStore": "",
        "ScaleLevel": 0,
    })
}

/// The first and the last voxel; nothing if there is none.
fn points(frame: &Frame) -> (Value, Value) {
    let (first, end) = frame.voxels;
    let last: At = std::array::from_fn(|axis| end[axis] - 1);
    match frame.is_empty() {
        true => (Value::Null, Value::Null),
        false => (json!(turned(first)), json!(turned(last))),
    }
}

/// The unit of a voxel's size in the plural, as DVID has it.
fn units(frame: &Frame) -> String {
    match frame.unit.as_deref() {
        None => "nanometers".to_owned(),
        Some(unit) if unit.ends_with("meter") => format!("{unit}s"),
        Some(unit) => unit.to_owned(),
    }
}
