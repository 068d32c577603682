//! Voxels and sparse volumes of small labelmaps, in all forms.

use chunkyard_array::codec::gunzip;
use chunkyard_array::codec::label_block::{Block, from_segmentation};
use chunkyard_engine::labels::Layout;
use serde_json::json;

use super::support::{Voxels, ask, four_bodies, get, import, repository, u64s, unstream};
use crate::harness::Server;

/// Neuroglancer's form of a box of voxels x, y, z, decoded.
fn segmentation(bytes: &[u8], extent: [u32; 3]) -> Vec<u64> {
    let mut block = Vec::new();
    from_segmentation(bytes, extent, &mut block).unwrap();
    let block = Block::parse(&block).unwrap();
    let mut whole = vec![0; block.voxel_count()];
    block.decode_into(&mut whole).unwrap();
    let ([x, y, z], [width, height, _]) = (extent, block.size());
    let mut voxels = Vec::new();
    for at in 0..z * y {
        let row = ((at / y * height + at % y) * width) as usize;
        voxels.extend(&whole[row..row + x as usize]);
    }
    voxels
}

#[tokio::test]
async fn a_box_has_the_same_voxels_in_every_form() {
    let (directory, repo) = repository().await;
    // Ids that a double has not, in a volume whose edges are no whole blocks.
    let shape = [20, 18, 40];
    let big = (1u64 << 53) + 1;
    let label = |at: u64| if at % 40 < 30 { big + at % 40 / 10 } else { 0 };
    let labels: Vec<u64> = (0..20 * 18 * 40).map(label).collect();
    let volume = Voxels { shape, labels };
    import(&repo, Layout::new(shape).with_block([16; 3]), &volume).await;
    let server = Server::start(&[("brain", directory.path())]);
    let raw = "/api/node/main/seg/raw/0_1_2";
    for ([width, height, depth], [x, y, z]) in [
        ([40, 18, 20], [0, 0, 0]),
        ([16, 16, 16], [16, 0, 0]),
        ([7, 5, 3], [25, 13, 15]),
        ([64, 64, 64], [-16, -16, 32]),
        ([20, 20, 20], [-10, -10, -10]),
    ] {
        let mut expected = Vec::new();
        for dz in 0..depth {
            for dy in 0..height {
                for dx in 0..width {
                    let at: [i64; 3] = [z + dz, y + dy, x + dx];
                    let inside =
                        at.iter().zip(shape).all(|(at, extent)| (0..extent as i64).contains(at));
                    let place = ((at[0] * 18 + at[1]) * 40 + at[2]) as usize;
                    expected.push(if inside { volume.labels[place] } else { 0 });
                }
            }
        }
        let path = format!("{raw}/{width}_{height}_{depth}/{x}_{y}_{z}");
        let plain = get(&server, &path, "").await;
        assert_eq!(u64s(&plain), expected, "{path}");
        let lz4 = get(&server, &format!("{path}?compression=lz4"), "").await;
        assert_eq!(lz4_flex::block::decompress(&lz4, plain.len()).unwrap(), plain);
        let gzip = get(&server, &format!("{path}?compression=gzip"), "").await;
        assert_eq!(gunzip(&gzip, plain.len()).unwrap(), plain);
        let extent = [width, height, depth].map(|extent| extent as u32);
        let google = get(&server, &format!("{path}?compression=google"), "").await;
        assert_eq!(segmentation(&google, extent), expected, "{path}");
        // A browser takes the gzip off, because a header says that it is there; this client does not.
        let answer =
            server.get(&format!("{path}?compression=googlegzip&scale=0&app=Neuroglancer")).await;
        assert_eq!(answer.headers()["content-encoding"], "gzip");
        let packed = answer.bytes().await.unwrap();
        assert_eq!(gunzip(&packed, 1 << 20).unwrap(), google);
    }
    // Half the resolution: voxels of ten of one label vote alike.
    let coarse = u64s(&get(&server, &format!("{raw}/20_9_10/0_0_0?scale=1"), "").await);
    assert_eq!(
        &coarse[..16],
        [
            big,
            big,
            big,
            big,
            big,
            big + 1,
            big + 1,
            big + 1,
            big + 1,
            big + 1,
            big + 2,
            big + 2,
            big + 2,
            big + 2,
            big + 2,
            0
        ]
    );
}

#[tokio::test]
async fn what_was_never_written_is_zeros() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/main/seg";
    let far = get(&server, &format!("{node}/raw/0_1_2/16_16_16/1024_-2048_4096"), "").await;
    assert_eq!(u64s(&far), vec![0; 4096]);
    let path = format!("{node}/raw/0_1_2/16_16_16/1024_0_0?compression=googlegzip");
    let google = gunzip(&get(&server, &path, "").await, 1 << 16).unwrap();
    assert_eq!(segmentation(&google, [16; 3]), vec![0; 4096]);
    assert_eq!(get(&server, &format!("{node}/label/-1_0_0"), "").await, b"{\"Label\": 0}");
    let points = json!([[0, 0, 0], [1000, 0, 0], [17, 3, 3], [-2147483648, 2147483647, 0]]);
    assert_eq!(get(&server, &format!("{node}/labels"), points.to_string()).await, b"[1,0,2,0]");
    assert!(get(&server, &format!("{node}/blocks/16_16_16/1024_0_0"), "").await.is_empty());
    // As many blocks as 32 bits have, of which four are there.
    let all = format!("{node}/blocks/2147483632_2147483632_2147483632/0_0_0?compression=blocks");
    assert_eq!(unstream(&get(&server, &all, "").await).len(), 4);
    let some = format!("{node}/specificblocks?blocks=0,0,0,9,9,9,-1,0,0,2,0,0");
    let found = unstream(&get(&server, &some, "").await);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [[0, 0, 0], [2, 0, 0]]);
}

#[tokio::test]
async fn a_sparse_volume_is_runs_along_x() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/main/seg";
    let whole = get(&server, &format!("{node}/sparsevol/2"), "").await;
    assert_eq!(whole.len(), 12 + 16 * 256);
    assert_eq!(whole[..12], [0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    let words = |bytes: &[u8]| -> Vec<i32> {
        bytes.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect()
    };
    assert_eq!(words(&whole[12..44]), [16, 0, 0, 16, 16, 1, 0, 16]);
    let streamed = get(&server, &format!("{node}/sparsevol/2?format=srles"), "").await;
    assert_eq!(streamed, whole[12..]);
    let some = format!("{node}/sparsevol/2?format=srles&minx=20&maxx=22&miny=3&maxy=3&minz=15");
    assert_eq!(words(&get(&server, &some, "").await), [20, 3, 15, 3]);
    let coarse = get(&server, &format!("{node}/sparsevol/2?format=srles&scale=1"), "").await;
    assert_eq!(words(&coarse)[..4], [8, 0, 0, 8]);
    assert_eq!(coarse.len(), 16 * 64);
    let blocks = get(&server, &format!("{node}/sparsevol-coarse/2"), "").await;
    assert_eq!(words(&blocks), [0x300, 0, 1, 1, 0, 0, 1]);
    for (label, status) in [("2", 200), ("9", 204)] {
        let (found, _) = ask(&server, "HEAD", &format!("{node}/sparsevol/{label}"), "").await;
        assert_eq!(found, status);
    }
    let about = get(&server, &format!("{node}/sparsevol-size/2"), "").await;
    let told =
        r#"{"voxels": 4096, "numblocks": 1, "minvoxel": [16, 0, 0], "maxvoxel": [31, 15, 15]}"#;
    assert_eq!(String::from_utf8(about).unwrap(), told);
}

#[tokio::test]
async fn numbers_about_bodies_are_told() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    let node = "/api/node/main/seg";
    for (path, body, told) in [
        ("mapping", "[1,9,2]", "[1,0,2]"),
        ("mapping?nolookup=true", "[1,9,2]", "[1,9,2]"),
        ("sizes", "[4,9]", "[4096,0]"),
        ("sizes?supervoxels=true", "[4,9]", "[4096,0]"),
        ("existing-labels", "", "[1,2,3,4]"),
        ("maxlabel", "", r#"{"maxlabel": 4}"#),
        ("supervoxels/3", "", "[3]"),
        ("supervoxel-sizes/3", "", "{\n  \"supervoxels\": [3],\n  \"sizes\": [4096]\n}"),
        ("mappings", "", ""),
    ] {
        let found = get(&server, &format!("{node}/{path}"), body).await;
        assert_eq!(String::from_utf8(found).unwrap(), told, "{path}");
    }
    assert_eq!(
        u64s(&get(&server, &format!("{node}/listlabels?start=2&number=2"), "").await),
        [2, 3]
    );
    for path in
        ["size/9", "supervoxels/9", "index/9", "lastmod/9", "sparsevol/9", "sparsevol-size/9"]
    {
        let (status, _) = ask(&server, "GET", &format!("{node}/{path}"), "").await;
        assert_eq!(status, 404, "{path}");
    }
}
