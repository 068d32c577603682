//! A segmentation as two plain arrays: what a labelmap must always be equal to.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_labels::{Bounds, Labelmap, Runs};

use super::support::{Voxels, assert_sound, bodies, voxels};

/// Supervoxels by voxel, and the body of each supervoxel that is not its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Naive {
    pub(crate) shape: [u64; 3],
    pub(crate) voxels: Vec<u64>,
    pub(crate) mapping: BTreeMap<u64, u64>,
}

/// What an edit changed, so that it can be done elsewhere, or undone.
#[derive(Debug, Clone)]
pub(crate) struct Delta {
    pub(crate) mutation: u64,
    /// The commit that it is a part of.
    pub(crate) commit: u64,
    pub(crate) bodies: BTreeSet<u64>,
    /// Place, before, after.
    pub(crate) voxels: Vec<(usize, u64, u64)>,
    /// Supervoxel, body before, body after.
    pub(crate) mapping: Vec<(u64, u64, u64)>,
}

impl Delta {
    /// Whether voxels of several supervoxels became one.
    pub(crate) fn joins(&self) -> bool {
        let mut came_from = BTreeMap::new();
        self.voxels.iter().any(|(_, from, to)| *came_from.entry(to).or_insert(from) != from)
    }
}

impl Naive {
    pub(crate) fn new(volume: &Voxels) -> Self {
        Self { shape: volume.shape, voxels: volume.labels.clone(), mapping: BTreeMap::new() }
    }

    pub(crate) fn body(&self, supervoxel: u64) -> u64 {
        self.mapping.get(&supervoxel).copied().unwrap_or(supervoxel)
    }

    /// Body, and its supervoxels with their places.
    pub(crate) fn by_body(&self) -> BTreeMap<u64, BTreeMap<u64, Vec<usize>>> {
        let mut found: BTreeMap<u64, BTreeMap<u64, Vec<usize>>> = BTreeMap::new();
        for (place, &label) in self.voxels.iter().enumerate().filter(|(_, label)| **label != 0) {
            found.entry(self.body(label)).or_default().entry(label).or_default().push(place);
        }
        found
    }

    pub(crate) fn supervoxels(&self, body: u64) -> Vec<u64> {
        self.by_body().remove(&body).unwrap_or_default().into_keys().collect()
    }

    fn position(&self, place: usize) -> [u64; 3] {
        let place = place as u64;
        let [_, y, x] = self.shape;
        [place / (y * x), place / x % y, place % x]
    }

    /// The voxels at some places, as an edit takes them.
    pub(crate) fn runs(&self, places: &BTreeSet<usize>) -> Runs {
        let mask: Vec<bool> = (0..self.voxels.len()).map(|place| places.contains(&place)).collect();
        Runs::of_mask([0; 3], self.shape, &mask).unwrap()
    }

    /// Gives supervoxels to a body.
    pub(crate) fn moved(&self, mutation: u64, supervoxels: &[u64], body: u64) -> Delta {
        let mapping: Vec<_> = supervoxels.iter().map(|&id| (id, self.body(id), body)).collect();
        let bodies = mapping.iter().flat_map(|(_, before, after)| [*before, *after]).collect();
        Delta { mutation, commit: 0, bodies, voxels: Vec::new(), mapping }
    }

    /// Cuts a supervoxel in two.
    pub(crate) fn cut(
        &self,
        mutation: u64,
        supervoxel: u64,
        inside: &BTreeSet<usize>,
        [part, rest]: [u64; 2],
    ) -> Delta {
        let body = self.body(supervoxel);
        let half = |place: usize| if inside.contains(&place) { part } else { rest };
        let places = self.voxels.iter().enumerate().filter(|(_, label)| **label == supervoxel);
        Delta {
            commit: 0,
            mutation,
            bodies: BTreeSet::from([body]),
            voxels: places.map(|(place, _)| (place, supervoxel, half(place))).collect(),
            mapping: vec![(supervoxel, body, 0), (part, part, body), (rest, rest, body)],
        }
    }

    pub(crate) fn apply(&mut self, delta: &Delta) {
        for (place, before, after) in &delta.voxels {
            assert_eq!(self.voxels[*place], *before);
            self.voxels[*place] = *after;
        }
        for (supervoxel, _, after) in &delta.mapping {
            self.mapping.insert(*supervoxel, *after);
        }
    }

    /// The labelmap has exactly these voxels and bodies, and all its tables agree with them.
    pub(crate) async fn assert_equals(&self, map: &Labelmap) {
        assert_eq!(voxels(map, 0).await, self.voxels, "supervoxels");
        let labels: BTreeSet<u64> = self.voxels.iter().copied().filter(|id| *id != 0).collect();
        let labels: Vec<u64> = labels.into_iter().collect();
        let expected: Vec<u64> = labels.iter().map(|id| self.body(*id)).collect();
        assert_eq!(map.bodies_of(&labels).await.unwrap(), expected, "bodies of {labels:?}");
        let found = bodies(map).await;
        let expected = self.by_body();
        assert_eq!(
            found.iter().map(|body| body.body).collect::<Vec<_>>(),
            expected.keys().copied().collect::<Vec<_>>()
        );
        for (body, parts) in found.iter().zip(expected.values()) {
            let places: Vec<usize> = parts.values().flatten().copied().collect();
            assert_eq!(body.voxels, places.len() as u64, "voxels of body {}", body.body);
            assert_eq!(body.supervoxels, parts.len() as u64, "supervoxels of body {}", body.body);
            let mut bounds = Bounds::EMPTY;
            for place in places {
                let start = self.position(place);
                bounds = bounds.union(&Bounds { start, end: start.map(|at| at + 1) });
            }
            assert_eq!(body.bounds, bounds, "box of body {}", body.body);
        }
        assert_sound(map).await;
    }
}
