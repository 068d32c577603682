//! Missing chunks stay missing: no movement makes chunks of nothing.

use super::formats::{exact_sinks, named, sources_by_hand};
use super::sample::Sample;
use super::support::{PATH, Yard, convert, opened, read_back, stored};

/// Only chunk (1, 2) of 4 by 4 holds anything.
fn sample(dtype: &str) -> Sample {
    Sample::new(&[11, 11], &[3, 3], dtype).sparse(|index| index == [1, 2])
}

#[tokio::test]
async fn missing_chunks_stay_missing() {
    for dtype in ["int32", "string", "bytes"] {
        for from in sources_by_hand() {
            for to in exact_sinks() {
                for (chunks, expected) in [
                    ([3, 3], vec![vec![1, 2]]),
                    ([6, 6], vec![vec![0, 1]]),
                    ([3, 2], vec![vec![1, 3], vec![1, 4]]),
                ] {
                    let yard = Yard::memory();
                    let sample = sample(dtype);
                    assert!((from.holds)(&sample));
                    let source = from.write(&yard, "source", &sample).await;
                    let wishes = to.wishes(&chunks);
                    let done = convert(&source, &yard.at("target"), to.format, &wishes).await;
                    let what = format!("{dtype} {from:?} {to:?} {chunks:?}");
                    assert!(read_back(&yard, "target").await == sample.array, "{what}");
                    let target = opened(&yard.at("target")).await;
                    assert_eq!(stored(&target, PATH).await, expected, "{what}");
                    assert_eq!(done.outcome.chunks, expected.len() as u64, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_array_of_fill_values_has_no_objects() {
    for to in exact_sinks() {
        let yard = Yard::directory();
        let empty = sample("float64").sparse(|_| false);
        let source = named("zarr3").write(&yard, "source", &empty).await;
        let done = convert(&source, &yard.at("target"), to.format, &to.wishes(&[4, 4])).await;
        assert_eq!(done.outcome.chunks, 0);
        assert!(stored(&opened(&yard.at("target")).await, PATH).await.is_empty());
        assert!(read_back(&yard, "target").await == empty.array);
        yard.holds_only(&["source", "target"]);
    }
}
