//! Footers of other releases, and footers that lie.

mod bent;
mod golden;

use super::*;
use crate::container::model::{AttributeValue, ChunkAddress};

fn found<T>(result: Result<T, Stop>) -> T {
    result.unwrap_or_else(|stop| panic!("{stop:?}"))
}

fn refused<T: std::fmt::Debug>(result: Result<T, Stop>) -> String {
    match result {
        Err(Stop::Corrupt(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A whole footer, in the form in which it is written.
struct Whole {
    root: Root,
    blocks: Vec<BlockMeta>,
    heads: Vec<ArrayHead>,
    chunks: Vec<(Vec<u32>, Vec<ChunkAddress>)>,
    keys: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Whole {
    fn read(view: &dyn View) -> Self {
        let root = found(root(view));
        let heads: Vec<_> = (0..root.arrays.len).map(|at| found(array(view, &root, at))).collect();
        let chunks = heads.iter().map(|head| {
            let mut flat = (Vec::new(), Vec::new());
            let rank = head.meta.shape.len();
            let all = 0..head.chunks.len;
            found(chunk_flat(view, &head.chunks, rank, all, &mut |coord, address| {
                flat.0.extend_from_slice(coord);
                flat.1.push(address);
            }));
            flat
        });
        Self {
            chunks: chunks.collect(),
            blocks: found(blocks(view, &root, 0..root.blocks.len)),
            keys: (0..keys_len(&root)).map(|at| found(attribute_key(view, &root, at))).collect(),
            values: (0..values_len(&root))
                .map(|at| found(attribute_value(view, &root, at)))
                .collect(),
            heads,
            root,
        }
    }

    fn render(&self) -> Result<Vec<u8>, Error> {
        let arrays: Vec<_> = self
            .heads
            .iter()
            .zip(&self.chunks)
            .map(|(head, (coords, addresses))| NewArray { meta: &head.meta, coords, addresses })
            .collect();
        render(&NewFooter {
            blocks: &self.blocks,
            arrays: &arrays,
            attr_keys: &self.keys,
            attr_values: &self.values,
            overlay_index: self.root.overlay_index,
            base_file_hint: &self.root.base_file_hint,
        })
    }

    fn head(&self, name: &str) -> &ArrayHead {
        self.heads.iter().find(|head| head.meta.name == name).unwrap()
    }

    fn attribute(&self, array: &str, key: &str) -> &AttributeValue {
        let pair = self.head(array).meta.attributes.iter();
        let mut pair = pair.filter(|(k, _)| self.keys[*k as usize] == key);
        &self.values[pair.next().unwrap().1 as usize]
    }
}
