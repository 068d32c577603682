//! Other labels on the way: supervoxels become the bodies they belong to at the version that is read.
//!
//! The voxels of a segmentation are supervoxels, and people look at bodies. A conversion with
//! [`Ids::Bodies`] looks every label up in the mapping of the version. In label blocks that is their table
//! and nothing else; in decoded elements it is every voxel.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::codec::label_block;
use chunkyard_format::Source;
use chunkyard_format::dvid::DvidSource;
use chunkyard_format::dvid_http::DvidSource as DvidHttpSource;
use chunkyard_labels::dvid::mapping_at;
use chunkyard_labels::{Ids, Labelmap, Mapping};
use chunkyard_repo::RepoSource;
use chunkyard_store::{Error, Result};
use futures::TryStreamExt;

use super::wishes::Wishes;

/// The mapping that the labels of an array go through. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Relabel(pub(crate) Arc<Mapping>);

/// The arrays whose labels change, by their paths in the source.
pub(super) type Relabels = BTreeMap<String, Relabel>;

impl Relabel {
    /// Changes a label block, in its table.
    pub(super) fn block(&self, block: &mut [u8]) -> Result<()> {
        label_block::relabel(block, |label| self.0.body(label))?;
        Ok(())
    }

    /// Writes the new labels of decoded `uint64` elements to `out`, whose content is dropped.
    pub(super) fn elements_into(&self, elements: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.reserve(elements.len());
        // Neighbours mostly belong to one supervoxel.
        let (mut last, mut body) = (0, self.0.body(0));
        for element in elements.as_chunks::<8>().0 {
            let label = u64::from_le_bytes(*element);
            if label != last {
                (last, body) = (label, self.0.body(label));
            }
            out.extend_from_slice(&body.to_le_bytes());
        }
    }
}

/// What the wish for ids means for a source: the mappings of the segmentations that are in it.
pub(super) async fn relabels(source: &Arc<dyn Source>, wishes: &Wishes) -> Result<Relabels> {
    let any: &dyn Any = &**source;
    let (store, server) = (any.downcast_ref::<DvidSource>(), any.downcast_ref::<DvidHttpSource>());
    // DVID answers with bodies unless it is asked for supervoxels, and so do its sources.
    let of_dvid = store.is_some() || server.is_some();
    match wishes.ids {
        Some(Ids::Supervoxels) => return Ok(Relabels::new()),
        None if !of_dvid => return Ok(Relabels::new()),
        _ => {}
    }
    let found = mappings(source).await?;
    if found.is_empty() && !of_dvid {
        return Err(Error::invalid(
            "there is no segmentation with bodies in the source; without ids, labels stay as they are",
        ));
    }
    Ok(found.into_iter().map(|(path, mapping)| (path, Relabel(mapping))).collect())
}

/// The mappings of the segmentations that are in a source, by the paths of their arrays.
pub(crate) async fn mappings(source: &Arc<dyn Source>) -> Result<BTreeMap<String, Arc<Mapping>>> {
    let any: &dyn Any = &**source;
    let (store, server) = (any.downcast_ref::<DvidSource>(), any.downcast_ref::<DvidHttpSource>());
    let mut found = BTreeMap::new();
    if let Some(store) = store {
        for (group, mapping) in bodies_of_store(store).await? {
            let mapping = Arc::new(mapping);
            let below =
                |path: &&str| path.strip_prefix(&*group).is_some_and(|at| at.starts_with('/'));
            let arrays = source.dataset().arrays().map(|(path, _)| path);
            found.extend(arrays.filter(below).map(|path| (path.to_owned(), mapping.clone())));
        }
        return Ok(found);
    }
    if let Some(server) = server {
        let mapping = Arc::new(bodies_of_server(server).await?);
        let arrays = source.dataset().arrays();
        return Ok(arrays.map(|(path, _)| (path.to_owned(), mapping.clone())).collect());
    }
    if let Some(repo) = any.downcast_ref::<RepoSource>() {
        let session = repo.session();
        for path in Labelmap::list(session).await? {
            let map = Labelmap::open(session, &path).await?;
            let mapping = Arc::new(map.load_mapping().await?);
            for scale in 0..map.layout().scales {
                found.insert(map.array(scale)?.node().path.clone(), mapping.clone());
            }
        }
    }
    Ok(found)
}

/// The mapping of each labelmap of a store, by its group.
async fn bodies_of_store(source: &DvidSource) -> Result<Vec<(String, Mapping)>> {
    let store = source.store();
    let (repo, version) = store.find(Some(source.uuid()))?;
    let mut found = Vec::new();
    for instance in repo.instances.iter().filter(|instance| instance.is_labelmap()) {
        let mapping = mapping_at(store, repo, instance, version).await?;
        found.push((format!("/{}", instance.name), mapping));
    }
    Ok(found)
}

/// The mapping that a server tells.
async fn bodies_of_server(source: &DvidHttpSource) -> Result<Mapping> {
    let mut rows: Vec<(u64, u64)> = source.mapping().try_collect().await?;
    rows.sort_unstable();
    rows.dedup();
    let (supervoxels, bodies) = rows.into_iter().unzip();
    Mapping::from_sorted(supervoxels, bodies)
}
