//! A source as another format would have it, chunk by chunk and on demand: what a server shows without a copy.
//!
//! ```text
//!  Source ─┬─ Hierarchy   zarr.json, c/0/1 …        groups and arrays as Zarr v3
//!          └─ Volumes     info, 0-64_0-64_0-64 …    images and segmentations for Neuroglancer
//!                │
//!           ArrayView     one array: copied where the stored form fits, else rewritten, transcoded or cut anew
//! ```
//!
//! A view does what a [conversion](crate::pipeline) would do, by the same functions, to one chunk at a time. Nothing is
//! kept here but metadata: what is worth keeping of chunks is up to the caller.

mod array;
mod reach;
mod volumes;
mod zarr;

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_format::Source;
use chunkyard_format::dvid::DvidSource;
use chunkyard_format::dvid_http::DvidSource as DvidHttpSource;
use chunkyard_labels::{Ids, Mapping};
use chunkyard_store::Result;

pub use self::array::ArrayView;
pub use self::volumes::{Volume, Volumes};
pub use self::zarr::{Hierarchy, Value};
use crate::pipeline::mappings;

/// How a source is shown.
#[derive(Debug, Clone, Copy)]
pub struct ViewOptions {
    /// What the labels of segmentations are, where the source knows bodies.
    pub ids: Ids,
    /// Bytes of a chunk at most, as it is decoded and as it is handed out. Larger chunks are cut where that is possible, and
    /// refused elsewhere.
    pub bytes_max: usize,
}

/// The mappings that the labels of arrays go through, by the paths of the arrays.
type Bodies = BTreeMap<String, Arc<Mapping>>;

/// The bodies of the segmentations of a source, if these are what is to be seen.
async fn bodies(source: &Arc<dyn Source>, ids: Ids) -> Result<Bodies> {
    match ids {
        Ids::Bodies => mappings(source).await,
        Ids::Supervoxels => Ok(Bodies::new()),
    }
}

/// What the labels of a source are unless a caller says otherwise, where arrays are shown as they are: DVID answers with
/// bodies, and the arrays of a labelmap hold supervoxels.
pub fn stored_ids(source: &dyn Source) -> Ids {
    let any: &dyn std::any::Any = source;
    match any.is::<DvidSource>() || any.is::<DvidHttpSource>() {
        true => Ids::Bodies,
        false => Ids::Supervoxels,
    }
}
