//! Volumes for Neuroglancer.

use chunkyard_array::codec::gunzip;
use chunkyard_array::codec::label_block::{Block, from_segmentation};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{SHAPE, body, commit, label, labelmap, repository};
use crate::harness::Server;

/// The voxels of a chunk, by x, y and z.
fn voxels(bytes: &[u8], extent: [u32; 3]) -> Vec<u64> {
    let mut block = Vec::new();
    from_segmentation(bytes, extent, &mut block).unwrap();
    let block = Block::parse(&block).unwrap();
    let mut all = vec![0; block.voxel_count()];
    block.decode_into(&mut all).unwrap();
    let size = block.size().map(|n| n as usize);
    let mut voxels = Vec::new();
    for z in 0..extent[2] as usize {
        for y in 0..extent[1] as usize {
            let row = (z * size[1] + y) * size[0];
            voxels.extend_from_slice(&all[row..row + extent[0] as usize]);
        }
    }
    voxels
}

#[tokio::test]
async fn a_labelmap_is_a_volume_of_bodies_and_one_of_supervoxels() {
    let place = tempfile::tempdir().unwrap();
    labelmap(place.path()).await;
    let server = Server::start(&[("brain", place.path())]);
    let [z_size, y_size, x_size] = SHAPE;
    for (look, mapped) in [("precomputed", true), ("precomputed-supervoxels", false)] {
        for folder in ["", "seg/"] {
            let info = server.get(&format!("/data/brain/{look}/{folder}info")).await;
            assert_eq!(info.status(), StatusCode::OK);
            let info: Value = serde_json::from_slice(&info.bytes().await.unwrap()).unwrap();
            assert_eq!(info["type"], "segmentation");
            assert_eq!(info["data_type"], "uint64");
            assert_eq!(info["scales"].as_array().unwrap().len(), 3);
            let scale = &info["scales"][0];
            assert_eq!(scale["encoding"], "compressed_segmentation");
            assert_eq!(scale["size"], json!([x_size, y_size, z_size]));
            assert_eq!(scale["chunk_sizes"], json!([[16, 16, 16]]));
            let key = scale["key"].as_str().unwrap();
            for z in (0..z_size).step_by(16) {
                for x in (0..x_size).step_by(16) {
                    let (x_end, z_end) = ((x + 16).min(x_size), (z + 16).min(z_size));
                    let name = format!("{x}-{x_end}_16-32_{z}-{z_end}");
                    let path = format!("/data/brain/{look}/{folder}{key}/{name}");
                    let answer = server.get(&path).await;
                    assert_eq!(answer.status(), StatusCode::OK, "{path}");
                    let bytes = answer.bytes().await.unwrap();
                    let extent = [x_end - x, 16, z_end - z].map(|n| n as u32);
                    let mut expected = Vec::new();
                    for z in z..z_end {
                        for _ in 0..16 {
                            let one = |x| if mapped { body(z, x) } else { label(z, x) };
                            expected.extend((x..x_end).map(one));
                        }
                    }
                    assert!(voxels(&bytes, extent) == expected, "{path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_never_written_is_zeros() {
    let place = tempfile::tempdir().unwrap();
    labelmap(place.path()).await;
    let server = Server::start(&[("brain", place.path())]);
    // Blocks that are not stored, and clipped by the edge.
    let answer = server.get("/data/brain/precomputed/seg/s0/32-40_0-16_16-24").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(voxels(&answer.bytes().await.unwrap(), [8, 16, 8]).iter().all(|&label| label == 0));
    // As Zarr, a key that is not there says the same.
    let missing = server.get("/data/brain/zarr/seg/s0/c/1/0/0").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let outside = server.get("/data/brain/precomputed/seg/s0/48-56_0-16_16-24").await;
    assert_eq!(outside.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_image_is_raw_and_compressed_on_the_way() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 9).await;
    let server = Server::start(&[("numbers", place.path())]);
    let info = server.get("/data/numbers/precomputed/info").await;
    let info: Value = serde_json::from_slice(&info.bytes().await.unwrap()).unwrap();
    assert_eq!((&info["type"], &info["data_type"]), (&json!("image"), &json!("uint16")));
    assert_eq!(info["scales"][0]["size"], json!([6, 8, 1]));
    let key = info["scales"][0]["key"].as_str().unwrap();
    let answer = server.get(&format!("/data/numbers/precomputed/{key}/4-6_0-4_0-1")).await;
    let expected = |row: u16| (4..6).map(move |column| 9 + row * 6 + column);
    let expected: Vec<u8> = (0..4).flat_map(expected).flat_map(u16::to_le_bytes).collect();
    assert_eq!(answer.bytes().await.unwrap(), expected);
}

#[tokio::test]
async fn what_is_large_is_compressed_for_those_who_ask() {
    let place = tempfile::tempdir().unwrap();
    labelmap(place.path()).await;
    let server = Server::start(&[("brain", place.path())]);
    let url = server.at("/data/brain/precomputed/info");
    let plain = server.client.get(&url).send().await.unwrap();
    let plain_tag = plain.headers()["etag"].clone();
    let plain = plain.bytes().await.unwrap();
    let packed = server.client.get(&url).header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert_ne!(packed.headers()["etag"], plain_tag);
    assert_eq!(gunzip(&packed.bytes().await.unwrap(), 1 << 20).unwrap(), plain);
    // Parts are parts of the plain bytes.
    let asked = server.client.get(&url).header("accept-encoding", "gzip");
    let part = asked.header("range", "bytes=0-9").send().await.unwrap();
    assert!(part.headers().get("content-encoding").is_none());
    assert_eq!(part.bytes().await.unwrap(), plain[..10]);
}

#[tokio::test]
async fn what_is_no_volume_says_why() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    let session = repository.writable_session("main").await.unwrap();
    for name in ["a", "b"] {
        let spec = chunkyard_array::ArraySpec::builder(&[4], &[4], "float64").build().unwrap();
        session.create_array(&format!("/{name}"), spec).await.unwrap();
    }
    let message = chunkyard_engine::repo::CommitOptions::message("two");
    session.commit(message).await.unwrap();
    let server = Server::start(&[("two", place.path())]);
    for (key, status, reason) in [
        ("info", StatusCode::BAD_REQUEST, "several arrays"),
        ("a/info", StatusCode::NOT_IMPLEMENTED, "float64"),
        ("c/info", StatusCode::NOT_FOUND, "/c"),
    ] {
        let answer = server.get(&format!("/data/two/precomputed/{key}")).await;
        let found = answer.status();
        let text = answer.text().await.unwrap();
        assert!(found == status && text.contains(reason), "{key}: {found} {text}");
    }
}
