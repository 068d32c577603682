//! Text that people type: regions, codecs, names, times.

use chunkyard_array::{DType, Region, codec};
use chunkyard_engine::repo::{hostile, normalise_path};

use crate::choices::Choices;
use crate::error::{is_about_bytes, is_about_document};

/// A region: some bytes for the shape of the array, then the text.
pub(crate) fn region(data: &[u8]) {
    let mut choices = Choices::new(data);
    let rank = choices.below(5);
    let shape: Vec<u64> = (0..rank).map(|_| choices.number()).collect();
    let text = String::from_utf8_lossy(choices.raw(200));
    let region = match Region::parse(&text, &shape) {
        Ok(region) => region,
        Err(error) => return is_about_document(&error),
    };
    assert!(Region::whole(&shape).contains(&region), "{region} is not within {shape:?}");
    let again = Region::parse(&region.to_string(), &shape).expect("a printed region can be read");
    assert_eq!(again, region);
}

/// A chain of codecs; the first byte is the data type.
pub(crate) fn shorthand(data: &[u8]) {
    const TYPES: [&str; 5] = ["|u1", "<f4", "<M8[s]", "<U3", "|V5"];
    let mut choices = Choices::new(data);
    let descr = choices.pick(&TYPES);
    let (dtype, _) = DType::from_numpy(descr).expect("a known type");
    let text = String::from_utf8_lossy(choices.raw(120));
    if let Ok((dtype, _)) = DType::from_numpy(&text)
        && let Some(descr) = dtype.to_numpy()
    {
        let (again, _) = DType::from_numpy(&descr).expect("a printed type can be read");
        assert_eq!(again, dtype, "{text} {descr}");
    }
    match codec::parse_shorthand(&text, &dtype) {
        Err(error) => is_about_document(&error),
        Ok(codecs) => {
            let builder = chunkyard_array::ArraySpec::builder(&[4], &[2], dtype_json(&dtype));
            let spec = builder.codecs(codecs).build().expect("a shorthand is valid metadata");
            let codecs = chunkyard_array::Codecs::new(&spec).expect("a shorthand can be used");
            let chunk = vec![7; codecs.chunk_bytes().expect("types of fixed size")];
            let chunk = chunkyard_array::Elements::Fixed(&chunk);
            let encoded = codecs.encode(chunk).expect("a shorthand can encode");
            assert_eq!(codecs.decode(&encoded).expect("and decode").as_ref(), chunk);
        }
    }
}

fn dtype_json(dtype: &DType) -> serde_json::Value {
    serde_json::to_value(dtype.metadata()).expect("metadata is JSON")
}

/// Names of branches, tags, files and nodes.
pub(crate) fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = hostile::check_reference_name(&text) {
        is_about_bytes(&error);
    }
    if hostile::is_file_name(&text) {
        assert!(text.split('/').count() <= 2 && !text.starts_with('/') && !text.ends_with('/'));
        assert!(text.split('/').all(|part| part != ".." && part != "."), "{text}");
    }
    match normalise_path(&text) {
        Err(error) => is_about_bytes(&error),
        Ok(path) => {
            assert!(path.starts_with('/') && !path.contains("//"), "{path}");
            assert!(path.split('/').all(|part| part != ".." && part != "."), "{path}");
            assert_eq!(normalise_path(&path).expect("a sound path"), path);
        }
    }
}
