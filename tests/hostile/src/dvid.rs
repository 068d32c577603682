//! Keys, metadata and label indices of DVID's store.

use chunkyard_engine::format::hostile::dvid::{
    BlockAt, Key, LabelIndex, Repo, Value, decode_gob, parse_label,
};
use chunkyard_engine::repo::hostile::FILE;

use crate::error::is_about_bytes;

/// What a key says is what makes it.
pub(crate) fn key(data: &[u8]) {
    let Some(Key::Data(key)) = Key::parse(data) else { return };
    assert_eq!(key.render(), data);
    if let Some(block) = BlockAt::parse(key.rest) {
        assert_eq!(block.render(), key.rest);
    }
    if let Some(label) = parse_label(key.rest) {
        assert_eq!(label.to_be_bytes(), key.rest);
    }
}

/// A gob has no more in it than its bytes can hold, and a repository made of one hangs together.
pub(crate) fn gob(data: &[u8]) {
    match decode_gob(FILE, data) {
        Err(error) => is_about_bytes(&error),
        Ok(values) => assert!(values.iter().map(texts).sum::<usize>() <= data.len() * 3),
    }
    match Repo::parse_gob(FILE, data) {
        Err(error) => is_about_bytes(&error),
        Ok(repo) => {
            let order = repo.dag.in_order();
            assert_eq!(order.len(), repo.dag.versions().count());
            for version in order.into_iter().take(8) {
                assert_eq!(repo.dag.ancestry(version)[0], version);
            }
        }
    }
}

/// Bytes of text in a value. A byte that is no text becomes a character of three.
fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) | Value::Opaque(bytes) => bytes.len(),
        Value::List(values) => values.iter().map(texts).sum(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| texts(key) + texts(value)).sum(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| texts(value)).sum(),
        _ => 0,
    }
}

/// The answer to `GET /api/repos/info`.
pub(crate) fn info(data: &[u8]) {
    if let Err(error) = Repo::parse_json(FILE, data) {
        is_about_bytes(&error);
    }
}

/// A label index, without its wrapper.
pub(crate) fn index(data: &[u8]) {
    match LabelIndex::parse(FILE, data) {
        Err(error) => is_about_bytes(&error),
        Ok(index) => {
            let counts = index.blocks.values().flat_map(|block| block.values());
            assert_eq!(index.voxels() == 0, counts.into_iter().all(|count| *count == 0));
        }
    }
}
