//! A selection of an array, as Python gives it.

use chunkyard_array::{Axis, ElementsBuf, Points, Selection};
use chunkyard_engine::Result;
use chunkyard_engine::format::{Reader, Writer};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::memory::Lent;

/// Along one axis: start, step and count, or indices.
#[derive(FromPyObject)]
pub(crate) enum Along {
    Range(u64, u64, u64),
    List(PyBuffer<u64>),
}

/// All combinations along the axes, or points with these coordinates.
pub(crate) enum Chosen {
    Selection(Selection),
    Points(Points),
}

impl Chosen {
    pub(crate) fn new(py: Python<'_>, axes: Vec<Along>, pointwise: bool) -> PyResult<Self> {
        let refused = |error: chunkyard_array::Error| to_python(error.into());
        if pointwise {
            let coordinates = axes.into_iter().map(|along| match along {
                Along::Range(start, step, count) => {
                    Ok((0..count).map(|n| start + n * step).collect())
                }
                Along::List(indices) => indices.to_vec(py),
            });
            let points = Points::new(coordinates.collect::<PyResult<_>>()?);
            return points.map(Self::Points).map_err(refused);
        }
        let axes = axes.into_iter().map(|along| match along {
            Along::Range(start, step, count) => Axis::range(start, step, count).map_err(refused),
            Along::List(indices) => Ok(Axis::list(indices.to_vec(py)?)),
        });
        Ok(Self::Selection(Selection::new(axes.collect::<PyResult<_>>()?)))
    }

    pub(crate) async fn read_into(&self, reader: &Reader, memory: Lent) -> Result<Lent> {
        match self {
            Self::Selection(selection) => reader.read_selection_into(selection, memory).await,
            Self::Points(points) => reader.read_points_into(points, memory).await,
        }
    }

    pub(crate) async fn read_elements(&self, reader: &Reader) -> Result<ElementsBuf> {
        match self {
            Self::Selection(selection) => reader.read_selected_elements(selection).await,
            Self::Points(points) => reader.read_point_elements(points).await,
        }
    }

    pub(crate) async fn write(&self, writer: &Writer, elements: Lent) -> Result<()> {
        let elements = elements.into_bytes();
        match self {
            Self::Selection(selection) => writer.write_selection(selection, elements).await,
            Self::Points(points) => writer.write_points(points, elements).await,
        }
    }

    pub(crate) async fn fill(&self, writer: &Writer, element: Vec<u8>) -> Result<()> {
        match self {
            Self::Selection(selection) => writer.fill_selection(selection, element.into()).await,
            Self::Points(points) => writer.fill_points(points, element.into()).await,
        }
    }

    pub(crate) async fn write_elements(
        &self,
        writer: &Writer,
        elements: ElementsBuf,
    ) -> Result<()> {
        match self {
            Self::Selection(selection) => writer.write_selected_elements(selection, elements).await,
            Self::Points(points) => writer.write_point_elements(points, elements).await,
        }
    }
}
