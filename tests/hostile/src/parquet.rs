//! The Parquet files of a repository, byte by byte.
//!
//! Most mutations die in Parquet's own framing; the seeds are not compressed, so that mutated
//! values survive. [`crate::columns`] goes where these rarely get.

use std::collections::HashSet;

use bytes::Bytes;
use chunkyard_engine::repo::{Coord, hostile};

use crate::error::is_about_bytes;

/// The dataset all seeds belong to.
pub(crate) const DATASET: &str = "66f08abx07q8mbwfg5r7fb72rw";

/// Structure files.
pub(crate) fn structure(data: &[u8]) {
    let nodes = match hostile::parse_structure(DATASET, &Bytes::copy_from_slice(data)) {
        Ok(nodes) => nodes,
        Err(error) => return is_about_bytes(&error),
    };
    match hostile::render_structure(DATASET, &nodes) {
        Ok(rendered) => {
            let again = hostile::parse_structure(DATASET, &rendered);
            assert_eq!(again.expect("a rendered file can be parsed"), nodes);
        }
        Err(error) => is_about_bytes(&error),
    }
}

/// Manifests and change files.
pub(crate) fn manifest(data: &[u8]) {
    let rows = match hostile::parse_manifest(DATASET, &Bytes::copy_from_slice(data)) {
        Ok(rows) => rows,
        Err(error) => return is_about_bytes(&error),
    };
    // The reader of a row checks order and coordinates; a writer demands both.
    let Some((_, first, _)) = rows.first() else { return };
    let rank = (0..=8).find(|&rank| Coord::from_bytes(first).decode(rank).is_ok());
    if let Some(Ok(rendered)) = rank.map(|rank| hostile::render_manifest(DATASET, rank, &rows)) {
        let again = hostile::parse_manifest(DATASET, &rendered);
        assert_eq!(again.expect("a rendered file can be parsed"), rows);
    }
}

/// Manifests read page by page. Before the file come a coordinate with its length, and the number
/// of bytes at the end that are fetched as footer.
pub(crate) fn manifest_pages(data: &[u8]) {
    let Some((coord, tail, file)) = split_pages(data) else { return };
    let bytes = Bytes::copy_from_slice(file);
    if let Err(error) = hostile::read_pages(DATASET, &bytes, tail, coord) {
        is_about_bytes(&error);
    }
}

/// The parts of an input for `manifest_pages`.
pub fn split_pages(data: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let (&length, rest) = data.split_first()?;
    let (coord, rest) = rest.split_at_checked(length.into())?;
    let (tail, file) = rest.split_first_chunk()?;
    Some((coord, u16::from_le_bytes(*tail).into(), file))
}

/// Files of tables, walked and searched. Before the file comes a key with its length.
pub(crate) fn table(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return };
    let Some((key, file)) = rest.split_at_checked(length.into()) else { return };
    match hostile::read_table(DATASET, &Bytes::copy_from_slice(file), key) {
        Ok((rows, near)) => assert!(near <= rows, "{near} rows of {rows}"),
        Err(error) => is_about_bytes(&error),
    }
}

/// Attributes files.
pub(crate) fn attributes(data: &[u8]) {
    let documents = match hostile::parse_attributes(DATASET, &Bytes::copy_from_slice(data)) {
        Ok(documents) => documents,
        Err(error) => return is_about_bytes(&error),
    };
    let texts: Vec<Vec<u8>> = documents
        .iter()
        .map(|document| serde_json::to_vec(&**document).expect("JSON is JSON"))
        .collect();
    let rendered = hostile::render_attributes(DATASET, &texts).expect("documents can be rendered");
    let again = hostile::parse_attributes(DATASET, &rendered);
    assert_eq!(again.expect("a rendered file can be parsed"), documents);
}

/// Lists of announced collections.
pub(crate) fn collection(data: &[u8]) {
    let files = match hostile::parse_collection(DATASET, &Bytes::copy_from_slice(data)) {
        Ok(files) => files,
        Err(error) => return is_about_bytes(&error),
    };
    let list: Vec<String> = files.iter().cloned().collect();
    let rendered = hostile::render_collection(DATASET, &list).expect("a list can be rendered");
    let again: HashSet<String> =
        hostile::parse_collection(DATASET, &rendered).expect("a rendered list can be parsed");
    assert_eq!(again, files);
}
