//! Images and segmentations of a source as volumes for Neuroglancer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_format::precomputed::Unsharded;
use chunkyard_format::{Source, Survey, normalise_path};
use chunkyard_store::{Error, Noun, Result};

use super::{ArrayView, Bodies, ViewOptions, bodies};
use crate::scales;

/// Bytes of a decoded chunk of a volume at most: a viewer takes few that are larger.
const CHUNK_BYTES_MAX: usize = 8 << 20;

/// What to do to name one of several volumes.
const ADVICE: &str = "put the path of one, or of its group, before `info`";

/// The file that says what a volume is.
const INFO: &str = "info";

/// The volumes of a source: one for each array and each group of scales that is asked for.
#[derive(Debug)]
pub struct Volumes {
    source: Arc<dyn Source>,
    survey: Survey,
    options: ViewOptions,
    bodies: Bodies,
    /// Those that were asked for, by path; there are no more than nodes.
    known: Mutex<BTreeMap<String, Arc<Volume>>>,
}

/// An image or a segmentation, with its scales.
#[derive(Debug)]
pub struct Volume {
    shown: Unsharded,
    info: Bytes,
    scales: Vec<ArrayView>,
}

impl Volumes {
    /// Shows a source.
    pub async fn new(source: Arc<dyn Source>, options: ViewOptions) -> Result<Self> {
        let bodies = bodies(&source, options.ids).await?;
        let survey = Survey::of(source.dataset());
        Ok(Self { source, survey, options, bodies, known: Mutex::default() })
    }

    /// The file `info` of the volume that a key names: `info` alone, or behind the path of an array or a group of scales.
    pub fn info(&self, key: &str) -> Option<Result<Bytes>> {
        let folder = match key.rsplit_once('/') {
            Some((folder, INFO)) => folder,
            None if key == INFO => "",
            _ => return None,
        };
        Some(self.volume(folder).map(|volume| volume.info.clone()))
    }

    /// The volume, the scale and the chunk that a key names; `None` if nothing does.
    pub fn chunk(&self, key: &str) -> Option<(Arc<Volume>, usize, ChunkIndex)> {
        let (folder, name) = key.rsplit_once('/')?;
        // The key of a scale may have slashes, and so may the path of the volume.
        let ends = folder.match_indices('/').map(|(at, _)| (at, at + 1));
        for (end, start) in std::iter::once((0, 0)).chain(ends) {
            let (path, scale) = (folder.get(..end)?, folder.get(start..)?);
            if end == 0 && self.is_not_one() {
                continue;
            }
            let Ok(volume) = self.volume(path) else { continue };
            let Some(number) = volume.shown.info.scales.iter().position(|it| it.key == scale)
            else {
                continue;
            };
            return volume.shown.chunk(number, name).map(|index| (volume, number, index));
        }
        None
    }

    /// Whether a path alone must say which volume is meant.
    fn is_not_one(&self) -> bool {
        self.volume("").is_err()
    }

    /// The volume at a path.
    pub fn volume(&self, path: &str) -> Result<Arc<Volume>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(volume) = known {
            return Ok(volume);
        }
        let volume = Arc::new(self.make(path)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(path.to_owned()).or_insert(volume).clone())
    }

    fn make(&self, path: &str) -> Result<Volume> {
        let dataset = self.source.dataset();
        let (folder, found) = match path {
            "" => ("/".to_owned(), scales::only(dataset, &self.survey, ADVICE)?),
            path => {
                let given = path;
                let path = normalise_path(given)?;
                if path.trim_start_matches('/') != given {
                    return Err(Error::NotFound { what: Noun::Array, name: given.to_owned() });
                }
                let found = scales::at(dataset, &self.survey, &path)?;
                (path, found)
            }
        };
        let paths: Vec<String> = found.into_iter().flatten().collect();
        let most = CHUNK_BYTES_MAX.min(self.options.bytes_max);
        let shown = Unsharded::of(dataset, &self.survey, &folder, &paths, most)?;
        let mut views = Vec::with_capacity(paths.len());
        for (path, node) in shown.arrays() {
            let (bodies, most) = (self.bodies.get(path), self.options.bytes_max);
            views.push(ArrayView::new(&self.source, path, node.clone(), bodies, most)?);
        }
        let info = shown.info.render().into();
        Ok(Volume { shown, info, scales: views })
    }
}

impl Volume {
    /// What the volume is.
    pub fn shown(&self) -> &Unsharded {
        &self.shown
    }

    /// A chunk of a scale. One that was never written is there all the same, and holds the fill value: a viewer cannot tell
    /// a chunk that is missing from a server that fails.
    pub async fn chunk(&self, scale: usize, index: &[u64]) -> Result<Bytes> {
        let view = self
            .scales
            .get(scale)
            .ok_or_else(|| Error::invalid(format!("there is no scale {scale}")))?;
        match view.chunk(index).await? {
            Some(bytes) => Ok(bytes),
            None => view.fill_chunk(index),
        }
    }

    /// Bytes that making a chunk of a scale has in hand.
    pub fn bytes_in_hand(&self, scale: usize) -> usize {
        self.scales.get(scale).map_or(0, ArrayView::bytes_in_hand)
    }

    /// Whether chunks of a scale are compressed by gzip besides their encoding.
    pub fn is_gzip(&self, scale: usize) -> bool {
        self.shown.is_gzip(scale)
    }
}
