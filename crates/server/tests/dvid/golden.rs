//! The answers of a real DVID, and ours to the same requests: of its store as it is, and of the repository that it was
//! imported into.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_engine::format::dvid::LabelIndex;
use chunkyard_test_support::{dvid_testdata, hash_of_voxels};
use serde_json::{Value, json};

use super::support::{
    EDGE, Imported, get, get_json, pairs, recorded, recorded_json, u64s, unstream, voxels_of,
};
use crate::harness::Server;

fn answers(name: &str) -> BTreeMap<String, Value> {
    serde_json::from_value(recorded_json(&format!("answers/{name}.json"))).unwrap()
}

/// The box of some blocks, as SIZE/OFFSET.
fn around<'a>(places: impl Iterator<Item = &'a String>) -> Option<String> {
    let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
    for place in places {
        for (axis, at) in place.split(',').enumerate() {
            let at: i64 = at.parse().unwrap();
            (low[axis], high[axis]) = (low[axis].min(at), high[axis].max(at + 1));
        }
    }
    if low[0] == i64::MAX {
        return None;
    }
    let joined = |at: [i64; 3]| at.map(|at| (at * EDGE as i64).to_string()).join("_");
    Some(format!("{}/{}", joined([0, 1, 2].map(|axis| high[axis] - low[axis])), joined(low)))
}

/// Compares the answers about a version of one store, blocks from a scale on; `differs` are bodies that DVID counted
/// wrong.
async fn compare(
    server: &Server,
    node: &str,
    answer: &Value,
    differs: &BTreeSet<u64>,
    scale: usize,
) {
    for (scale, told) in answer["scales"].as_array().unwrap().iter().enumerate().skip(scale) {
        let told = told.as_object().unwrap();
        let Some(region) = around(told.keys()) else { continue };
        let query = format!("compression=blocks&scale={scale}");
        let path = format!("{node}/blocks/{region}?{query}");
        let bodies = unstream(&get(server, &path, "").await);
        let supervoxels = unstream(&get(server, &format!("{path}&supervoxels=true"), "").await);
        for (found, which) in [(&supervoxels, 0), (&bodies, 1)] {
            let found: BTreeMap<String, String> = found
                .iter()
                .map(|([x, y, z], block)| {
                    (format!("{x},{y},{z}"), hash_of_voxels(&voxels_of(block)))
                })
                .collect();
            let expected: BTreeMap<String, String> = told
                .iter()
                .map(|(at, row)| {
                    let hash = row.get(which).unwrap_or(&row[0]).as_str().unwrap();
                    (at.clone(), hash.to_owned())
                })
                .collect();
            // A block of nothing but zeros need not be stored.
            let zeros = hash_of_voxels(&vec![0; (EDGE * EDGE * EDGE) as usize]);
            for (at, hash) in &expected {
                let found = found.get(at).unwrap_or(&zeros);
                assert_eq!(found, hash, "{node} s{scale} {at} {which}");
            }
            assert!(found.keys().all(|at| expected.contains_key(at)), "{node} s{scale}");
        }
    }
    let mapped: BTreeSet<(u64, u64)> =
        pairs(&get(server, &format!("{node}/mappings?format=binary"), "").await)
            .into_iter()
            .collect();
    let told: Vec<u64> = serde_json::from_value(answer["mapping"].clone()).unwrap();
    let told: BTreeSet<(u64, u64)> =
        told.as_chunks::<2>().0.iter().map(|[a, b]| (*a, *b)).collect();
    assert_eq!(mapped, told, "{node}");
    let told: BTreeMap<u64, u64> = answer["bodies"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(body, row)| (body.parse().unwrap(), row[0].as_u64().unwrap()))
        .filter(|(body, _)| !differs.contains(body))
        .collect();
    let listed = get(server, &format!("{node}/listlabels?sizes=true"), "").await;
    let listed: BTreeMap<u64, u64> = pairs(&listed)
        .into_iter()
        .filter(|(body, _)| !differs.contains(body) && told.contains_key(body))
        .collect();
    let there: BTreeMap<u64, u64> = told
        .iter()
        .map(|(body, voxels)| (*body, *voxels))
        .filter(|(_, voxels)| *voxels > 0)
        .collect();
    assert_eq!(listed, there, "{node}");
    let labels: Vec<u64> = told.keys().copied().collect();
    let sizes = get(server, &format!("{node}/sizes"), json!(labels).to_string()).await;
    let expected: Vec<String> = told.values().map(u64::to_string).collect();
    assert_eq!(String::from_utf8(sizes).unwrap(), format!("[{}]", expected.join(",")), "{node}");
    for (body, told) in answer["supervoxels"].as_object().unwrap().iter().take(10) {
        if differs.contains(&body.parse().unwrap()) {
            continue;
        }
        let told: BTreeSet<u64> = serde_json::from_value(told.clone()).unwrap();
        let found = get_json(server, &format!("{node}/supervoxels/{body}"), String::new()).await;
        let found: BTreeSet<u64> = serde_json::from_value(found).unwrap();
        assert_eq!(found, told, "{node} {body}");
    }
}

/// A store of DVID, and a server of it and of what was imported from it.
struct Run {
    name: &'static str,
    imported: Imported,
    server: Server,
}

impl Run {
    async fn new(name: &'static str) -> Self {
        let imported = Imported::new(name).await;
        let server = imported.serve();
        Self { name, imported, server }
    }

    /// The version whose answers were kept in full.
    fn kept(&self) -> String {
        let about = recorded_json(&format!("http/{}/version.json", self.name));
        about["uuid"].as_str().unwrap().to_owned()
    }

    /// Bodies of that version that DVID counted wrong: it does, where blocks are posted twice.
    fn differs(&self) -> BTreeSet<u64> {
        let uuid = self.kept();
        let known = self.imported.report.versions.iter().find(|known| known.uuid == uuid).unwrap();
        known.differences.iter().map(|one| one.body).collect()
    }
}

/// Recorded versions of a store, from the store itself and from a repository, by the UUIDs that they have in DVID. Full
/// resolution, which is most of the work, is compared where `fine` says so.
async fn compare_all(run: &Run, some: &[&str], fine: &[&str]) {
    let Run { name, imported, server } = run;
    let answers = answers(name);
    for version in some {
        let answer = &answers[*version];
        let uuid = answer["uuid"].as_str().unwrap();
        let known = imported.report.versions.iter().find(|known| known.uuid == uuid).unwrap();
        let differs = known.differences.iter().map(|one| one.body).collect();
        let scale = if fine.contains(version) { 0 } else { 1 };
        compare(server, &format!("/api/node/repo:{uuid}/seg"), answer, &differs, scale).await;
        // DVID's own counts are what its store has.
        let (node, none) = (format!("/api/node/store:{}/seg", &uuid[..8]), BTreeSet::new());
        compare(server, &node, answer, &none, scale).await;
        let by_snapshot = format!("/api/node/{}/seg/listlabels", known.snapshot);
        let by_uuid = format!("/api/node/repo:{uuid}/seg/listlabels");
        assert_eq!(get(server, &by_snapshot, "").await, get(server, &by_uuid, "").await);
    }
}

#[tokio::test]
async fn versions_in_a_line_answer_as_dvid_did() {
    let run = Run::new("edits").await;
    compare_all(&run, &["root", "v1", "v2"], &["v2"]).await;
    compare_info(&run).await;
    compare_questions(&run).await;
    read_as_client(&run).await;
}

#[tokio::test]
async fn branches_and_their_joins_answer_as_dvid_did() {
    let run = Run::new("branches").await;
    compare_all(&run, &["a2", "b", "joined", "resolved"], &["joined"]).await;
}

#[tokio::test]
async fn blocks_left_of_zero_answer_as_dvid_did() {
    let run = Run::new("offset-live").await;
    compare_all(&run, &["root"], &[]).await;
    compare_kept(&run).await;
    compare_questions(&run).await;
}

#[tokio::test]
async fn the_last_of_many_versions_answers_as_dvid_did() {
    compare_all(&Run::new("many").await, &["v07", "v15"], &["v15"]).await;
}

#[tokio::test]
async fn a_store_without_edits_answers_as_dvid_did() {
    compare_kept(&Run::new("basic").await).await;
}

/// Indices by label.
fn indices(bytes: &[u8]) -> Vec<(u64, Option<LabelIndex>)> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(16);
        let [length, label] = u64s(head)[..] else { panic!() };
        let (value, tail) = tail.split_at(length as usize);
        let index = (length > 0).then(|| LabelIndex::parse_value("index", value).unwrap());
        found.push((label, index));
        rest = tail;
    }
    found
}

/// The answers that were kept byte by byte: streams of blocks, mappings, indices, labels at points.
async fn compare_kept(run: &Run) {
    let (Run { name, server, .. }, uuid, differs) = (run, run.kept(), run.differs());
    let read = |file: &str| std::fs::read(recorded(&format!("http/{name}/{file}"))).unwrap();
    for place in ["repo", "store"] {
        let node = format!("/api/node/{place}:{uuid}/seg");
        let hashes = recorded_json(&format!("http/{name}/hashes.json"));
        for (scale, about) in hashes.as_object().unwrap() {
            let scale = &scale[1..];
            let file = dvid_testdata().join(format!("http/{name}/blocks_s{scale}.bin"));
            let Ok(told) = std::fs::read(file) else { continue };
            let region = around(about["blocks"].as_object().unwrap().keys()).unwrap();
            let path = format!("{node}/blocks/{region}?scale={scale}&supervoxels=true");
            let found = get(server, &format!("{path}&compression=blocks"), "").await;
            let (told, found) = (unstream(&told), unstream(&found));
            assert!(told.keys().eq(found.keys()), "{name} {place} {scale}");
            for (at, block) in &told {
                assert_eq!(voxels_of(block), voxels_of(&found[at]), "{name} {place} {at:?}");
            }
            // The other forms have the same voxels.
            let lz4 = unstream(&get(server, &path, "").await);
            let plain = get(server, &format!("{path}&compression=uncompressed"), "").await;
            for (at, voxels) in unstream(&plain) {
                assert_eq!(u64s(&voxels), voxels_of(&told[&at]));
                let unpacked = lz4_flex::block::decompress(&lz4[&at], voxels.len()).unwrap();
                assert_eq!(unpacked, voxels);
            }
        }
        let found = get(server, &format!("{node}/mappings"), "").await;
        let lines = |bytes: Vec<u8>| -> BTreeSet<String> {
            String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
        };
        assert_eq!(lines(found), lines(read("mappings.txt")), "{name} {place}");
        let told = indices(&read("indices.bin"));
        let labels: Vec<u64> = told.iter().map(|(label, _)| *label).collect();
        let path = format!("{node}/indices-compressed");
        let found = indices(&get(server, &path, json!(labels).to_string()).await);
        for ((label, told), (found_label, found)) in told.iter().zip(&found) {
            assert_eq!(label, found_label);
            let blocks = |index: &Option<LabelIndex>| index.as_ref().map(|i| i.blocks.clone());
            if place == "store" || !differs.contains(label) {
                assert_eq!(blocks(told), blocks(found), "{name} {place} {label}");
            }
        }
        assert_eq!(told.len(), found.len());
        let listed = recorded_json(&format!("http/{name}/listlabels.json"));
        let told: Vec<(u64, u64)> = serde_json::from_value(listed).unwrap();
        if place == "store" || differs.is_empty() {
            let found = get(server, &format!("{node}/listlabels?sizes=true"), "").await;
            assert!(pairs(&found) == told, "{name} {place}");
            let two = format!("{node}/listlabels?start={}&number=2", told[1].0);
            assert_eq!(u64s(&get(server, &two, "").await), [told[1].0, told[2].0]);
        }
    }
}

/// Points, and the mapping of single supervoxels.
async fn compare_questions(run: &Run) {
    let (Run { name, server, .. }, uuid, differs) = (run, run.kept(), run.differs());
    let told = recorded_json(&format!("http/{name}/questions.json"));
    for place in ["repo", "store"] {
        let node = format!("/api/node/{place}:{uuid}/seg");
        let answer = async |path: &str, question: &Value| {
            get_json(server, &format!("{node}/{path}"), question.to_string()).await
        };
        assert_eq!(answer("labels", &told["points"]).await, told["labels"], "{name} {place}");
        let found = answer("labels?supervoxels=true", &told["points"]).await;
        assert_eq!(found, told["supervoxels"], "{name} {place}");
        let asked = &told["mapping"]["supervoxels"];
        let found = answer("mapping?nolookup=true", asked).await;
        assert_eq!(found, told["mapping"]["nolookup"], "{name} {place}");
        let bodies = answer("mapping", asked).await;
        for ((id, found), told) in asked
            .as_array()
            .unwrap()
            .iter()
            .zip(bodies.as_array().unwrap())
            .zip(told["mapping"]["labels"].as_array().unwrap())
        {
            // Whether a body is there is what the counts say.
            if place == "store" || !differs.contains(&id.as_u64().unwrap()) {
                assert_eq!(found, told, "{name} {place} {id}");
            }
        }
        let point = told["points"][0].as_array().unwrap();
        let point: Vec<String> = point.iter().map(Value::to_string).collect();
        let found = get(server, &format!("{node}/label/{}", point.join("_")), "").await;
        let expected = format!("{{\"Label\": {}}}", told["labels"][0]);
        assert_eq!(String::from_utf8(found).unwrap(), expected, "{name} {place}");
    }
}

/// What DVID says about data; where a labelmap of a repository ends is where its coarsest blocks end.
async fn compare_info(run: &Run) {
    let told = recorded_json(&format!("http/{}/info.json", run.name));
    for place in ["repo", "store"] {
        let path = format!("/api/node/{place}:{}/seg/info", run.kept());
        let found = get_json(&run.server, &path, String::new()).await;
        for key in ["TypeName", "TypeURL", "TypeVersion", "Name", "Compression", "Versioned"] {
            assert_eq!(found["Base"][key], told["Base"][key], "{place} {key}");
        }
        for key in ["Values", "BlockSize", "VoxelUnits", "MinPoint", "MinIndex", "MaxDownresLevel"]
        {
            assert_eq!(found["Extended"][key], told["Extended"][key], "{place} {key}");
        }
        if place == "store" {
            for key in ["MaxPoint", "MaxIndex"] {
                assert_eq!(found["Extended"][key], told["Extended"][key], "{key}");
            }
            assert_eq!(found["Extents"], told["Extents"]);
        }
        assert_eq!(found["Extended"]["VoxelSize"][0].as_f64(), Some(8.0));
    }
}

/// Our own client of DVID, which the tests run against a real one as well, reads from us.
async fn read_as_client(run: &Run) {
    use chunkyard_engine::format::{OpenOptions, Reader};
    let host = run.server.url.strip_prefix("http://").unwrap();
    let answer = &answers("edits")["v2"];
    let uuid = run.kept();
    let known = run.imported.report.versions.iter().find(|known| known.uuid == uuid).unwrap();
    let url = format!("dvid+http://{host}/{}/seg", known.snapshot);
    let opened = chunkyard_engine::open::open(&url, &OpenOptions::default()).await.unwrap();
    for (scale, blocks) in answer["scales"].as_array().unwrap().iter().enumerate().skip(1) {
        let reader = Reader::new(&opened.source, &format!("/s{scale}")).unwrap();
        for (place, row) in blocks.as_object().unwrap() {
            let at: Vec<u64> = place.split(',').map(|at| at.parse().unwrap()).collect();
            let start: Vec<u64> = at.iter().rev().map(|at| at * EDGE).collect();
            let region = chunkyard_array::Region::new(start, vec![EDGE; 3]).unwrap();
            let voxels = u64s(&reader.read_region(&region).await.unwrap());
            assert_eq!(Some(hash_of_voxels(&voxels).as_str()), row[0].as_str(), "s{scale} {place}");
        }
    }
}
