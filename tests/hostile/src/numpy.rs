//! NumPy's texts for types of rows.

use chunkyard_array::numpy::{self, npy};

use crate::error::is_about_document;

/// The text of a type: what is printed for it is read as the same.
pub(crate) fn dtype(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let kind = match numpy::parse(&text) {
        Ok(kind) => kind,
        Err(error) => return is_about_document(&error),
    };
    let rendered = numpy::render(&kind).expect("a type of NumPy");
    let again = numpy::parse(&rendered).expect("what was printed can be read");
    // NumPy has two names for the same unit of time; both are printed alike.
    assert_eq!(numpy::render(&again).expect("a type of NumPy"), rendered);
    assert_eq!(numpy::item_bytes(&again), numpy::item_bytes(&kind));
    // A header has room for less than a text may have.
    let Ok(header) = npy::render(&kind, &[3]) else { return };
    let (_, before) = npy::length(header.first_chunk().expect("a head")).expect("our own version");
    let text = header.get(before..).unwrap_or_default();
    let row = npy::Header::parse(text).expect("our own header").row().expect("the same type");
    assert_eq!(numpy::repr(&row).expect("a type"), numpy::repr(&kind).expect("a type"));
}
