//! A labelmap: questions and edits. Ids and positions go in as contiguous `uint64` and come out as
//! little-endian bytes; axes are z, y, x.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_engine::labels::{
    self, ArrayVolume, Author, Edit, Ids, Imported, Layout, Mapping, Resolution, Run, Runs, Side,
    Volume,
};
use chunkyard_engine::{Error, Meter};
use futures::TryStreamExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use serde_json::json;

use crate::array::Array;
use crate::error::to_python;
use crate::json;
use crate::memory::Lent;
use crate::options::Version;
use crate::repository::Repository;
use crate::runtime::wait;
use crate::session::Session;
use crate::table::TableScan;
use crate::volume::PythonVolume;
use crate::watch::Watch;

/// A segmentation in a session.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Labelmap {
    inner: labels::Labelmap,
}

/// The layout of a new labelmap, as Python gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    shape: [u64; 3],
    block: [u32; 3],
    /// As many as it takes until one block holds all, if not given.
    scales: Option<usize>,
    voxel_size: [f64; 3],
    unit: Option<String>,
}

impl Wanted {
    fn layout(self) -> Layout {
        let layout = Layout::new(self.shape).with_block(self.block);
        let scales = self.scales.unwrap_or(layout.scales);
        Layout { scales, voxel_size: self.voxel_size, unit: self.unit, ..layout }
    }
}

/// A set of voxels: a mask with its place, or runs of z, y, x and length.
#[derive(FromPyObject)]
enum Voxels<'py> {
    Mask([u64; 3], [u64; 3], Bound<'py, PyAny>),
    Runs(PyBuffer<u64>),
}

impl Voxels<'_> {
    fn runs(self, py: Python<'_>) -> PyResult<Runs> {
        match self {
            Self::Mask(origin, shape, mask) => {
                let mask = Lent::new(&mask, false)?;
                let runs = py.detach(|| {
                    let mask: Vec<bool> = mask.as_ref().iter().map(|&inside| inside != 0).collect();
                    Runs::of_mask(origin, shape, &mask)
                });
                runs.map_err(to_python)
            }
            Self::Runs(numbers) => {
                let numbers = numbers.to_vec(py)?;
                let runs = numbers.as_chunks().0.iter();
                Ok(Runs::new(
                    runs.map(|&[z, y, x, length]| Run { start: [z, y, x], length }).collect(),
                ))
            }
        }
    }
}

/// By whom an edit is made, and why.
#[derive(FromPyObject)]
pub(crate) struct By(String, String);

impl By {
    fn author(self) -> Author {
        Author { user: self.0, note: self.1 }
    }
}

#[pymethods]
impl Labelmap {
    #[staticmethod]
    fn open(py: Python<'_>, session: &Session, path: &str) -> PyResult<Self> {
        Ok(Self { inner: wait(py, labels::Labelmap::open(session.inner(), path))? })
    }

    /// The paths of all labelmaps of a session.
    #[staticmethod]
    fn list(py: Python<'_>, session: &Session) -> PyResult<Vec<String>> {
        wait(py, labels::Labelmap::list(session.inner()))
    }

    /// Creates an empty one.
    #[staticmethod]
    fn create(py: Python<'_>, session: &Session, path: &str, layout: Wanted) -> PyResult<Self> {
        let layout = layout.layout();
        Ok(Self { inner: wait(py, labels::Labelmap::create(session.inner(), path, layout))? })
    }

    /// Creates one from an array, or from a function that gives the labels between two corners. The rows
    /// of the mapping are sorted. Gives what was imported too.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "the parts of an import")]
    fn import_<'py>(
        py: Python<'py>,
        session: &Session,
        path: &str,
        layout: Wanted,
        volume: &Bound<'_, PyAny>,
        supervoxels: PyBuffer<u64>,
        bodies: PyBuffer<u64>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Bound<'py, PyAny>)> {
        let layout = layout.layout();
        let mapping = Mapping::from_sorted(supervoxels.to_vec(py)?, bodies.to_vec(py)?);
        let mapping = mapping.map_err(to_python)?;
        let meter = Arc::<Meter>::default();
        let watch = Watch::new(meter.clone(), report);
        let shape = layout.shape;
        let import = |volume: &dyn Volume| -> PyResult<(labels::Labelmap, Imported)> {
            let session = session.inner();
            let import = labels::Labelmap::import(session, path, layout, volume, &mapping, &meter);
            watch.wait(py, import)
        };
        let (inner, imported) = match volume.cast::<Array>() {
            Ok(array) => {
                import(&ArrayVolume::new(array.get().reader().clone()).map_err(to_python)?)?
            }
            Err(_) => {
                let volume = PythonVolume::new(shape, volume.clone().unbind());
                import(&volume).map_err(|error| volume.raised().unwrap_or(error))?
            }
        };
        Ok((Self { inner }, json::to_python(py, &imported)?))
    }

    #[getter]
    fn path(&self) -> &str {
        self.inner.path()
    }

    /// Shape, block, scales, size and unit of voxels.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, self.inner.layout())
    }

    /// The labels at points: z, y and x of one after the other.
    fn labels_at<'py>(
        &self,
        py: Python<'py>,
        points: PyBuffer<u64>,
        supervoxels: bool,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let points = points.to_vec(py)?;
        numbers(py, &wait(py, self.inner.labels_at(points.as_chunks().0, ids(supervoxels)))?)
    }

    fn bodies_of<'py>(
        &self,
        py: Python<'py>,
        supervoxels: PyBuffer<u64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let supervoxels = supervoxels.to_vec(py)?;
        numbers(py, &wait(py, self.inner.bodies_of(&supervoxels))?)
    }

    fn body<'py>(&self, py: Python<'py>, body: u64) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &wait(py, self.inner.body(body))?)
    }

    fn supervoxels_of<'py>(&self, py: Python<'py>, body: u64) -> PyResult<Bound<'py, PyByteArray>> {
        let found = wait(py, self.inner.supervoxels_of(body))?;
        numbers(py, &found.iter().map(|row| row.supervoxel).collect::<Vec<_>>())
    }

    /// The blocks of a body: z, y, x and the number of voxels of one after the other.
    fn blocks_of<'py>(&self, py: Python<'py>, body: u64) -> PyResult<Bound<'py, PyByteArray>> {
        let found = wait(py, self.inner.blocks_of(body))?;
        let rows = found.iter().map(|(at, voxels)| {
            let [z, y, x] = at.map(u64::from);
            [z, y, x, *voxels]
        });
        numbers(py, rows.collect::<Vec<_>>().as_flattened())
    }

    /// The runs of a body: z, y, x and length of one after the other.
    fn sparse_volume<'py>(
        &self,
        py: Python<'py>,
        body: u64,
        supervoxel: Option<u64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let runs = wait(py, self.inner.sparse_volume(body, supervoxel))?;
        let rows = runs.runs().iter().map(|run| {
            let [z, y, x] = run.start;
            [z, y, x, run.length]
        });
        numbers(py, rows.collect::<Vec<_>>().as_flattened())
    }

    fn labels_in<'py>(
        &self,
        py: Python<'py>,
        origin: [u64; 3],
        shape: [u64; 3],
        supervoxels: bool,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let found = wait(py, async {
            let region = Region::new(origin, shape)?;
            self.inner.labels_in(&region, ids(supervoxels)).await
        })?;
        numbers(py, &found)
    }

    /// The rows of the mapping: all supervoxels, and the body of each.
    fn mapping<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let mapping = wait(py, self.inner.load_mapping())?;
        let (supervoxels, bodies): (Vec<u64>, Vec<u64>) = mapping.rows().unzip();
        Ok((numbers(py, &supervoxels)?, numbers(py, &bodies)?))
    }

    fn scan(&self, name: &str, columns: Option<Vec<String>>) -> PyResult<TableScan> {
        TableScan::new(self.inner.table(name).map_err(to_python)?, columns.as_deref())
    }

    /// The log from a mutation on, oldest first.
    fn log<'py>(&self, py: Python<'py>, since: u64) -> PyResult<Bound<'py, PyAny>> {
        let found: Vec<_> = wait(py, async { self.inner.mutations(since)?.try_concat().await })?;
        json::to_python(py, &found)
    }

    /// Which mutations decided about a supervoxel, each with the body before it and after it.
    fn blame<'py>(&self, py: Python<'py>, supervoxel: u64) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &wait(py, self.inner.blame(supervoxel))?)
    }

    fn verify<'py>(
        &self,
        py: Python<'py>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let meter = Arc::<Meter>::default();
        let watch = Watch::new(meter.clone(), report);
        json::to_python(py, &watch.wait(py, self.inner.verify(&meter))?)
    }

    fn merge<'py>(
        &self,
        py: Python<'py>,
        target: u64,
        bodies: PyBuffer<u64>,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bodies = bodies.to_vec(py)?;
        self.apply(py, Edit::Merge { target, bodies }, by)
    }

    fn cleave<'py>(
        &self,
        py: Python<'py>,
        body: u64,
        supervoxels: PyBuffer<u64>,
        new_body: Option<u64>,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        let supervoxels = supervoxels.to_vec(py)?;
        self.apply(py, Edit::Cleave { body, supervoxels, new_body }, by)
    }

    fn split_supervoxel<'py>(
        &self,
        py: Python<'py>,
        supervoxel: u64,
        voxels: Voxels<'_>,
        part: Option<u64>,
        rest: Option<u64>,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        let voxels = voxels.runs(py)?;
        self.apply(py, Edit::SplitSupervoxel { supervoxel, voxels, part, rest }, by)
    }

    fn split_body<'py>(
        &self,
        py: Python<'py>,
        body: u64,
        voxels: Voxels<'_>,
        new_body: Option<u64>,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        let voxels = voxels.runs(py)?;
        self.apply(py, Edit::SplitBody { body, voxels, new_body, halves: Vec::new() }, by)
    }

    fn renumber<'py>(
        &self,
        py: Python<'py>,
        body: u64,
        new_body: u64,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, Edit::Renumber { body, new_body }, by)
    }

    fn map<'py>(
        &self,
        py: Python<'py>,
        supervoxels: PyBuffer<u64>,
        bodies: PyBuffer<u64>,
        by: By,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (supervoxels, bodies) = (supervoxels.to_vec(py)?, bodies.to_vec(py)?);
        let mapping = supervoxels.into_iter().zip(bodies).collect();
        self.apply(py, Edit::Map { mapping }, by)
    }

    fn revert<'py>(&self, py: Python<'py>, mutation: u64, by: By) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, Edit::Revert { mutation }, by)
    }

    /// Commits the session; gives the id of the new snapshot.
    fn commit(&self, py: Python<'_>, message: &str) -> PyResult<String> {
        Ok(wait(py, self.inner.commit(message))?.snapshot_id.clone())
    }
}

impl Labelmap {
    fn apply<'py>(&self, py: Python<'py>, edit: Edit, by: By) -> PyResult<Bound<'py, PyAny>> {
        let author = by.author();
        json::to_python(py, &wait(py, self.inner.apply(&edit, &author))?)
    }
}

/// Compares two versions of a labelmap. Body, z, y and x of all blocks that differ come apart, as numbers.
#[pyfunction]
pub(crate) fn diff_labels<'py>(
    py: Python<'py>,
    repository: &Repository,
    before: Version,
    after: Version,
    path: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyByteArray>)> {
    let mut diff = wait(py, labels::diff(repository.inner(), &before.0, &after.0, path))?;
    let rows = std::mem::take(&mut diff.blocks).into_iter().map(|(body, at)| {
        let [z, y, x] = at.map(u64::from);
        [body, z, y, x]
    });
    let blocks = numbers(py, rows.collect::<Vec<_>>().as_flattened())?;
    Ok((json::to_python(py, &diff)?, blocks))
}

/// Brings the edits of a version into a branch. `sides` says whose edits of a body stay, `others` of all
/// other bodies.
#[pyfunction]
#[pyo3(signature = (repository, branch, theirs, path, sides, others, by))]
#[expect(clippy::too_many_arguments, reason = "the parts of a merge")]
pub(crate) fn merge_labels<'py>(
    py: Python<'py>,
    repository: &Repository,
    branch: &str,
    theirs: Version,
    path: &str,
    sides: BTreeMap<u64, String>,
    others: Option<String>,
    by: By,
) -> PyResult<Bound<'py, PyAny>> {
    let bodies = sides.into_iter().map(|(body, side)| Ok((body, parse_side(&side)?)));
    let resolution = Resolution {
        bodies: bodies.collect::<PyResult<_>>()?,
        others: others.as_deref().map(parse_side).transpose()?,
    };
    let author = by.author();
    let repository = repository.inner();
    let merge = labels::merge_branch(repository, branch, &theirs.0, path, &resolution, &author);
    json::to_python(py, &wait(py, merge)?)
}

fn parse_side(side: &str) -> PyResult<Side> {
    serde_json::from_value(json!(side)).map_err(|_| {
        to_python(Error::invalid(format!("edits stay by 'ours' or 'theirs', not {side:?}")))
    })
}

fn ids(supervoxels: bool) -> Ids {
    if supervoxels { Ids::Supervoxels } else { Ids::Bodies }
}

/// Numbers for NumPy: little-endian, in memory that Python may change.
fn numbers<'py>(py: Python<'py>, values: &[u64]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, values.len().saturating_mul(8), |bytes| {
        for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
        Ok(())
    })
}
