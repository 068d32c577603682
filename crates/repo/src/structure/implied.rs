//! Groups that a structure file of the bare draft implies by the paths of other nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use chunkyard_format::parent_path;
use chunkyard_store::{Result, Uid};

use crate::node::Node;
use crate::parquet_file::corrupt;
use crate::tree::Tree;

/// Bound on all implied paths together. A path of many segments implies as many paths, each nearly
/// as long.
const IMPLIED_BYTES_MAX: usize = 16 << 20;

/// Adds the groups above each node, and the root. Their handles follow the file's own.
pub(super) fn add_groups(file: &str, tree: &mut Tree) -> Result<()> {
    let mut implied: BTreeSet<String> = BTreeSet::new();
    let mut bytes = 0;
    for node in tree.nodes() {
        let mut above = parent_path(&node.path);
        while let Some(path) = above.filter(|path| !implied.contains(*path)) {
            match tree.get(path) {
                // The groups above it are handled in their turn.
                Some(group) if group.is_group() => break,
                Some(_) => {
                    let expected = format!("a group {path:?}");
                    return Err(corrupt(file, "column path", &expected, &node.path));
                }
                None => implied.insert(path.to_owned()),
            };
            bytes += path.len();
            if bytes > IMPLIED_BYTES_MAX {
                let expected = format!("implied groups of at most {IMPLIED_BYTES_MAX} bytes");
                return Err(corrupt(file, "column path", &expected, "more"));
            }
            above = parent_path(path);
        }
    }
    if tree.get("/").is_none() {
        implied.insert("/".to_owned());
    }
    for path in implied {
        let group = Node::group(tree.take_id()?, &path)?;
        let uid = Uid::of_implied_group(&path);
        if tree.by_uid(&uid).is_some() {
            return Err(corrupt(file, "column uid", "unique identities", &uid.to_string()));
        }
        tree.put(Arc::new(Node { uid, ..group }));
    }
    Ok(())
}
