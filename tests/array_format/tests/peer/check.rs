//! Checks, with array-format, that a container holds the expected content.

use array_format::ArrayFile;
use chunkyard_array_format::{Element, Expected, statistics};
use chunkyard_engine::format::container::model::AttributeValue;

use super::elements::{Typed, Visit, visit};
use super::{Peer, words};

impl Peer {
    /// Compares everything that array-format reads from a container; messages name the `case`.
    pub(crate) async fn check(&self, case: &str, expected: &[Expected]) {
        let file = self.open().await;
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let found = file.list_arrays().into_iter().map(|array| array.name).collect();
        let wanted = expected.iter().map(|array| array.definition.name.clone()).collect();
        assert_eq!(sorted(found), sorted(wanted), "arrays of {case}");
        for array in expected {
            let case = format!("{:?} of {case}", array.definition.name);
            check_definition(&case, &file, array);
            check_attributes(&case, &file, array);
            let name = &array.definition.name;
            match file.array_stats(name) {
                // Statistics of an array that was never written may be missing.
                None => assert_eq!(array.statistics, None, "statistics of {case}"),
                Some(found) => {
                    let expected = words::statistics(&statistics::of(array));
                    assert_eq!(*found, expected, "statistics of {case}");
                }
            }
            let elements = visit(&array.definition.dtype, ReadAll { file: &file, name }).await;
            assert_eq!(elements, array.elements, "elements of {case}");
        }
    }
}

impl Peer {
    /// Whether array-format reads this value for an attribute.
    pub(crate) async fn reads(&self, array: &str, key: &str, value: &AttributeValue) -> bool {
        let file = self.open().await;
        file.get_attribute(array, key).unwrap() == Some(&words::attribute(value))
    }
}

/// Types, extents, names of dimensions, fill values.
pub(super) fn check_definition(case: &str, file: &ArrayFile, array: &Expected) {
    let (found, definition) = (file.get_array(&array.definition.name).unwrap(), &array.definition);
    assert_eq!(found.dtype, words::dtype(&definition.dtype), "type of {case}");
    assert_eq!(found.layout.shape, definition.shape, "shape of {case}");
    assert_eq!(found.layout.storage.chunk_shape, definition.chunk_shape(), "chunks of {case}");
    assert_eq!(found.layout.dimension_names, definition.dimension_names(), "names of {case}");
    assert_eq!(found.fill_value, definition.fill.as_ref().map(words::fill), "fill of {case}");
}

fn check_attributes(case: &str, file: &ArrayFile, array: &Expected) {
    let name = &array.definition.name;
    let count = file.get_array(name).unwrap().attributes.iter_entries().count();
    assert_eq!(count, array.attributes.len(), "number of attributes of {case}");
    for (key, value) in &array.attributes {
        let found = file.get_attribute(name, key).unwrap();
        assert_eq!(found, Some(&words::attribute(value)), "attribute {key} of {case}");
    }
}

struct ReadAll<'a> {
    file: &'a ArrayFile,
    name: &'a str,
}

impl Visit for ReadAll<'_> {
    type Output = Vec<Element>;

    async fn with<T: Typed>(self) -> Vec<Element> {
        let all = self.file.read_array::<T>(self.name, vec![], vec![]).await.unwrap();
        all.iter().map(Typed::to_element).collect()
    }
}
