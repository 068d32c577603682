//! A label block without its list of labels, and put together again.
//!
//! A block is a head of 16 bytes, whose last four are the number of labels, the labels, and the rest. A table that has the labels
//! in a column needs them no second time in the block.

use chunkyard_store::{Error, Result};

/// Bytes before the list; the last four say how long it is.
const HEAD: usize = 16;
const LABEL: usize = 8;

/// The block without its list, which has `labels` entries.
pub(super) fn strip(block: &[u8], labels: usize) -> Vec<u8> {
    let (head, rest) = block.split_at(HEAD.min(block.len()));
    let behind = rest.get(labels.saturating_mul(LABEL)..).unwrap_or_default();
    [head, behind].concat()
}

/// Takes a label block apart: the block without its list, and the list.
pub fn split_labels(block: &[u8]) -> Result<(Vec<u8>, Vec<u64>)> {
    let count = count(block)?;
    let list = block.get(HEAD..).unwrap_or_default();
    let labels: Vec<u64> = list
        .chunks_exact(LABEL)
        .take(count)
        .filter_map(|label| label.first_chunk().copied().map(u64::from_le_bytes))
        .collect();
    if labels.len() != count {
        return Err(damaged(format!("{count} labels"), format!("{} bytes", block.len())));
    }
    Ok((strip(block, count), labels))
}

/// Puts the list of labels back into a block that came without. The supervoxels give the block as it was; the labels of bodies
/// give a block of bodies.
pub fn join_labels(stripped: &[u8], labels: &[u64]) -> Result<Vec<u8>> {
    let count = count(stripped)?;
    if count != labels.len() {
        return Err(damaged(format!("{count} labels"), labels.len().to_string()));
    }
    let (head, rest) = stripped.split_at(HEAD);
    let mut block = Vec::with_capacity(stripped.len() + labels.len() * LABEL);
    block.extend_from_slice(head);
    for label in labels {
        block.extend_from_slice(&label.to_le_bytes());
    }
    block.extend_from_slice(rest);
    Ok(block)
}

/// How many labels a block has, by its head.
fn count(block: &[u8]) -> Result<usize> {
    let count = block.get(HEAD - 4..HEAD).and_then(|bytes| bytes.first_chunk::<4>());
    let count = count.ok_or_else(|| {
        damaged(format!("a head of {HEAD} bytes"), format!("{} bytes", block.len()))
    })?;
    usize::try_from(u32::from_le_bytes(*count))
        .map_err(|_| Error::unsupported("a label block of more labels than this machine can count"))
}

fn damaged(expected: String, found: String) -> Error {
    Error::Corrupt {
        file: "a label block".to_owned(),
        what: "the list of labels".to_owned(),
        expected,
        found,
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_array::codec::label_block::{encode_part, table_of};
    use chunkyard_store::ErrorKind;

    use super::*;

    fn block(voxels: &[u64]) -> Vec<u8> {
        let mut block = Vec::new();
        encode_part(voxels, [16, 256], [16, 16, 16], &mut block).unwrap();
        block
    }

    #[test]
    fn a_block_taken_apart_and_put_together_is_the_block() {
        let one = |_| 7;
        let few = |n: u64| n / 1000;
        let many = |n: u64| n * n + (1 << 60);
        let kinds: [&dyn Fn(u64) -> u64; 3] = [&one, &few, &many];
        for labels in kinds {
            let voxels: Vec<u64> = (0..4096).map(labels).collect();
            let whole = block(&voxels);
            let (stripped, list) = split_labels(&whole).unwrap();
            assert_eq!(list, table_of(&whole).unwrap().collect::<Vec<u64>>());
            assert_eq!(stripped.len() + list.len() * 8, whole.len());
            assert_eq!(join_labels(&stripped, &list).unwrap(), whole);
        }
    }

    #[test]
    fn a_list_of_another_length_and_a_short_block_are_errors() {
        let whole = block(&(0..4096).map(|n| n / 1000).collect::<Vec<u64>>());
        let (stripped, list) = split_labels(&whole).unwrap();
        let error = join_labels(&stripped, &list[1..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("5 labels"), "{error}");
        for length in 0..whole.len().min(16 + list.len() * 8) {
            assert_eq!(split_labels(&whole[..length]).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        assert!(join_labels(&stripped[..15], &list).is_err());
        let mut hostile = stripped;
        hostile[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(split_labels(&hostile).is_err() && join_labels(&hostile, &list).is_err());
    }
}
