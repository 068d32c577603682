//! The references of runs that a merge makes one.

use chunkyard_store::Result;

use super::Payload;
use super::lookup::Scan;
use super::rows::Manifests;
use super::write::TILE_ROWS;
use crate::node::Node;
use crate::run::levels::Merge;

/// Collects rows ready to write, dropping removals if nothing older is left.
pub(crate) async fn collect(
    merge: &Merge,
    manifests: &Manifests,
    node: &Node,
) -> Result<Vec<(Vec<u8>, Payload)>> {
    let mut scan = Scan::over(manifests, node, merge.merged().to_vec(), None);
    let mut rows = Vec::with_capacity(merge.rows_max().min(TILE_ROWS));
    while let Some((coord, payload)) = scan.next().await? {
        if !(merge.is_oldest() && payload.is_removed()) {
            rows.push((coord, payload));
        }
    }
    Ok(rows)
}
