//! Checks, with our reader, that a container holds the expected content.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_array_format::{Element, Expected, elements, statistics};
use chunkyard_engine::format::container::{Container, Description};

use super::Own;
use super::play::extents;

impl Own {
    /// Compares everything that we read from a container; messages name the `case`.
    pub(crate) async fn check(&self, case: &str, expected: &[Expected]) {
        let container = self.open().await;
        assert_eq!(container.ignored(), vec![], "files that do not count of {case}");
        let mut names: Vec<&str> = expected.iter().map(|a| a.definition.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(container.names().await.unwrap(), names, "arrays of {case}");
        for array in expected {
            let case = format!("{:?} of {case}", array.definition.name);
            check_description(&case, &container, array).await;
            assert_eq!(read_all(&container, array).await, array.elements, "elements of {case}");
        }
    }

    /// Compares descriptions, and chunks as bytes.
    pub(crate) async fn check_raw(&self, case: &str, expected: &[Expected]) {
        let container = self.open().await;
        for array in expected {
            let case = format!("{:?} of {case}", array.definition.name);
            let (name, dtype) = (&array.definition.name, &array.definition.dtype);
            check_definition(&case, &container.describe(name).await.unwrap(), array);
            for chunk in &array.chunks {
                let found = container.read_chunk(name, &extents(chunk)).await.unwrap();
                let bytes = elements::chunk(dtype, &array.chunk_elements(chunk));
                assert_eq!(found.as_deref(), Some(&bytes[..]), "chunk {chunk:?} of {case}");
            }
        }
    }
}

async fn check_description(case: &str, container: &Container, array: &Expected) {
    let name = &array.definition.name;
    let described = container.describe(name).await.unwrap();
    check_definition(case, &described, array);
    let sorted = |attributes: &[(String, _)]| {
        let mut attributes = attributes.to_vec();
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        attributes
    };
    let (found, expected) = (sorted(&described.attributes), sorted(&array.attributes));
    assert_eq!(found, expected, "attributes of {case}");
    match container.statistics(name).await.unwrap() {
        // Statistics of an array that was never written may be missing.
        None => assert_eq!(array.statistics, None, "statistics of {case}"),
        Some(found) => assert_eq!(found, statistics::of(array), "statistics of {case}"),
    }
}

/// Types, extents, names of dimensions, fill values.
fn check_definition(case: &str, described: &Description, array: &Expected) {
    let (meta, definition) = (&described.meta, &array.definition);
    assert_eq!(meta.dtype, definition.dtype, "type of {case}");
    assert_eq!(meta.shape, definition.shape, "shape of {case}");
    assert_eq!(meta.chunk_shape, definition.chunk_shape(), "chunks of {case}");
    assert_eq!(meta.dimension_names, definition.dimension_names(), "names of {case}");
    assert_eq!(meta.fill_value, definition.fill, "fill value of {case}");
}

async fn read_all(container: &Container, array: &Expected) -> Vec<Element> {
    let open = container.array(&array.definition.name).await.unwrap();
    let region = Region::whole(&extents(&array.definition.shape));
    match open.reader().unwrap().read_elements(&region).await.unwrap() {
        ElementsBuf::Fixed(bytes) => {
            let size = array.definition.dtype.item_size().unwrap();
            bytes.chunks_exact(size).map(<[u8]>::to_vec).collect()
        }
        ElementsBuf::Variable { bytes, offsets } => {
            let element = |ends: &[u64]| bytes[ends[0] as usize..ends[1] as usize].to_vec();
            offsets.windows(2).map(element).collect()
        }
    }
}
