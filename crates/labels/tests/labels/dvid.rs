//! The edits of a real DVID, done here, give the mapping, indices and voxels that DVID answered.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use chunkyard_array::codec::label_block::Block;
use chunkyard_labels::dvid_log::{Record, Records};
use chunkyard_labels::{Edit, Labelmap, Layout, Runs};
use chunkyard_repo::{KeyRange, Repository, Version};
use chunkyard_store::{Error, Noun};
use chunkyard_test_support::memory;
use flate2::read::MultiGzDecoder;
use futures::TryStreamExt;
use prost::Message;
use sha2::{Digest, Sha256};

use super::support::{PATH, Voxels, assert_sound, create, edit, import, tip, voxels};

/// Voxels of the volume along z, y, x, and along an edge of a block.
const SHAPE: [u64; 3] = [320, 192, 256];
const EDGE: u64 = 64;
/// The mutation id by which the driver marks its own bulk mapping.
const BULK: u64 = 7;

#[derive(Clone, PartialEq, Message)]
struct LabelIndices {
    #[prost(message, repeated, tag = "1")]
    indices: Vec<LabelIndex>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelIndex {
    #[prost(btree_map = "uint64, message", tag = "1")]
    blocks: BTreeMap<u64, Counts>,
    #[prost(uint64, tag = "2")]
    label: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Counts {
    #[prost(btree_map = "uint64, uint32", tag = "1")]
    counts: BTreeMap<u64, u32>,
}

/// Body to block z, y, x to supervoxel to voxels.
type Index = BTreeMap<u64, BTreeMap<[u32; 3], BTreeMap<u64, u64>>>;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid")
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// The volume before any edit.
fn volume() -> Voxels {
    let stream = std::fs::read(testdata().join("labelmap/edits/volume.blocks")).unwrap();
    let mut labels = vec![0; SHAPE.iter().product::<u64>() as usize];
    let mut rest = &stream[..];
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(head[at * 4..at * 4 + 4].try_into().unwrap());
        let (packed, tail) = tail.split_at(word(3) as usize);
        rest = tail;
        let block = unpacked(packed);
        let mut decoded = vec![0u64; (EDGE * EDGE * EDGE) as usize];
        Block::parse(&block).unwrap().decode_into(&mut decoded).unwrap();
        let [x, y, z] = [0, 1, 2].map(|at| u64::from(word(at)) * EDGE);
        for (row, line) in decoded.chunks_exact(EDGE as usize).enumerate() {
            let (dz, dy) = (row as u64 / EDGE, row as u64 % EDGE);
            let to = (((z + dz) * SHAPE[1] + y + dy) * SHAPE[2] + x) as usize;
            labels[to..to + EDGE as usize].copy_from_slice(line);
        }
    }
    Voxels { shape: SHAPE, labels }
}

/// DVID's answer to `indices` at a version. Positions are 21 bits each, x lowest.
fn answered_index(version: &str) -> Index {
    let file = testdata().join(format!("labelmap/edits/{version}.indices.pb.gz"));
    let answer = LabelIndices::decode(&unpacked(&std::fs::read(file).unwrap())[..]).unwrap();
    let at = |key: u64| [42, 21, 0].map(|shift| (key >> shift & 0xf_ffff) as u32);
    let blocks = |index: &LabelIndex| {
        let counts =
            |counts: &Counts| counts.counts.iter().map(|(id, n)| (*id, (*n).into())).collect();
        index.blocks.iter().map(|(key, found)| (at(*key), counts(found))).collect()
    };
    let there = answer.indices.iter().filter(|index| !index.blocks.is_empty());
    there.map(|index| (index.label, blocks(index))).collect()
}

/// Our index.
async fn our_index(map: &Labelmap) -> Index {
    let mut index = Index::new();
    let mut batches = map.table("index").unwrap().scan(&KeyRange::All, None).unwrap();
    while let Some(batch) = batches.try_next().await.unwrap() {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let at = ["z", "y", "x"].map(|axis| column(axis).as_primitive::<UInt32Type>().values());
        for (row, body) in column("body").as_primitive::<UInt64Type>().values().iter().enumerate() {
            let ids = column("supervoxels").as_list::<i32>().value(row);
            let counts = column("counts").as_list::<i32>().value(row);
            let ids = ids.as_primitive::<UInt64Type>().values().iter();
            let counts = counts.as_primitive::<UInt32Type>().values().iter();
            let counts = ids.zip(counts).map(|(id, count)| (*id, u64::from(*count))).collect();
            index.entry(*body).or_default().insert(at.map(|axis| axis[row]), counts);
        }
    }
    index
}

/// The voxels that the driver cuts out: those up to the middle of the supervoxel along x.
async fn half_of(map: &Labelmap, supervoxel: u64) -> Runs {
    let body = map.bodies_of(&[supervoxel]).await.unwrap()[0];
    let mut runs: Vec<_> = map.sparse_volume(body, Some(supervoxel)).await.unwrap().into();
    let first = runs.iter().map(|run| run.start[2]).min().unwrap();
    let last = runs.iter().map(|run| run.start[2] + run.length - 1).max().unwrap();
    let middle = (first + last) / 2;
    runs.retain(|run| run.start[2] <= middle);
    for run in &mut runs {
        run.length = run.length.min(middle + 1 - run.start[2]);
    }
    Runs::new(runs)
}

/// Does what a log of DVID says; returns the pairs of bulk mappings.
async fn replay(repo: &Repository, version: &str) -> Vec<(u64, u64)> {
    let file = testdata().join("mutlog/edits").join(version);
    let bytes = std::fs::read(&file).unwrap();
    let mut bulk = Vec::new();
    let mut split = Vec::new();
    for record in Records::new(version, &bytes) {
        let wanted = match record.unwrap() {
            Record::Merge { target, merged, .. } => Edit::Merge { target, bodies: merged },
            Record::Cleave { body, new_body, supervoxels, .. } => {
                Edit::Cleave { body, supervoxels, new_body: Some(new_body) }
            }
            Record::Renumber { body, new_body, .. } => Edit::Renumber { body, new_body },
            Record::SupervoxelSplit { supervoxel, part, rest, mutation } => {
                // DVID logs each of them twice.
                if split.contains(&mutation) {
                    continue;
                }
                split.push(mutation);
                let voxels = half_of(&tip(repo, "main").await, supervoxel).await;
                Edit::SplitSupervoxel { supervoxel, voxels, part: Some(part), rest: Some(rest) }
            }
            Record::Split { body, new_body, supervoxels, .. } => {
                assert_eq!(supervoxels.keys().copied().collect::<Vec<_>>(), [body]);
                let voxels = half_of(&tip(repo, "main").await, body).await;
                let halves = supervoxels.iter().map(|(id, (part, rest))| (*id, *part, *rest));
                let halves = halves.collect();
                Edit::SplitBody { body, voxels, new_body: Some(new_body), halves }
            }
            Record::Mapping { mutation: BULK, body, supervoxels } => {
                bulk.extend(supervoxels.iter().map(|id| (*id, body)));
                Edit::Map { mapping: supervoxels.into_iter().map(|id| (id, body)).collect() }
            }
            _ => continue,
        };
        let missing = match &wanted {
            // DVID 1.0 accepts a merge of a body that is not there.
            Edit::Merge { bodies, .. } => bodies.contains(&987_654_321_987),
            _ => false,
        };
        match edit(repo, "main", wanted.clone()).await {
            Ok(_) => assert!(!missing),
            Err(Error::NotFound { what: Noun::Body, .. }) if missing => {}
            Err(error) => panic!("{version}: {wanted:?}: {error}"),
        }
    }
    bulk
}

/// What DVID maps by a log: pairs of supervoxel and body.
fn answered_mapping(version: &str) -> BTreeMap<u64, u64> {
    let file = testdata().join("mutlog/edits/versions.json");
    let versions: serde_json::Value =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let listed = versions.as_array().unwrap();
    let found = listed.iter().find(|listed| listed["label"] == version).unwrap();
    let pair = |pair: &serde_json::Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
    found["mapping"].as_array().unwrap().iter().map(pair).collect()
}

/// Hashes of supervoxels and of bodies, as DVID's answers have them.
async fn assert_voxels(map: &Labelmap, version: &str) {
    let file = testdata().join(format!("labelmap/edits/{version}.hashes.json"));
    let hashes: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mapping = map.load_mapping().await.unwrap();
    for scale in 0..map.layout().scales {
        let all = voxels(map, scale).await;
        let shape = map.layout().shape_at(scale);
        for (position, answered) in hashes[format!("s{scale}")]["blocks"].as_object().unwrap() {
            let at: Vec<u64> = position.split(',').map(|at| at.parse().unwrap()).collect();
            let mut block = Vec::new();
            for z in at[2] * EDGE..(at[2] + 1) * EDGE {
                for y in at[1] * EDGE..(at[1] + 1) * EDGE {
                    for x in at[0] * EDGE..(at[0] + 1) * EDGE {
                        let inside = z < shape[0] && y < shape[1] && x < shape[2];
                        let place = || ((z * shape[1] + y) * shape[2] + x) as usize;
                        block.push(if inside { all[place()] } else { 0 });
                    }
                }
            }
            let digest = |labels: &[u64]| {
                let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
                let digest = Sha256::digest(bytes);
                digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
            };
            let found = digest(&block);
            mapping.relabel(&mut block);
            assert_eq!(
                (answered[0].as_str(), answered[1].as_str()),
                (Some(found.as_str()), Some(digest(&block).as_str())),
                "{version}, scale {scale}, block {position}"
            );
        }
    }
}

#[tokio::test]
async fn edits_of_a_real_dvid_give_its_own_answers() {
    let repo = create(&memory()).await;
    let mut layout = Layout::new(SHAPE);
    layout.scales = 4;
    import(&repo, layout, &volume()).await;
    let mut bulk = Vec::new();
    for version in ["root", "v1", "v2"] {
        bulk.extend(replay(&repo, version).await);
        let map = tip(&repo, "main").await;
        assert_sound(&map).await;
        let mapping: BTreeMap<u64, u64> = map.load_mapping().await.unwrap().rows().collect();
        assert_eq!(mapping, answered_mapping(version), "{version}");
        let mut expected = answered_index(version);
        // A bulk mapping of DVID leaves the index as it was, so its bodies have voxels of others. Ours does not.
        for (supervoxel, body) in &bulk {
            let moved = expected.remove(supervoxel).unwrap();
            let target = expected.get_mut(body).unwrap();
            for (at, counts) in moved {
                target.entry(at).or_default().extend(counts);
            }
        }
        assert_eq!(our_index(&map).await, expected, "{version}");
        // The last version also overwrites blocks, past its index.
        if version != "v2" {
            assert_voxels(&map, version).await;
        }
        let version = Version::branch("main");
        let session = repo.readonly_session(&version).await.unwrap();
        assert_eq!(Labelmap::list(&session).await.unwrap(), [PATH]);
    }
}
