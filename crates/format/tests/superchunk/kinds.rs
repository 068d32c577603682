//! Every type of row, every layout, and the lengths at which something begins or ends.

use bytes::Bytes;
use chunkyard_array::{ElementsBuf, Points, Region};
use chunkyard_format::Place;
use chunkyard_format::superchunk::{Blz, BlzOptions, Creation, Style, dtype};
use serde_json::json;

use super::support::{check_file, creation, files, local, memory, numbers, open, rows, tidy};

/// Legal elements of a type, little-endian.
fn elements(text: &str, bytes: usize) -> Bytes {
    let of = |at: usize| match text {
        "|b1" => at.is_multiple_of(3).into(),
        text if text.contains('S') => b'a' + (at % 26) as u8,
        // Each letter has four bytes.
        text if text.contains('U') => [b'A' + (at / 4 % 26) as u8, 0, 0, 0][at % 4],
        _ => (at * 37 + at / 11) as u8,
    };
    (0..bytes).map(of).collect::<Vec<u8>>().into()
}

async fn comes_back(place: &Place, style: Style, text: &str, row_shape: &[u64]) {
    let mut wanted = Creation::new(dtype::parse(text).unwrap(), row_shape);
    wanted.style = style;
    (wanted.wish.chunklen, wanted.wish.superchunk) = (Some(7), Some(2));
    let blz = Blz::create(place, &wanted, BlzOptions::default()).await.unwrap();
    let row = blz.columns()[0].row_bytes() as usize;
    let all = elements(text, 40 * row);
    for part in [0..3, 3..20, 20..21, 21..21, 21..40] {
        blz.append(vec![all.slice(part.start * row..part.end * row)]).await.unwrap();
        blz.flush().await.unwrap();
    }
    let shape: Vec<u64> = [40].into_iter().chain(row_shape.iter().copied()).collect();
    let what = format!("{style:?} {text} {row_shape:?}");
    for blz in [blz, open(place).await] {
        let reader = blz.reader("/").unwrap();
        let read = reader.read_elements(&Region::whole(&shape)).await.unwrap();
        assert_eq!(read, ElementsBuf::Fixed(all.to_vec()), "{what}");
        // A row at the end, in the chunk that is not full.
        let first = vec![0; row_shape.len()];
        let origin: Vec<u64> = [38].into_iter().chain(first).collect();
        let one: Vec<u64> = [2].into_iter().chain(row_shape.iter().copied()).collect();
        let region = Region::new(&origin[..], &one[..]).unwrap();
        let read = reader.read_elements(&region).await.unwrap();
        assert_eq!(read, ElementsBuf::Fixed(all.slice(38 * row..).to_vec()), "{what}");
    }
}

#[tokio::test]
async fn rows_of_every_type_come_back() {
    let types = [
        "|b1",
        "|i1",
        "<u2",
        ">i4",
        "<i8",
        "<f4",
        ">f8",
        "<c8",
        ">c16",
        "|S5",
        "<U3",
        ">U2",
        "datetime64[ns]",
        "<m8[us]",
    ];
    for text in types {
        for row_shape in [&[][..], &[2, 3]] {
            for style in [Style::Superchunk, Style::Document, Style::Bcolz] {
                comes_back(&memory(), style, text, row_shape).await;
            }
            comes_back(&local().1, Style::Superchunk, text, row_shape).await;
        }
    }
}

#[tokio::test]
async fn any_length_of_files_is_whole_at_every_step() {
    for superchunk in [1, 2, 3, 1000] {
        for style in [Style::Superchunk, Style::Document, Style::Bcolz] {
            let (_temp, local) = local();
            for place in [memory(), local] {
                let mut wanted = creation("<i8", 5, superchunk);
                wanted.style = style;
                let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
                let mut len = 0;
                for more in [0, 5, 5, 1, 4, 3, 12, 30, 2] {
                    blz.append(vec![rows(len..len + more)]).await.unwrap();
                    blz.flush().await.unwrap();
                    len += more;
                    let what = format!("{style:?} {superchunk} {len}");
                    tidy(&place, 5, superchunk, &what).await;
                    let found = numbers(&open(&place).await, "/").await;
                    assert_eq!(found, (0..len).collect::<Vec<_>>(), "{what}");
                }
                let points = Points::new(vec![vec![0, 61, 7, 60, 61]]).unwrap();
                let read = blz.reader("/").unwrap().read_point_elements(&points).await.unwrap();
                let expected = [0_i64, 61, 7, 60, 61].map(i64::to_le_bytes).concat();
                assert_eq!(read, ElementsBuf::Fixed(expected));
            }
        }
    }
}

#[tokio::test]
async fn a_dataset_grows_by_its_default_row() {
    let (_temp, local) = local();
    for place in [memory(), local] {
        let mut wanted = Creation::new(dtype::parse(">i8").unwrap(), &[2]);
        (wanted.wish.chunklen, wanted.wish.superchunk) = (Some(4), Some(2));
        wanted.wish.default = Some(json!([3, -4]));
        let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
        blz.append(vec![rows(0..6)]).await.unwrap();
        blz.resize(25).await.unwrap();
        let mut expected: Vec<i64> = (0..6).collect();
        expected.extend([3, -4].repeat(22));
        let whole = Region::whole(&[25, 2]);
        let bytes: Vec<u8> = expected.into_iter().flat_map(i64::to_le_bytes).collect();
        let expected = ElementsBuf::Fixed(bytes);
        assert_eq!(blz.reader("/").unwrap().read_elements(&whole).await.unwrap(), expected);
        blz.flush().await.unwrap();
        let other = open(&place).await;
        assert_eq!(other.reader("/").unwrap().read_elements(&whole).await.unwrap(), expected);
    }
}

/// The example of the document: ten million numbers in chunks of 16384.
#[tokio::test]
async fn the_documents_example_is_ten_files() {
    let (_temp, place) = local();
    let wanted = creation("<f8", 16384, 64);
    let blz = Blz::create(&place, &wanted, BlzOptions::default()).await.unwrap();
    blz.resize(10_000_000).await.unwrap();
    blz.flush().await.unwrap();
    let blz = open(&place).await;
    assert_eq!((blz.len(), blz.sizes().nbytes), (10_000_000, 80_000_000));
    let found = files(&place, "data").await;
    let count = |(name, bytes): &(String, Bytes)| check_file(name, bytes, "");
    let mut counts: Vec<u64> = found.iter().map(count).collect();
    counts.sort_unstable();
    // 610 full chunks, and a tail of 5760 rows.
    assert_eq!(counts, [[1, 34].as_slice(), &[64; 9]].concat());
    let stored: u64 = found.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(blz.sizes().cbytes < stored && stored < blz.sizes().cbytes + 20_000);
}
