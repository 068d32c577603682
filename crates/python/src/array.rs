//! An array: regions of it, read into and written from memory of Python.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_engine::format::Reader;
use chunkyard_engine::{Error, repo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::error::to_python;
use crate::memory::Lent;
use crate::runtime::wait;

/// One array of whatever holds it.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Array {
    reader: Reader,
    /// Where it is part of a session.
    session: Option<repo::Array>,
}

impl Array {
    pub(crate) fn of_session(array: repo::Array) -> Self {
        Self { reader: array.reader().clone(), session: Some(array) }
    }

    pub(crate) fn of_source(reader: Reader) -> Self {
        Self { reader, session: None }
    }

    fn writer(&self) -> PyResult<&repo::Array> {
        let refused = || Error::unsupported(format!("writing to {} here", self.reader.path()));
        self.session.as_ref().ok_or_else(|| to_python(refused()))
    }
}

#[pymethods]
impl Array {
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.reader.codecs().grid().array_shape().to_vec()
    }

    /// Shape of the chunks.
    #[getter]
    fn chunks(&self) -> Vec<u64> {
        self.reader.codecs().grid().chunk_shape().to_vec()
    }

    /// NumPy's description of the elements, where it has one.
    #[getter]
    fn numpy_dtype(&self) -> Option<String> {
        self.reader.codecs().whole().dtype().to_numpy()
    }

    /// Zarr's name of the data type.
    #[getter]
    fn data_type(&self) -> &str {
        self.reader.codecs().whole().dtype().name()
    }

    /// Bytes of an element; `None` where that varies.
    #[getter]
    fn item_size(&self) -> Option<usize> {
        self.reader.codecs().whole().item_size()
    }

    /// The bytes of one element that was never written.
    #[getter]
    fn fill_element<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.reader.codecs().whole().fill_element())
    }

    /// Reads a region into `out`: writable, contiguous bytes, exactly as many as it takes.
    fn read(
        &self,
        py: Python<'_>,
        origin: Vec<u64>,
        shape: Vec<u64>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let region = region(&origin, &shape)?;
        let memory = Lent::new(out, true)?;
        wait(py, self.reader.read_region_into(&region, memory))?;
        Ok(())
    }

    /// Writes a region from the bytes of `elements`.
    fn write(
        &self,
        py: Python<'_>,
        origin: Vec<u64>,
        shape: Vec<u64>,
        elements: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let region = region(&origin, &shape)?;
        let elements = Lent::new(elements, false)?.into_bytes();
        wait(py, self.writer()?.write_region(&region, elements))
    }

    /// Reads a region of elements of variable length, as a list of `str` or `bytes`.
    fn read_elements<'py>(
        &self,
        py: Python<'py>,
        origin: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let region = region(&origin, &shape)?;
        let found = wait(py, self.reader.read_elements(&region))?;
        let is_text = self.data_type() == "string";
        let found = found.as_ref();
        let elements = (0..).map_while(|at| found.get(at)).map(|bytes| match is_text {
            true => Ok(PyString::from_bytes(py, bytes)?.into_any()),
            false => Ok(PyBytes::new(py, bytes).into_any()),
        });
        PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)
    }

    /// Writes a region of elements of variable length.
    fn write_elements(
        &self,
        py: Python<'_>,
        origin: Vec<u64>,
        shape: Vec<u64>,
        elements: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let region = region(&origin, &shape)?;
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for element in elements {
            match element.cast::<PyString>() {
                Ok(text) => bytes.extend_from_slice(text.to_str()?.as_bytes()),
                Err(_) => bytes.extend_from_slice(element.extract::<&[u8]>()?),
            }
            offsets.push(bytes.len() as u64);
        }
        let elements = ElementsBuf::Variable { bytes, offsets };
        wait(py, self.writer()?.write_elements(&region, elements))
    }

    /// The encoded bytes of a chunk; `None` where it was never written.
    fn encoded_chunk<'py>(
        &self,
        py: Python<'py>,
        index: Vec<u64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let fetched = wait(py, self.reader.fetch_chunks(&[index]))?;
        Ok(fetched.into_iter().next().flatten().map(|bytes| PyBytes::new(py, &bytes)))
    }
}

pub(crate) fn region(origin: &[u64], shape: &[u64]) -> PyResult<Region> {
    Region::new(origin, shape).map_err(|error| to_python(error.into()))
}
