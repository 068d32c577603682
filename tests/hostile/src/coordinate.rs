//! Encoded chunk indices.

use chunkyard_engine::repo::Coord;

/// Two coordinates of one rank (the first byte): each has one encoding, and bytes sort as indices.
pub(crate) fn check(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else { return };
    let (rank, middle) = (usize::from(first % 8), usize::from(first / 8).min(bytes.len()));
    let (left, right) = bytes.split_at(middle);
    let (left, right) = (Coord::from_bytes(left), Coord::from_bytes(right));
    let decoded = [&left, &right].map(|coord| coord.decode(rank));
    for (coord, index) in [&left, &right].into_iter().zip(&decoded) {
        if let Ok(index) = index {
            assert_eq!(index.len(), rank);
            assert_eq!(Coord::encode(index), *coord, "two encodings of {index:?}");
        }
    }
    if let [Ok(a), Ok(b)] = decoded {
        assert_eq!(left.cmp(&right), a.cmp(&b), "{a:?} and {b:?}");
    }
}
