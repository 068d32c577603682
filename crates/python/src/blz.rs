//! An array or table that grows at its end.

use chunkyard_array::Attributes;
use chunkyard_engine::format::Place;
use chunkyard_engine::format::superchunk::{self, BlzOptions, Filter, Wanted, dtype, names};
use chunkyard_engine::store::Store;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::array::Array;
use crate::error::to_python;
use crate::json;
use crate::memory::Lent;
use crate::options::OpenOptions;
use crate::runtime::wait;

/// A dataset of rows, and added rows that wait for a flush.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Blz {
    inner: superchunk::Blz,
}

/// Opens the dataset at a URL.
#[pyfunction]
pub(crate) fn open_blz(
    py: Python<'_>,
    url: &str,
    options: OpenOptions,
    mutable: bool,
) -> PyResult<Blz> {
    let how = blz_options(&options, mutable);
    let place = Place::new(url, &how.open.store).map_err(to_python)?;
    Ok(Blz::new(wait(py, superchunk::Blz::open(&place, how))?))
}

/// Creates a dataset at a URL; without a URL, in memory that lives as long as the dataset.
#[pyfunction]
pub(crate) fn create_blz(
    py: Python<'_>,
    url: Option<&str>,
    options: OpenOptions,
    wanted: &Bound<'_, PyDict>,
    mutable: bool,
) -> PyResult<Blz> {
    let how = blz_options(&options, mutable);
    // Attributes are converted separately, so that no number loses digits.
    let words = wanted.copy()?;
    let attributes = match words.get_item("attributes")? {
        Some(given) => json::attributes(&given)?,
        None => Attributes::new(),
    };
    words.set_item("attributes", PyDict::new(py))?;
    let wanted = Wanted { attributes, ..json::of_python(&words)? };
    let place = match url {
        Some(url) => Place::new(url, &how.open.store),
        None => Store::unnamed(&how.open.store).and_then(|store| Place::within(store, "x.blz")),
    };
    let place = place.map_err(to_python)?;
    let creation = wanted.creation().map_err(to_python)?;
    Ok(Blz::new(wait(py, superchunk::Blz::create(&place, &creation, how))?))
}

fn blz_options(options: &OpenOptions, mutable: bool) -> BlzOptions {
    BlzOptions { open: options.any(None), mutable, ..BlzOptions::default() }
}

impl Blz {
    pub(crate) fn new(inner: superchunk::Blz) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Blz {
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.inner.len())?)
    }

    /// The layout of its directory: `superchunk`, `document` or `bcolz`.
    #[getter]
    fn style(&self) -> &'static str {
        self.inner.style().word()
    }

    /// Whether its columns have names.
    #[getter]
    fn is_table(&self) -> bool {
        self.inner.is_table()
    }

    /// Encoded bytes of all chunks that are committed.
    #[getter]
    fn cbytes(&self) -> u64 {
        self.inner.sizes().cbytes
    }

    /// The columns as documents, in their order.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let columns = self.inner.columns();
        let documents = columns.iter().map(|column| {
            let text = dtype::render(&column.row).map_err(to_python)?;
            let dirs = column.path.split('/').filter(|dir| !dir.is_empty());
            let named: Vec<_> =
                dirs.map(|dir| names::parse_field_dir(dir).unwrap_or_else(|| dir.into())).collect();
            let document = PyDict::new(py);
            document.set_item("path", &*column.path)?;
            document.set_item("names", named)?;
            document.set_item("dtype", text)?;
            document.set_item("row_shape", &column.row_shape)?;
            document.set_item("chunklen", column.chunklen)?;
            document.set_item("superchunk", column.superchunk)?;
            Ok(document)
        });
        documents.collect()
    }

    /// A column as it is now.
    fn array(&self, path: &str) -> PyResult<Array> {
        Ok(Array::of_source(self.inner.reader(path).map_err(to_python)?))
    }

    /// The same, to be changed: an error unless it was opened with that mode.
    fn mutable_array(&self, path: &str) -> PyResult<Array> {
        Ok(Array::of_writer(self.inner.writer(path).map_err(to_python)?))
    }

    /// What a reader should know.
    fn cautions(&self) -> Vec<String> {
        self.inner.cautions()
    }

    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.inner.attributes().into())
    }

    /// Replaces all attributes.
    fn set_attributes(&self, py: Python<'_>, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = json::attributes(attributes)?;
        wait(py, self.inner.set_attributes(attributes))
    }

    /// Adds rows: for each column the bytes of the same number of rows.
    fn append(&self, py: Python<'_>, columns: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let lent = columns.iter().map(|rows| Ok(Lent::new(rows, false)?.into_bytes()));
        let lent = lent.collect::<PyResult<Vec<_>>>()?;
        wait(py, self.inner.append(lent))
    }

    /// Cuts rows off the end.
    fn trim(&self, py: Python<'_>, rows: u64) -> PyResult<()> {
        wait(py, self.inner.trim(rows))
    }

    /// Cuts rows off, or adds default rows.
    fn resize(&self, py: Python<'_>, rows: u64) -> PyResult<()> {
        wait(py, self.inner.resize(rows))
    }

    /// Makes all added rows visible.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.flush())
    }

    /// Drops all added rows that are not flushed.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            self.inner.discard().await;
            Ok(())
        })
    }

    /// Looks again at what is stored.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.refresh())
    }

    /// The rows of a range that fulfil a condition, as `uint64`.
    fn matching<'py>(
        &self,
        py: Python<'py>,
        condition: &str,
        start: u64,
        stop: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let filter = Filter::parse(condition).map_err(to_python)?;
        let rows = wait(py, self.inner.matching(&filter, start..stop))?;
        let bytes: Vec<u8> = rows.into_iter().flat_map(u64::to_le_bytes).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// How many rows of these columns take about this many bytes.
    fn rows_of_bytes(&self, paths: Vec<String>, bytes: u64) -> PyResult<u64> {
        let columns = paths.iter().map(|path| self.inner.column(path));
        let columns = columns.collect::<chunkyard_engine::Result<Vec<_>>>().map_err(to_python)?;
        Ok(self.inner.rows_of_bytes(&columns, bytes))
    }
}
