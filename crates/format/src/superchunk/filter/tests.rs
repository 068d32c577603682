use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_store::{Options, Store};

use super::*;
use crate::Place;
use crate::superchunk::{BlzOptions, Wanted};

async fn dataset(dtype: &str, columns: Vec<Vec<u8>>) -> Blz {
    let place = Place::within(Store::unnamed(&Options::default()).unwrap(), "x.blz").unwrap();
    let wanted = Wanted { dtype: dtype.to_owned(), chunklen: Some(3), ..Wanted::default() };
    let creation = wanted.creation().unwrap();
    assert_eq!(creation.attributes, Attributes::new());
    let blz = Blz::create(&place, &creation, BlzOptions::default()).await.unwrap();
    blz.append(columns.into_iter().map(Bytes::from).collect()).await.unwrap();
    blz
}

async fn found(blz: &Blz, text: &str) -> Vec<u64> {
    blz.matching(&Filter::parse(text).unwrap(), 0..blz.len()).await.unwrap()
}

#[tokio::test]
async fn rows_of_a_table_are_found_by_several_columns() {
    let x = [0.5f64, f64::NAN, 3.0, 4.0, f64::INFINITY].iter().flat_map(|n| n.to_le_bytes());
    let y = [5i64, 4, 3, -2, i64::MAX].iter().flat_map(|n| n.to_le_bytes());
    let name = b"ab\0b\0\0abc\0\0\0zz\0".to_vec();
    let dtype = "[('x', '<f8'), ('the y', '<i8'), ('name', 'S3')]";
    let blz = dataset(dtype, vec![x.collect(), y.collect(), name]).await;
    assert_eq!(found(&blz, "x >= 3").await, [2, 3, 4]);
    assert_eq!(found(&blz, "x != 3").await, [0, 1, 3, 4]);
    assert_eq!(found(&blz, "x > 0 and `the y` < 4.5").await, [2, 3]);
    assert_eq!(found(&blz, "`the y` >= 9223372036854775807 & x > 1e300").await, [4]);
    assert_eq!(found(&blz, "name == 'ab' AND x<1").await, [0]);
    assert_eq!(found(&blz, "name > \"ab\"").await, [1, 2, 4]);
    let filter = Filter::parse("x >= 3").unwrap();
    assert_eq!(blz.matching(&filter, 3..4).await.unwrap(), [3]);
    assert!(blz.matching(&filter, 3..6).await.is_err());
    for refused in ["y > 1", "x > 'a'", "name > 1", "value > 1"] {
        let filter = Filter::parse(refused).unwrap();
        assert!(blz.matching(&filter, 0..5).await.is_err(), "{refused}");
    }
}

#[tokio::test]
async fn whole_numbers_compare_exactly_with_others() {
    let numbers = [-3i64, 0, 1 << 53, (1 << 53) + 1];
    let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let blz = dataset("<i8", vec![bytes]).await;
    assert_eq!(found(&blz, "value > 9007199254740992").await, [3]);
    assert_eq!(found(&blz, "value > 9007199254740992.0").await, [3]);
    assert_eq!(found(&blz, "value >= -2.5").await, [1, 2, 3]);
    assert_eq!(found(&blz, "value < -2.5").await, [0]);
    assert_eq!(found(&blz, "value < 1e99").await, [0, 1, 2, 3]);
    assert_eq!(found(&blz, "value > -inf").await, [0, 1, 2, 3]);
    assert!(found(&blz, "value == nan").await.is_empty());
}

#[tokio::test]
async fn text_dates_and_truth_are_compared_as_what_they_are() {
    let text: Vec<u8> = ["é", "a", "zz"]
        .iter()
        .flat_map(|text| {
            let mut codes: Vec<u32> = text.chars().map(u32::from).collect();
            codes.resize(2, 0);
            codes.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>()
        })
        .collect();
    let blz = dataset("<U2", vec![text]).await;
    assert_eq!(found(&blz, "value > 'a'").await, [0, 2]);
    assert_eq!(found(&blz, "value = 'é'").await, [0]);
    let days = [0i64, i64::MIN, 20000].iter().flat_map(|n| n.to_le_bytes()).collect();
    let blz = dataset("datetime64[D]", vec![days]).await;
    assert_eq!(found(&blz, "value < 100").await, [0]);
    let blz = dataset("bool", vec![vec![1, 0, 1]]).await;
    assert_eq!(found(&blz, "value == true").await, [0, 2]);
}

#[test]
fn a_malformed_condition_names_the_place() {
    for text in
        ["", "x", "x >", "x > 3 and", "x > 3 or y > 2", "3 < x", "x > 'a", "x ~ 3", "x > 1 y > 2"]
    {
        assert!(matches!(Filter::parse(text), Err(Error::Invalid { .. })), "{text}");
    }
    let error = Filter::parse("x > 3 or y > 2").unwrap_err().to_string();
    assert!(error.contains("\"or y > 2\""), "{error}");
}
