//! Rules for errors that refuse bytes.

use chunkyard_array::Error as ArrayError;
use chunkyard_engine::repo::hostile::FILE;
use chunkyard_engine::{Error, ErrorKind};

/// The engine refused bytes: because of their content, and the error names their file.
pub(crate) fn is_about_bytes(error: &Error) {
    let kind = error.kind();
    assert!(
        matches!(kind, ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Unsupported),
        "bytes cannot cause {error:?}"
    );
    if let Error::Corrupt { file, what, .. } = error {
        assert!(file == FILE && !what.is_empty(), "which bytes? {error:?}");
    }
}

/// The array model refused a document or a text.
pub(crate) fn is_about_document(error: &ArrayError) {
    assert!(
        matches!(error, ArrayError::Invalid { .. } | ArrayError::Unsupported { .. }),
        "a document cannot cause {error:?}"
    );
    assert!(!error.to_string().is_empty());
}

/// A decoder refused a chunk.
pub(crate) fn is_about_chunk(error: &ArrayError) {
    assert!(matches!(error, ArrayError::Corrupt { .. }), "a chunk cannot cause {error:?}");
}

/// A self-describing buffer was refused: it is wrong, or of a kind we do not read.
pub(crate) fn is_about_buffer(error: &ArrayError) {
    if !matches!(error, ArrayError::Unsupported { .. }) {
        is_about_chunk(error);
    }
}
