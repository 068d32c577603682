//! Arrays, selections of them, and the expected results, computed the slow way.

use chunkyard_array::{ArraySpec, Axis, Points, Selection, codec};
use proptest::prelude::*;
use serde_json::Value;

use crate::convert::naive::Naive;
use crate::convert::sample::{Sample, dtypes};

/// One axis of an array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) extent: u64,
    pub(crate) chunk: u64,
}

/// A selection: in the form for the engine, and element by element.
#[derive(Debug, Clone)]
pub(crate) struct Picked {
    pub(crate) way: Way,
    pub(crate) indices: Vec<Vec<u64>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Way {
    Selection(Selection),
    Points(Points),
}

/// Axes of an array; some have no extent.
pub(crate) fn extents() -> impl Strategy<Value = Vec<Extent>> {
    let extent = (0u64..10, 1u64..6).prop_map(|(extent, chunk)| Extent { extent, chunk });
    prop::collection::vec(extent, 0..4)
}

/// An array of that extent, with elements.
pub(crate) fn sample_of(extents: &[Extent], dtype: &Value, codecs: Option<&str>) -> Sample {
    let (shape, chunk): (Vec<u64>, Vec<u64>) =
        extents.iter().map(|axis| (axis.extent, axis.chunk)).unzip();
    let mut spec = ArraySpec::builder(&shape, &chunk, dtype.clone()).build().unwrap();
    if let Some(codecs) = codecs {
        let codecs = codec::parse_shorthand(codecs, &spec.dtype().unwrap()).unwrap();
        spec = spec.with_codecs(codecs).unwrap();
    }
    Sample::of(spec)
}

pub(crate) fn dtype() -> impl Strategy<Value = Value> {
    prop::sample::select(dtypes())
}

/// A selection, or points, within an array.
pub(crate) fn picked(extents: &[Extent]) -> BoxedStrategy<Picked> {
    let axes: Vec<_> = extents.iter().map(|axis| along(axis.extent)).collect();
    let selection = axes.prop_map(|axes| {
        let (axes, positions): (Vec<Axis>, Vec<Vec<u64>>) = axes.into_iter().unzip();
        let indices = positions.iter().fold(vec![Vec::new()], |all, positions| {
            let longer = |index: Vec<u64>| {
                positions.iter().map(move |&at| [index.as_slice(), &[at]].concat())
            };
            all.into_iter().flat_map(longer).collect()
        });
        Picked { way: Way::Selection(Selection::new(axes)), indices }
    });
    if extents.is_empty() || extents.iter().any(|axis| axis.extent == 0) {
        return selection.boxed();
    }
    let point: Vec<_> = extents.iter().map(|axis| 0..axis.extent).collect();
    let rank = extents.len();
    let points = prop::collection::vec(point, 0..30).prop_map(move |indices| {
        let axis = |axis: usize| indices.iter().map(|index| index[axis]).collect();
        let points = Points::new((0..rank).map(axis).collect()).unwrap();
        Picked { way: Way::Points(points), indices }
    });
    prop_oneof![2 => selection, 1 => points].boxed()
}

fn along(extent: u64) -> BoxedStrategy<(Axis, Vec<u64>)> {
    if extent == 0 {
        return Just((Axis::range(0, 1, 0).unwrap(), Vec::new())).boxed();
    }
    let range = (0..extent, 1u64..5, 0u64..10).prop_map(move |(start, step, count)| {
        let count = count.min((extent - start).div_ceil(step));
        let positions = (0..count).map(|at| start + at * step).collect();
        (Axis::range(start, step, count).unwrap(), positions)
    });
    let list = prop::collection::vec(0..extent, 0..8)
        .prop_map(|positions| (Axis::list(positions.clone()), positions));
    let whole = Just((Axis::range(0, 1, extent).unwrap(), (0..extent).collect()));
    prop_oneof![2 => range, 2 => list, 1 => whole].boxed()
}

impl Picked {
    /// Shape of the selection.
    pub(crate) fn shape(&self) -> Vec<u64> {
        match &self.way {
            Way::Selection(selection) => selection.shape().to_vec(),
            Way::Points(points) => vec![points.len() as u64],
        }
    }

    /// The selected elements of an array.
    pub(crate) fn take(&self, array: &Naive) -> Naive {
        let cells = self.indices.iter().map(|index| array.cells[at(array, index)].clone());
        Naive { shape: self.shape(), cells: cells.collect() }
    }

    /// Writes elements one after the other.
    pub(crate) fn put(&self, array: &mut Naive, elements: &[Vec<u8>]) {
        for (index, element) in self.indices.iter().zip(elements) {
            let at = at(array, index);
            array.cells[at].clone_from(element);
        }
    }
}

fn at(array: &Naive, index: &[u64]) -> usize {
    index.iter().zip(&array.shape).fold(0, |at, (&i, &extent)| at * extent + i) as usize
}
