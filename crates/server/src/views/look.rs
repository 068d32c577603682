//! Which view of a source a URL asks for.

use std::sync::Arc;

use chunkyard_engine::Result;
use chunkyard_engine::format::Source;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::view::{Hierarchy, ViewOptions, Volumes, stored_ids};

/// Which view of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Look {
    /// Zarr v3, with labels as they are stored.
    Zarr,
    /// Zarr v3, with the bodies of supervoxels.
    ZarrBodies,
    /// Zarr v3, with supervoxels.
    ZarrSupervoxels,
    /// Volumes, with the bodies of supervoxels.
    Precomputed,
    /// Volumes, with supervoxels.
    PrecomputedSupervoxels,
}

/// A source, seen so.
#[derive(Debug)]
pub(super) enum Seen {
    Hierarchy(Hierarchy),
    Volumes(Volumes),
}

impl Look {
    const WORDS: [(&'static str, Self); 5] = [
        ("zarr", Self::Zarr),
        ("zarr-bodies", Self::ZarrBodies),
        ("zarr-supervoxels", Self::ZarrSupervoxels),
        ("precomputed", Self::Precomputed),
        ("precomputed-supervoxels", Self::PrecomputedSupervoxels),
    ];

    /// The names of all of them, as parts of a URL.
    pub(super) const NAMES: [&'static str; 5] =
        [Self::WORDS[0].0, Self::WORDS[1].0, Self::WORDS[2].0, Self::WORDS[3].0, Self::WORDS[4].0];

    /// The one with a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == name).map(|(_, look)| *look)
    }

    /// Shows a source.
    pub(super) async fn at(self, source: Arc<dyn Source>, bytes_max: usize) -> Result<Seen> {
        let ids = match self {
            Self::Zarr => stored_ids(&*source),
            Self::ZarrBodies | Self::Precomputed => Ids::Bodies,
            Self::ZarrSupervoxels | Self::PrecomputedSupervoxels => Ids::Supervoxels,
        };
        let options = ViewOptions { ids, bytes_max };
        Ok(match self {
            Self::Zarr | Self::ZarrBodies | Self::ZarrSupervoxels => {
                Seen::Hierarchy(Hierarchy::new(source, options).await?)
            }
            Self::Precomputed | Self::PrecomputedSupervoxels => {
                Seen::Volumes(Volumes::new(source, options).await?)
            }
        })
    }
}
