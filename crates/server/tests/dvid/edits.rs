//! The mutations that a real DVID logged, made over HTTP, give the bodies and voxels that it answered; and mutations of
//! many clients at once.

use std::collections::BTreeMap;

use chunkyard_engine::labels::Layout;
use chunkyard_engine::labels::dvid_log::{Record, Records};
use futures::future::join_all;
use serde_json::{Value, json};

use super::support::{
    EDGE, Voxels, ask, four_bodies, get, get_json, import, pairs, post, recorded, recorded_json,
    repository, u64s, unstream, voxels_of,
};
use crate::harness::Server;

const SHAPE: [u64; 3] = [320, 192, 256];
/// The mutation id by which the driver marks its own bulk mapping.
const BULK: u64 = 7;
/// A body that is not there, which DVID 1.0 lets merge all the same.
const NOWHERE: u64 = 987_654_321_987;

/// The volume before any edit.
fn volume() -> Voxels {
    let stream = std::fs::read(recorded("labelmap/edits/volume.blocks")).unwrap();
    let mut labels = vec![0; SHAPE.iter().product::<u64>() as usize];
    for ([x, y, z], packed) in unstream(&stream) {
        let [x, y, z] = [x, y, z].map(|at| at as u64 * EDGE);
        for (row, line) in voxels_of(&packed).chunks_exact(EDGE as usize).enumerate() {
            let (dz, dy) = (row as u64 / EDGE, row as u64 % EDGE);
            let to = (((z + dz) * SHAPE[1] + y + dy) * SHAPE[2] + x) as usize;
            labels[to..to + EDGE as usize].copy_from_slice(line);
        }
    }
    Voxels { shape: SHAPE, labels }
}

/// The runs of a label up to the middle of its extent along x, as DVID's own client cut it.
fn half(sparse: &[u8]) -> Vec<u8> {
    let (head, runs) = sparse.split_at(12);
    let mut runs: Vec<[i32; 4]> = runs
        .as_chunks::<16>()
        .0
        .iter()
        .map(|run| {
            let words = run.as_chunks::<4>().0;
            std::array::from_fn(|at| i32::from_le_bytes(words[at]))
        })
        .collect();
    let count = u32::from_le_bytes(*head[8..].first_chunk().unwrap());
    assert_eq!(count as usize, runs.len());
    let first = runs.iter().map(|run| run[0]).min().unwrap();
    let last = runs.iter().map(|run| run[0] + run[3] - 1).max().unwrap();
    let middle = (first + last) / 2;
    runs.retain(|run| run[0] <= middle);
    for run in &mut runs {
        run[3] = run[3].min(middle + 1 - run[0]);
    }
    let mut out = vec![0, 3, 0, 0, 0, 0, 0, 0];
    out.extend((runs.len() as u32).to_le_bytes());
    runs.iter().flatten().for_each(|word| out.extend(word.to_le_bytes()));
    out
}

/// A protobuf message MappingOps of one mapping.
fn mapping_ops(mutation: u64, body: u64, supervoxels: &[u64]) -> Vec<u8> {
    let mut varints = Vec::new();
    let varint = |mut number: u64, out: &mut Vec<u8>| {
        while number > 127 {
            out.push(number as u8 | 128);
            number >>= 7;
        }
        out.push(number as u8);
    };
    supervoxels.iter().for_each(|id| varint(*id, &mut varints));
    let mut op = vec![0x08];
    varint(mutation, &mut op);
    op.push(0x10);
    varint(body, &mut op);
    op.push(0x1a);
    varint(varints.len() as u64, &mut op);
    op.extend(varints);
    let mut out = vec![0x0a];
    varint(op.len() as u64, &mut out);
    out.extend(op);
    out
}

/// The ids that were chosen here, and those that DVID chose.
#[derive(Default)]
struct Ids {
    ours: BTreeMap<u64, u64>,
    theirs: BTreeMap<u64, u64>,
}

impl Ids {
    fn note(&mut self, theirs: u64, ours: u64) {
        self.ours.insert(theirs, ours);
        self.theirs.insert(ours, theirs);
    }

    fn ours(&self, id: u64) -> u64 {
        self.ours.get(&id).copied().unwrap_or(id)
    }

    fn theirs(&self, id: u64) -> u64 {
        self.theirs.get(&id).copied().unwrap_or(id)
    }
}

/// Makes the mutations of a log.
async fn replay(server: &Server, node: &str, version: &str, ids: &mut Ids) {
    let bytes = std::fs::read(recorded(&format!("mutlog/edits/{version}"))).unwrap();
    let mut split = Vec::new();
    let mut last = 0;
    for record in Records::new(version, &bytes) {
        let answer = match record.unwrap() {
            Record::Merge { target, merged, .. } => {
                let bodies: Vec<u64> =
                    [target].iter().chain(&merged).map(|id| ids.ours(*id)).collect();
                let path = format!("{node}/merge?u=me&app=test");
                if merged.contains(&NOWHERE) {
                    let (status, text) =
                        ask(server, "POST", &path, json!(bodies).to_string()).await;
                    assert_eq!(status, 404, "{}", String::from_utf8_lossy(&text));
                    continue;
                }
                let answer = post(server, &path, json!(bodies).to_string()).await;
                assert_eq!(answer.as_object().unwrap().len(), 1);
                answer
            }
            Record::Cleave { body, new_body, supervoxels, .. } => {
                let path = format!("{node}/cleave/{}", ids.ours(body));
                let supervoxels: Vec<u64> = supervoxels.iter().map(|id| ids.ours(*id)).collect();
                let answer = post(server, &path, json!(supervoxels).to_string()).await;
                ids.note(new_body, answer["CleavedLabel"].as_u64().unwrap());
                answer
            }
            Record::Renumber { body, new_body, .. } => {
                let path = format!("{node}/renumber");
                let (status, answer) =
                    ask(server, "POST", &path, json!([new_body, ids.ours(body)]).to_string()).await;
                assert_eq!((status, answer.len()), (200, 0));
                continue;
            }
            Record::SupervoxelSplit { supervoxel, part, rest, mutation } => {
                // DVID logs each of them twice.
                if split.contains(&mutation) {
                    continue;
                }
                split.push(mutation);
                let path = format!("{node}/sparsevol/{supervoxel}?supervoxels=true");
                let runs = half(&get(server, &path, "").await);
                let path =
                    format!("{node}/split-supervoxel/{supervoxel}?split={part}&remain={rest}");
                let answer = post(server, &path, runs).await;
                assert_eq!(answer["SplitSupervoxel"], part);
                assert_eq!(answer["RemainSupervoxel"], rest);
                answer
            }
            Record::Split { body, new_body, supervoxels, .. } => {
                let runs = half(&get(server, &format!("{node}/sparsevol/{body}"), "").await);
                let answer = post(server, &format!("{node}/split/{body}"), runs).await;
                let label = answer["label"].as_u64().unwrap();
                ids.note(new_body, label);
                let of = async |label: u64| -> u64 {
                    let path = format!("{node}/supervoxels/{label}");
                    let found = get_json(server, &path, String::new()).await;
                    assert_eq!(found.as_array().unwrap().len(), 1);
                    found[0].as_u64().unwrap()
                };
                let (part, rest) = supervoxels[&body];
                ids.note(part, of(label).await);
                ids.note(rest, of(body).await);
                answer
            }
            Record::Mapping { mutation: BULK, body, supervoxels } => {
                let ops = mapping_ops(BULK, body, &supervoxels);
                let (status, answer) = ask(server, "POST", &format!("{node}/mappings"), ops).await;
                assert_eq!(
                    (status, answer.len()),
                    (200, 0),
                    "{}",
                    String::from_utf8_lossy(&answer)
                );
                continue;
            }
            _ => continue,
        };
        let mutation = answer["MutationID"].as_u64().unwrap();
        assert!(mutation > last, "mutations are numbered in their order");
        last = mutation;
    }
}

/// The mapping that DVID answered at a version.
fn told_mapping(version: &str) -> BTreeMap<u64, u64> {
    let versions = recorded_json("mutlog/edits/versions.json");
    let listed = versions.as_array().unwrap().iter().find(|listed| listed["label"] == version);
    let pair = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
    listed.unwrap()["mapping"].as_array().unwrap().iter().map(pair).collect()
}

#[tokio::test]
async fn mutations_of_a_real_dvid_give_its_own_answers() {
    let (directory, repo) = repository().await;
    let mut layout = Layout::new(SHAPE);
    layout.scales = 4;
    import(&repo, layout, &volume()).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/main/seg";
    let mut ids = Ids::default();
    for version in ["root", "v1", "v2"] {
        replay(&server, node, version, &mut ids).await;
        let found = get(&server, &format!("{node}/mappings?format=binary"), "").await;
        let found: BTreeMap<u64, u64> = pairs(&found)
            .into_iter()
            .map(|(id, body)| (ids.theirs(id), ids.theirs(body)))
            .collect();
        let told = told_mapping(version).into_iter().filter(|(id, body)| id != body);
        assert_eq!(found, told.collect(), "{version}");
        // The last version also overwrites blocks.
        if version == "v2" {
            continue;
        }
        let hashes = recorded_json(&format!("labelmap/edits/{version}.hashes.json"));
        for scale in [0, 3] {
            for (place, told) in hashes[format!("s{scale}")]["blocks"].as_object().unwrap() {
                let at: Vec<i64> = place.split(',').map(|at| at.parse().unwrap()).collect();
                let at = [at[0] * 64, at[1] * 64, at[2] * 64].map(|at| at.to_string()).join("_");
                let path = format!("{node}/raw/0_1_2/64_64_64/{at}?scale={scale}");
                for (query, told) in [("&supervoxels=true", &told[0]), ("", &told[1])] {
                    let mut voxels = u64s(&get(&server, &format!("{path}{query}"), "").await);
                    voxels.iter_mut().for_each(|label| *label = ids.theirs(*label));
                    let hash = chunkyard_test_support::hash_of_voxels(&voxels);
                    assert_eq!(hash, told.as_str().unwrap()[..16], "{version} s{scale} {place}");
                }
            }
        }
    }
}

#[tokio::test]
async fn mutations_of_many_clients_are_all_there() {
    let (directory, repo) = repository().await;
    let shape = [16, 16, 256];
    let labels = (0..16 * 16 * 256u64).map(|at| at % 256 / 8 + 1).collect();
    import(&repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/brain:main/seg";
    // Neighbours share blocks at some scale, and body 1 takes in half of all bodies: every edit meets others.
    let path = &format!("{node}/merge");
    let merges = (1..16u64).map(|at| post(&server, path, format!("[1,{}]", at * 2 + 1)));
    let answers = join_all(merges).await;
    let mut mutations: Vec<u64> =
        answers.iter().map(|answer| answer["MutationID"].as_u64().unwrap()).collect();
    mutations.sort_unstable();
    mutations.dedup();
    assert_eq!(mutations.len(), 15);
    let found = get_json(&server, &format!("{node}/supervoxels/1"), String::new()).await;
    let expected: Vec<u64> = (0..16).map(|at| at * 2 + 1).collect();
    assert_eq!(found, json!(expected));
    let listed = pairs(&get(&server, &format!("{node}/listlabels?sizes=true"), "").await);
    assert_eq!(listed.iter().map(|(_, voxels)| voxels).sum::<u64>(), 16 * 16 * 256);
    assert_eq!(listed.len(), 17);
    // Of two that exclude each other one is made, and the other is refused for what it says of the result.
    let both = ["[2,4]", "[6,4]"].map(|merge| ask(&server, "POST", path, merge));
    let mut statuses: Vec<u16> =
        join_all(both).await.into_iter().map(|(status, _)| status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
}

#[tokio::test]
async fn another_writer_does_not_lose_and_is_not_lost() {
    use chunkyard_engine::labels::{Author, Edit, commit_edits};
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    let elsewhere = async {
        let edit = Edit::Merge { target: 1, bodies: vec![2] };
        let author = Author::default();
        commit_edits(&repo, "main", "/seg", &[edit], &author, "elsewhere").await.unwrap();
    };
    let here = post(&server, "/api/node/main/seg/merge", "[3,4]");
    let ((), answer) = futures::join!(elsewhere, here);
    assert!(answer["MutationID"].is_u64());
    let mapped = get(&server, "/api/node/main/seg/mapping", "[1,2,3,4]").await;
    assert_eq!(mapped, b"[1,1,3,3]");
}

#[tokio::test]
async fn mutations_are_commits_that_say_who_made_them() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let before = repo.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();
    let server = Server::start(&[("brain", directory.path())]);
    let answer = post(&server, "/api/node/main/seg/merge?u=ada&app=tool", "[1,2]").await;
    let state = repo.state().await.unwrap();
    let tip = state.tip("main").unwrap();
    assert_eq!(tip.parent_snapshot_id.as_deref(), Some(before.as_str()));
    assert_eq!(tip.message, "merge 1 bodies into 1");
    let about = get_json(&server, "/api/node/main/seg/lastmod/1", String::new()).await;
    assert_eq!(about["mutation id"], answer["MutationID"]);
    assert_eq!(about["last mod user"], "ada");
    // The version before is as it was, and can't be edited.
    let old = get(&server, &format!("/api/node/{before}/seg/mapping"), "[1,2]").await;
    assert_eq!(old, b"[1,2]");
    for node in [&before[..], &tip.snapshot_id] {
        let (status, text) =
            ask(&server, "POST", &format!("/api/node/{node}/seg/merge"), "[1,3]").await;
        assert_eq!(status, 400);
        assert!(String::from_utf8(text).unwrap().contains("never changes"));
    }
}

#[tokio::test]
async fn cleaving_and_splitting_choose_ids() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/main/seg";
    post(&server, &format!("{node}/merge"), "[1,2,3]").await;
    let cleaved = post(&server, &format!("{node}/cleave/1"), "[3]").await;
    let label = cleaved["CleavedLabel"].as_u64().unwrap();
    assert_eq!(
        get(&server, &format!("{node}/label/40_0_0"), "").await,
        format!("{{\"Label\": {label}}}").into_bytes()
    );
    assert_eq!(get(&server, &format!("{node}/size/{label}"), "").await, b"{\"voxels\": 4096}");
    let sparse = get(&server, &format!("{node}/sparsevol/4"), "").await;
    let split = post(&server, &format!("{node}/split-supervoxel/4"), half(&sparse)).await;
    let (part, rest) = (split["SplitSupervoxel"].as_u64(), split["RemainSupervoxel"].as_u64());
    let mut expected = [part.unwrap(), rest.unwrap()];
    expected.sort_unstable();
    assert_eq!(
        get_json(&server, &format!("{node}/supervoxels/4"), String::new()).await,
        json!(expected)
    );
    assert_eq!(get(&server, &format!("{node}/size/4"), "").await, b"{\"voxels\": 4096}");
    let path = format!("{node}/size/{}?supervoxels=true", part.unwrap());
    assert_eq!(get(&server, &path, "").await, b"{\"voxels\": 2048}");
    // A retired id is no supervoxel any more.
    assert_eq!(get(&server, &format!("{node}/mapping"), "[4]").await, b"[0]");
    let text = get(&server, &format!("{node}/mappings"), "").await;
    assert!(String::from_utf8(text).unwrap().contains("4 0\n"));
}
