use serde_json::json;

use super::*;
use crate::codec::Codecs;
use crate::{ArraySpec, Elements};

const SHAPES: [&[u64]; 5] = [&[1, 1, 1], &[5, 7, 9], &[1, 8, 8, 8], &[3, 4, 5, 6], &[3, 1, 1, 13]];

/// Elements that change slowly, as images do; 8 bits of each are used.
fn image(shape: &[u64], item: usize) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    (0..count).flat_map(|n| (128 + n % 64).to_le_bytes()[..item].to_vec()).collect()
}

fn bound(dtype: &str, shape: &[u64], codec: serde_json::Value) -> Result<Codecs> {
    let spec = ArraySpec::builder(shape, shape, dtype).codecs(vec![codec]).build()?;
    Codecs::new(&spec)
}

fn decoded(codecs: &Codecs, chunk: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0xaa; bytes];
    codecs.decode_into(chunk, &mut out)?;
    Ok(out)
}

#[test]
fn a_png_has_every_voxel() {
    let more: [&[u64]; 2] = [&[2, 3, 4, 5], &[4, 3, 4, 5]];
    for (dtype, item) in [("uint8", 1), ("uint16", 2)] {
        for shape in SHAPES.into_iter().chain(more) {
            let codecs = bound(dtype, shape, json!({"name": PNG})).unwrap();
            let mut voxels = image(shape, item);
            let noise = (0..).map(|n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8);
            voxels.iter_mut().zip(noise).step_by(3).for_each(|(byte, noise)| *byte = noise);
            let chunk = codecs.encode(Elements::Fixed(&voxels)).unwrap();
            assert!(chunk.starts_with(b"\x89PNG"));
            assert!(decoded(&codecs, &chunk, voxels.len()).unwrap() == voxels, "{dtype} {shape:?}");
        }
    }
}

#[test]
fn a_jpeg_has_about_every_voxel() {
    for shape in SHAPES {
        for codec in
            [json!({"name": JPEG}), json!({"name": JPEG, "configuration": {"quality": 95}})]
        {
            let codecs = bound("uint8", shape, codec).unwrap();
            let count: u64 = shape.iter().product();
            let voxels = vec![90; count as usize];
            let chunk = codecs.encode(Elements::Fixed(&voxels)).unwrap();
            assert!(chunk.starts_with(b"\xff\xd8"));
            let back = decoded(&codecs, &chunk, voxels.len()).unwrap();
            assert!(back.iter().all(|voxel| voxel.abs_diff(90) < 3), "{shape:?}: {back:?}");
        }
    }
}

#[test]
fn a_quality_is_a_trade() {
    let shape = [16, 16, 16];
    let sizes = [10, 50, 95].map(|quality| {
        let codec = json!({"name": JPEG, "configuration": {"quality": quality}});
        let codecs = bound("uint8", &shape, codec).unwrap();
        codecs.encode(Elements::Fixed(&image(&shape, 1))).unwrap().len()
    });
    assert!(sizes.is_sorted() && sizes[0] < sizes[2], "{sizes:?}");
}

#[test]
fn damaged_pictures_are_errors_and_never_more_than_their_size() {
    let shape = [4, 8, 8];
    let voxels = image(&shape, 1);
    for name in [PNG, JPEG] {
        let codecs = bound("uint8", &shape, json!({"name": name})).unwrap();
        let chunk = codecs.encode(Elements::Fixed(&voxels)).unwrap();
        for cut in 0..chunk.len() - 2 {
            assert!(decoded(&codecs, &chunk[..cut], voxels.len()).is_err(), "{name} cut at {cut}");
        }
        for at in 0..chunk.len() {
            for bit in 0..8 {
                let mut flipped = chunk.to_vec();
                flipped[at] ^= 1 << bit;
                // A JPEG has no checksum: what comes out of it may be another picture.
                if let Ok(found) = decoded(&codecs, &flipped, voxels.len()) {
                    assert!(name == JPEG || found == voxels, "bit {bit} of byte {at}");
                }
            }
        }
    }
}

#[test]
fn a_picture_of_another_size_is_refused_before_it_is_unpacked() {
    for name in [PNG, JPEG] {
        let small = bound("uint8", &[4, 8, 8], json!({"name": name})).unwrap();
        for shape in [&[4, 8, 9][..], &[3, 4, 8, 8], &[40, 300, 300]] {
            let other = bound("uint8", shape, json!({"name": name})).unwrap();
            let chunk = other.encode(Elements::Fixed(&image(shape, 1))).unwrap();
            let error = decoded(&small, &chunk, 256).unwrap_err().to_string();
            assert!(error.contains("256 pixels of 1 channels"), "{name} {shape:?}: {error}");
        }
        // The same pixels in other lines are the same chunk.
        let other = bound("uint8", &[8, 8, 4], json!({"name": name})).unwrap();
        let flat = vec![7; 256];
        let chunk = other.encode(Elements::Fixed(&flat)).unwrap();
        assert_eq!(decoded(&small, &chunk, 256).unwrap(), flat);
    }
    let deep = bound("uint16", &[4, 8, 8], json!({"name": PNG})).unwrap();
    let chunk = deep.encode(Elements::Fixed(&image(&[4, 8, 8], 2))).unwrap();
    let small = bound("uint8", &[4, 8, 8], json!({"name": PNG})).unwrap();
    let error = decoded(&small, &chunk, 256).unwrap_err().to_string();
    assert!(error.contains("samples of 16 bits"), "{error}");
}

#[test]
fn chunks_that_are_no_pictures_are_refused() {
    for (dtype, shape, codec, expected) in [
        ("uint32", &[8, 8, 8][..], json!({"name": PNG}), "uint8 or uint16, not uint32"),
        ("uint16", &[8, 8, 8], json!({"name": JPEG}), "uint8, not uint16"),
        ("uint8", &[8, 8], json!({"name": PNG}), "not with 2"),
        ("uint8", &[5, 8, 8, 8], json!({"name": PNG}), "not 5"),
        ("uint8", &[2, 8, 8, 8], json!({"name": JPEG}), "not 2"),
        ("uint8", &[70_000, 1, 70_000], json!({"name": JPEG}), "65535 pixels"),
        (
            "uint8",
            &[8, 8, 8],
            json!({"name": JPEG, "configuration": {"quality": 101}}),
            "1 to 100, not 101",
        ),
    ] {
        let error = bound(dtype, shape, codec).err().unwrap().to_string();
        assert!(error.contains(expected), "{dtype} {shape:?}: {error}");
    }
    // Lines may be joined where they would be too many.
    bound("uint8", &[512, 512, 8], json!({"name": JPEG})).unwrap();
}
