//! Voxels as runs along x: what a split takes and a sparse volume is.

use std::collections::BTreeMap;

use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

/// Bytes before the runs of DVID's form.
const HEAD: usize = 12;
/// Bytes of a run there.
const RUN: usize = 16;

/// Voxels side by side along x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// The first, along z, y and x.
    pub start: [u64; 3],
    /// How many.
    pub length: u64,
}

/// A set of voxels: sorted runs that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Run>", into = "Vec<Run>")]
pub struct Runs(Vec<Run>);

impl From<Vec<Run>> for Runs {
    fn from(runs: Vec<Run>) -> Self {
        Self::new(runs)
    }
}

impl From<Runs> for Vec<Run> {
    fn from(runs: Runs) -> Self {
        runs.0
    }
}

impl Runs {
    /// Runs in any order, which may overlap.
    pub fn new(mut runs: Vec<Run>) -> Self {
        runs.retain(|run| run.length > 0);
        runs.sort_unstable();
        runs.dedup_by(|later, kept| {
            let end = kept.start[2].saturating_add(kept.length);
            let joins = later.start[..2] == kept.start[..2] && later.start[2] <= end;
            if joins {
                let end = end.max(later.start[2].saturating_add(later.length));
                kept.length = end - kept.start[2];
            }
            joins
        });
        Self(runs)
    }

    /// The voxels of a box that are true in a mask, x fastest.
    pub fn of_mask(origin: [u64; 3], shape: [u64; 3], mask: &[bool]) -> Result<Self> {
        let count = shape.iter().try_fold(1u64, |count, &extent| count.checked_mul(extent));
        if count != Some(mask.len() as u64) {
            return Err(Error::invalid(format!("a mask of {shape:?} has {} voxels", mask.len())));
        }
        let mut runs = Vec::new();
        for (row, line) in mask.chunks_exact((shape[2] as usize).max(1)).enumerate() {
            let (z, y) = (row as u64 / shape[1], row as u64 % shape[1]);
            let mut x = 0;
            for same in line.chunk_by(|a, b| a == b) {
                if same.first() == Some(&true) {
                    // Positions that do not exist are refused with the volume, see `check`.
                    let offset = [z, y, x];
                    let start =
                        std::array::from_fn(|axis| origin[axis].saturating_add(offset[axis]));
                    runs.push(Run { start, length: same.len() as u64 });
                }
                x += same.len() as u64;
            }
        }
        Ok(Self::new(runs))
    }

    /// Reads DVID's form of a sparse volume: a head of 12 bytes, then x, y, z and length of each run as
    /// 32-bit numbers.
    pub fn parse_dvid(bytes: &[u8]) -> Result<Self> {
        let corrupt = |expected: String, found: String| Error::Corrupt {
            file: "sparse volume".into(),
            what: "runs".into(),
            expected,
            found,
        };
        let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
            return Err(corrupt(
                format!("a head of {HEAD} bytes"),
                format!("{} bytes", bytes.len()),
            ));
        };
        if head[1] != 3 {
            return Err(corrupt("3 dimensions".into(), head[1].to_string()));
        }
        let count = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        if rest.len() != count.saturating_mul(RUN) {
            let found = format!("{} bytes after the head", rest.len());
            return Err(corrupt(format!("{count} runs of {RUN} bytes"), found));
        }
        let mut runs = Vec::with_capacity(count);
        for run in rest.as_chunks::<RUN>().0 {
            let words = run.as_chunks::<4>().0;
            let [x, y, z, length] = std::array::from_fn(|at| i32::from_le_bytes(words[at]));
            let number = |value: i32, what: &str| {
                u64::try_from(value)
                    .map_err(|_| corrupt(format!("{what} of 0 or more"), value.to_string()))
            };
            runs.push(Run {
                start: [number(z, "z")?, number(y, "y")?, number(x, "x")?],
                length: number(length, "a length")?,
            });
        }
        Ok(Self::new(runs))
    }

    /// Writes DVID's form of a sparse volume.
    pub fn render_dvid(&self) -> Result<Vec<u8>> {
        let number = |value: u64| {
            i32::try_from(value).map(i32::to_le_bytes).map_err(|_| {
                Error::unsupported(format!("position {value} in a sparse volume of DVID"))
            })
        };
        let count = u32::try_from(self.0.len()).map_err(|_| {
            Error::unsupported(format!("{} runs in a sparse volume of DVID", self.0.len()))
        })?;
        let mut out = vec![0, 3, 0, 0];
        out.extend(0u32.to_le_bytes());
        out.extend(count.to_le_bytes());
        for Run { start: [z, y, x], length } in &self.0 {
            for value in [x, y, z, length] {
                out.extend(number(*value)?);
            }
        }
        Ok(out)
    }

    /// The runs, by position.
    pub fn runs(&self) -> &[Run] {
        &self.0
    }

    /// How many voxels there are.
    pub fn voxels(&self) -> u64 {
        self.0.iter().fold(0, |count, run| count.saturating_add(run.length))
    }

    /// Whether there is no voxel.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses runs that leave the volume.
    pub(crate) fn check(&self, shape: [u64; 3]) -> Result<()> {
        let outside = |run: &&Run| {
            let end = run.start[2].checked_add(run.length);
            run.start[0] >= shape[0]
                || run.start[1] >= shape[1]
                || end.is_none_or(|end| end > shape[2])
        };
        match self.0.iter().find(outside) {
            None => Ok(()),
            Some(run) => Err(Error::invalid(format!(
                "{} voxels from {:?} on leave the volume, which has {shape:?}",
                run.length, run.start
            ))),
        }
    }

    /// The runs cut at the borders of blocks, by block, with positions inside of it.
    pub(crate) fn by_block(&self, edge: [u32; 3]) -> BTreeMap<[u32; 3], Vec<Run>> {
        let edge = edge.map(u64::from);
        let mut blocks: BTreeMap<[u32; 3], Vec<Run>> = BTreeMap::new();
        for run in &self.0 {
            let [z, y, mut x] = run.start;
            let end = x + run.length;
            while x < end {
                let at = [z / edge[0], y / edge[1], x / edge[2]];
                let stop = ((at[2] + 1) * edge[2]).min(end);
                let start = [z % edge[0], y % edge[1], x % edge[2]];
                let part = Run { start, length: stop - x };
                blocks.entry(at.map(|at| at as u32)).or_default().push(part);
                x = stop;
            }
        }
        blocks
    }
}

/// Which voxels of a block are in runs that lie inside of it, x fastest.
pub(crate) fn mask(runs: Option<&Vec<Run>>, edge: [u32; 3]) -> Vec<bool> {
    let [_, y_edge, x_edge] = edge.map(|edge| edge as usize);
    let mut mask = vec![false; edge.iter().map(|&edge| edge as usize).product()];
    for run in runs.into_iter().flatten() {
        let [z, y, x] = run.start.map(|at| at as usize);
        let from = (z * y_edge + y) * x_edge + x;
        if let Some(inside) = mask.get_mut(from..from + run.length as usize) {
            inside.fill(true);
        }
    }
    mask
}
