//! The meta files of a new dataset, before they are rendered.
//!
//! A conversion knows its columns long before it knows their sizes, so it keeps the files as values and renders
//! them once, at the end.

use bytes::Bytes;
use chunkyard_array::Attributes;

use crate::superchunk::meta::{self, RootDirs, Sizes, Storage};

/// The content of a meta file.
#[derive(Debug, Clone)]
pub(crate) enum Document {
    /// Attributes, perhaps with a checksum.
    Attributes { attributes: Attributes, sealed: bool },
    /// `meta/storage`.
    Storage(Storage),
    /// `meta/sizes`.
    Sizes(Sizes),
    /// The list of columns that are datasets of their own.
    RootDirs(RootDirs),
}

impl Document {
    /// The bytes of the file.
    pub(crate) fn render(&self) -> Bytes {
        match self {
            Self::Attributes { attributes, sealed: true } => {
                meta::render_sealed_attributes(attributes)
            }
            Self::Attributes { attributes, sealed: false } => meta::render_attributes(attributes),
            Self::Storage(storage) => storage.render(),
            Self::Sizes(sizes) => sizes.render(),
            Self::RootDirs(dirs) => dirs.render(),
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superchunk::create::{Compression, Creation, Wish};
    use crate::superchunk::dtype;
    use crate::superchunk::model::Style;
    use chunkyard_array::codec::blosc::{Compressor, Shuffle};
    use serde_json::json;

    /// A conversion goes by the values, and a reader by the bytes: both must find the same.
    #[test]
    fn a_document_is_read_as_it_was() {
        let compression = Compression {
            compressor: Compressor::Lz4,
            level: 5,
            shuffle: Shuffle::Bit,
            block_bytes: 4096,
        };
        for (row, default) in [
            ("'<i4'", json!(7)),
            ("'>f8'", json!("NaN")),
            ("'|b1'", json!(true)),
            ("[('a', '<i4'), ('b', '<f4', (2,))]", json!(null)),
        ] {
            let row = dtype::parse(row).unwrap();
            for style in [Style::Superchunk, Style::Bcolz] {
                let mut creation = Creation::new(row.clone(), &[]);
                creation.style = style;
                creation.attributes.insert("unit".into(), json!("K"));
                creation.wish = Wish {
                    default: Some(default.clone()).filter(|default| !default.is_null()),
                    compression: Some(compression),
                    dimension_names: Some(vec![Some("t".into())]),
                    ..Wish::default()
                };
                for (path, document) in creation.documents().unwrap() {
                    let bytes = document.render();
                    match document {
                        Document::Storage(storage) => {
                            assert_eq!(Storage::parse(&path, &bytes).unwrap(), storage);
                        }
                        Document::Sizes(sizes) => {
                            assert_eq!(Sizes::parse(&path, &bytes).unwrap(), sizes);
                        }
                        Document::Attributes { .. } | Document::RootDirs(_) => {}
                    }
                }
            }
        }
    }
}
