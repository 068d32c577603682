//! The bodies of a labelmap with their sizes, which a viewer lists and sorts.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use chunkyard_format::Source;
use chunkyard_format::precomputed::{Property, SegmentProperties};
use chunkyard_labels::{Ids, Labelmap};
use chunkyard_repo::RepoSource;
use chunkyard_store::Result;
use futures::TryStreamExt;

use super::geometry::Level;

/// The member of a volume that names the directory.
pub(super) const MEMBER: &str = "segment_properties";
/// The directory, and its file.
pub(super) const FOLDER: &str = "segment_properties";
pub(super) const FILE: &str = "segment_properties/info";

/// Bodies that are listed at most: a browser reads all of them before it shows one.
const BODIES_MAX: usize = 100_000;

/// The largest bodies of the labelmap that is exported; `None` if the source has no table of bodies, or none are exported.
pub(super) async fn properties(
    source: &Arc<dyn Source>,
    levels: &[Option<Level>],
    ids: Ids,
) -> Result<Option<SegmentProperties>> {
    if ids == Ids::Supervoxels {
        return Ok(None);
    }
    let Some(map) = labelmap(source, levels).await? else { return Ok(None) };
    let mut largest = Largest::of(BODIES_MAX);
    let mut batches = map.all_bodies(0)?;
    while let Some(bodies) = batches.try_next().await? {
        for body in bodies {
            largest.add(body.voxels, body.body, body.supervoxels);
        }
    }
    Ok(Some(largest.listed()))
}

/// The labelmap whose arrays the levels are.
pub(super) async fn labelmap(
    source: &Arc<dyn Source>,
    levels: &[Option<Level>],
) -> Result<Option<Labelmap>> {
    let any: &dyn Any = &**source;
    let Some(repo) = any.downcast_ref::<RepoSource>() else { return Ok(None) };
    let session = repo.session();
    for path in Labelmap::list(session).await? {
        let map = Labelmap::open(session, &path).await?;
        for scale in 0..map.layout().scales {
            let path = &map.array(scale)?.node().path;
            if levels.iter().flatten().any(|level| level.path == *path) {
                return Ok(Some(map));
            }
        }
    }
    Ok(None)
}

/// The largest bodies so far; of equal ones, those with the lowest ids.
struct Largest {
    most: usize,
    /// Voxels, id and supervoxels, the smallest body on top.
    heap: BinaryHeap<Reverse<(u64, Reverse<u64>, u64)>>,
    left_out: u64,
}

impl Largest {
    fn of(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new(), left_out: 0 }
    }

    fn add(&mut self, voxels: u64, body: u64, supervoxels: u64) {
        self.heap.push(Reverse((voxels, Reverse(body), supervoxels)));
        if self.heap.len() > self.most {
            self.heap.pop();
            self.left_out += 1;
        }
    }

    /// The bodies, the largest first.
    fn listed(self) -> SegmentProperties {
        let rows: Vec<_> = self.heap.into_sorted_vec();
        let of = |number: fn(&(u64, Reverse<u64>, u64)) -> u64| {
            rows.iter().map(move |row| number(&row.0))
        };
        let mut voxels = Property::counts("voxels", of(|row| row.0));
        voxels.description = Some("Voxels of the body at full resolution".to_owned());
        let supervoxels = Property::counts("supervoxels", of(|row| row.2));
        let ids = of(|row| row.1.0).collect();
        SegmentProperties { ids, properties: vec![voxels, supervoxels], left_out: self.left_out }
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_format::precomputed::PropertyValues;

    use super::*;

    #[test]
    fn the_largest_bodies_are_listed_and_the_others_counted() {
        let mut largest = Largest::of(3);
        for (body, voxels) in [(1, 5), (2, 90), (3, 7), (4, 7), (5, 1), (6, 7)] {
            largest.add(voxels, body, 1);
        }
        let listed = largest.listed();
        assert_eq!((listed.ids, listed.left_out), (vec![2, 3, 4], 3));
        let [voxels, supervoxels] = &listed.properties[..] else { panic!("two properties") };
        let values = |property: &Property| match &property.values {
            PropertyValues::Number { values, .. } => values.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(values(voxels), [90.0, 7.0, 7.0]);
        assert_eq!(values(supervoxels), [1.0, 1.0, 1.0]);
    }
}
