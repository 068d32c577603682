//! Every source into every sink by every movement, in memory and on disk.

use chunkyard_engine::pipeline::{Movement, Wishes};

use super::sample::{Sample, dtypes};
use super::support::{From, To, Yard, convert, read_back, zarray};

/// Wishes that make an array with chunks of `chunks` move this way.
fn wishes(to: To, movement: Movement, chunks: &[u64]) -> Wishes {
    match movement {
        Movement::Copy => to.wishes(chunks),
        Movement::Transcode => {
            Wishes { codec: Some("blosc:lz4:5+crc32c".into()), ..to.wishes(chunks) }
        }
        Movement::Regrid => {
            let others: Vec<u64> = chunks.iter().map(|extent| extent * 2 / 3 + 1).collect();
            to.wishes(&others)
        }
    }
}

/// Converts a sample from every format into every format; `movements` are the movements to try.
async fn all_ways(yard: &Yard, sample: &Sample, label: &str, movements: &[Movement]) {
    let chunks = sample.spec.chunk_shape().unwrap().to_vec();
    for from in From::ALL {
        if from == From::Zarr2 && zarray(sample).is_none() {
            continue;
        }
        let name = format!("{label}-{from:?}");
        let source = from.write(yard, &name, sample).await;
        for to in To::ALL {
            for &movement in movements {
                let target = format!("{name}-{to:?}-{movement}");
                let wishes = wishes(to, movement, &chunks);
                let done = convert(&source, &yard.at(&target), to.format(), &wishes).await;
                // An array of one element per chunk has no other grid to go to.
                if wishes.chunks.as_deref() != Some(&chunks[..]) || movement != Movement::Regrid {
                    assert_eq!(done.movement(), movement, "{target}");
                }
                assert_eq!(done.outcome.bytes, done.plan.bytes());
                assert!(read_back(yard, &target).await == sample.array, "{target} differs");
            }
        }
    }
}

const ALL: [Movement; 3] = [Movement::Copy, Movement::Transcode, Movement::Regrid];

#[tokio::test]
async fn every_source_goes_into_every_sink_by_every_movement() {
    for yard in Yard::both() {
        all_ways(&yard, &Sample::new(&[13, 11, 7], &[4, 4, 3], "int32"), "t", &ALL).await;
    }
}

#[tokio::test]
async fn odd_shapes_go_all_ways() {
    for (label, shape, chunks) in [
        ("0d", &[][..], &[][..]),
        ("prime", &[101], &[7]),
        ("primes", &[31, 37], &[8, 5]),
        ("four", &[5, 3, 7, 2], &[2, 3, 4, 1]),
        ("empty", &[0, 5], &[2, 3]),
        ("nothing", &[0], &[1]),
        ("larger", &[3, 5], &[16, 16]),
        ("single", &[3, 4], &[1, 1]),
        ("exact", &[8, 6], &[4, 3]),
    ] {
        all_ways(&Yard::memory(), &Sample::new(shape, chunks, "uint16"), label, &ALL).await;
    }
}

#[tokio::test]
async fn every_data_type_goes_all_ways() {
    for dtype in dtypes() {
        let label = dtype.get("name").unwrap_or(&dtype).as_str().unwrap().to_owned();
        all_ways(&Yard::memory(), &Sample::new(&[7, 11], &[3, 4], dtype), &label, &ALL).await;
    }
}
