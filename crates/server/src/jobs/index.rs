//! The label index of a labelmap in parts, each of some bodies.

use chunkyard_engine::Result;
use chunkyard_engine::export::Exporter;
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::repo::{KeyRange, Table};
use futures::TryStreamExt;

use super::document::IndexPart;

/// About how many rows a part has, unless one body has more.
const PART_ROWS: u64 = 1 << 16;
/// The table of the index.
const TABLE: &str = "index";

/// The parts of the index of what is exported; `None` if it has none.
pub(super) async fn parts(exporter: &Exporter) -> Result<Option<Vec<IndexPart>>> {
    let Some(map) = exporter.labelmap().await? else { return Ok(None) };
    let voxels_of_block = map.layout().block.iter().map(|edge| u64::from(*edge)).product::<u64>();
    let (mut parts, mut open) = (Vec::new(), None::<IndexPart>);
    let mut bodies = map.all_bodies(0)?;
    while let Some(some) = bodies.try_next().await? {
        for body in some {
            // How many blocks a body is in, the index alone knows; reading all of it would take as long as sending it.
            let weight = 1 + body.supervoxels.max(body.voxels / voxels_of_block.max(1));
            let part = open.get_or_insert(IndexPart {
                part: parts.len() as u64,
                first: body.body,
                last: body.body,
                weight: 0,
            });
            part.last = body.body;
            part.weight = part.weight.saturating_add(weight);
            if part.weight >= PART_ROWS {
                parts.extend(open.take());
            }
        }
    }
    parts.extend(open);
    Ok(Some(parts))
}

/// The index of a labelmap.
pub(crate) fn table(map: &Labelmap) -> Result<&Table> {
    map.table(TABLE)
}

/// The keys of a part.
pub(crate) fn keys(part: &IndexPart) -> KeyRange {
    match part.last.checked_add(1) {
        Some(end) => KeyRange::Between(vec![part.first.into()], vec![end.into()]),
        None => KeyRange::From(vec![part.first.into()]),
    }
}
