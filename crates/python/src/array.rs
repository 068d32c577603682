//! An array: selections of it, read into and written from memory of Python.
//!
//! A selection is given by its axes: along each a tuple of start, step and count, or indices as
//! contiguous `uint64`. The axes are combined, or with `pointwise` they are coordinates of points.

use chunkyard_array::ElementsBuf;
use chunkyard_engine::format::container::ContainerArray;
use chunkyard_engine::format::zarr3::Zarr3Array;
use chunkyard_engine::format::{Reader, Writer};
use chunkyard_engine::{Error, repo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::bridge::answer;
use crate::error::to_python;
use crate::memory::Lent;
use crate::runtime::wait;
use crate::selection::{Along, Chosen};

/// One array of any dataset.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Array {
    reader: Reader,
    /// For changes, if the array can be changed.
    writer: Option<Writer>,
}

impl Array {
    pub(crate) fn of_session(array: &repo::Array) -> Self {
        Self { reader: array.reader().clone(), writer: Some(array.writer().clone()) }
    }

    pub(crate) fn of_editor(array: &Zarr3Array) -> Self {
        Self { reader: array.reader().clone(), writer: Some(array.writer().clone()) }
    }

    pub(crate) fn of_container(array: &ContainerArray) -> PyResult<Self> {
        let reader = array.reader().map_err(to_python)?.clone();
        Ok(Self { reader, writer: Some(array.writer().map_err(to_python)?) })
    }

    pub(crate) fn of_writer(writer: Writer) -> Self {
        Self { reader: writer.reader().clone(), writer: Some(writer) }
    }

    pub(crate) fn of_source(reader: Reader) -> Self {
        Self { reader, writer: None }
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    fn writer(&self) -> PyResult<&Writer> {
        let refused = || Error::unsupported(format!("writing to {} here", self.reader.path()));
        self.writer.as_ref().ok_or_else(|| to_python(refused()))
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

    /// NumPy's description of the elements, if it has one.
    #[getter]
    fn numpy_dtype(&self) -> Option<String> {
        self.reader.codecs().whole().dtype().to_numpy()
    }

    /// Zarr's name of the data type.
    #[getter]
    fn data_type(&self) -> &str {
        self.reader.codecs().whole().dtype().name()
    }

    /// Bytes of an element; `None` if that varies.
    #[getter]
    fn item_size(&self) -> Option<usize> {
        self.reader.codecs().whole().item_size()
    }

    /// The bytes of one element that was never written.
    #[getter]
    fn fill_element<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.reader.codecs().whole().fill_element())
    }

    /// Reads a selection into `out`: writable, contiguous bytes of exactly its size.
    fn read(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        pointwise: bool,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let wanted = Chosen::new(py, axes, pointwise)?;
        let memory = Lent::new(out, true)?;
        wait(py, wanted.read_into(&self.reader, memory))?;
        Ok(())
    }

    /// Writes a selection from the bytes of `elements`. If positions repeat, the last one stays.
    fn write(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        pointwise: bool,
        elements: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let wanted = Chosen::new(py, axes, pointwise)?;
        let elements = Lent::new(elements, false)?;
        wait(py, wanted.write(self.writer()?, elements))
    }

    /// Sets all of a selection to one element.
    fn fill(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        pointwise: bool,
        element: Vec<u8>,
    ) -> PyResult<()> {
        let wanted = Chosen::new(py, axes, pointwise)?;
        wait(py, wanted.fill(self.writer()?, element))
    }

    /// Like `read`, for callers in asyncio: gives `None`, or a future of it.
    fn read_async(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let (wanted, reader) = (Chosen::new(py, axes, false)?, self.reader.clone());
        let memory = Lent::new(out, true)?;
        let read = async move { wanted.read_into(&reader, memory).await.map(drop) };
        answer(py, read, |py, ()| Ok(py.None()))
    }

    /// Like `write`, for callers in asyncio.
    fn write_async(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        elements: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let (wanted, writer) = (Chosen::new(py, axes, false)?, self.writer()?.clone());
        let elements = Lent::new(elements, false)?;
        let write = async move { wanted.write(&writer, elements).await };
        answer(py, write, |py, ()| Ok(py.None()))
    }

    /// Like `fill`, for callers in asyncio.
    fn fill_async(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        element: Vec<u8>,
    ) -> PyResult<Py<PyAny>> {
        let (wanted, writer) = (Chosen::new(py, axes, false)?, self.writer()?.clone());
        let fill = async move { wanted.fill(&writer, element).await };
        answer(py, fill, |py, ()| Ok(py.None()))
    }

    /// Reads a selection of elements of variable length, as a list of `str` or `bytes`.
    fn read_elements<'py>(
        &self,
        py: Python<'py>,
        axes: Vec<Along>,
        pointwise: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let wanted = Chosen::new(py, axes, pointwise)?;
        let found = wait(py, wanted.read_elements(&self.reader))?;
        let is_text = self.data_type() == "string";
        let found = found.as_ref();
        let elements = (0..).map_while(|at| found.get(at)).map(|bytes| match is_text {
            true => Ok(PyString::from_bytes(py, bytes)?.into_any()),
            false => Ok(PyBytes::new(py, bytes).into_any()),
        });
        PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)
    }

    /// Writes a selection of elements of variable length.
    fn write_elements(
        &self,
        py: Python<'_>,
        axes: Vec<Along>,
        pointwise: bool,
        elements: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let wanted = Chosen::new(py, axes, pointwise)?;
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
        wait(py, wanted.write_elements(self.writer()?, elements))
    }

    /// The encoded bytes of a chunk; `None` if it was never written.
    fn encoded_chunk<'py>(
        &self,
        py: Python<'py>,
        index: Vec<u64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let fetched = wait(py, self.reader.fetch_chunks(&[index]))?;
        Ok(fetched.into_iter().next().flatten().map(|bytes| PyBytes::new(py, &bytes)))
    }
}
