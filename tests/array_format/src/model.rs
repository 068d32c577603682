//! The naive answer: the arrays that are visible after a script.

use std::collections::BTreeSet;

use chunkyard_engine::format::container::model::{ArrayStats, AttributeValue};

use crate::script::{Definition, Element, Script, Step};
use crate::{elements, statistics};

/// An array that must be visible.
#[derive(Debug, Clone)]
pub struct Expected {
    /// As it was defined.
    pub definition: Definition,
    /// Its attributes, in the order they were first set.
    pub attributes: Vec<(String, AttributeValue)>,
    /// All elements, row-major.
    pub elements: Vec<Element>,
    /// The chunks that were written, wholly or in part.
    pub chunks: BTreeSet<Vec<u32>>,
    /// Its statistics; `None` if no layer had chunks of it.
    pub statistics: Option<ArrayStats>,
}

/// The arrays that are visible after a script, in the order of definition.
pub fn visible(script: &Script) -> Vec<Expected> {
    let mut arrays = Vec::<Expected>::new();
    for step in &script.steps {
        match step {
            Step::Define(definition) => arrays.push(defined(definition)),
            Step::Write { name, start, shape, elements, .. } => {
                if let Some(array) = named(&mut arrays, name) {
                    array.write(start, shape, elements);
                }
            }
            Step::Attribute { name, key, value } => {
                if let Some(array) = named(&mut arrays, name) {
                    array.attributes.retain(|(other, _)| other != key);
                    array.attributes.push((key.clone(), value.clone()));
                }
            }
            Step::Delete { name } => arrays.retain(|array| array.definition.name != *name),
            Step::Flush => arrays.iter_mut().for_each(|array| {
                if !array.chunks.is_empty() {
                    array.statistics = Some(statistics::of(array));
                }
            }),
            Step::Compact => arrays.iter_mut().for_each(|array| {
                array.statistics = Some(statistics::of(array));
            }),
        }
    }
    arrays
}

fn named<'a>(arrays: &'a mut [Expected], name: &str) -> Option<&'a mut Expected> {
    arrays.iter_mut().find(|array| array.definition.name == name)
}

fn defined(definition: &Definition) -> Expected {
    let unwritten = elements::unwritten(&definition.dtype, definition.fill.as_ref());
    Expected {
        definition: definition.clone(),
        attributes: vec![],
        elements: vec![unwritten.unwrap_or_default(); definition.len()],
        chunks: BTreeSet::new(),
        statistics: None,
    }
}

impl Expected {
    fn write(&mut self, start: &[u32], shape: &[u32], elements: &[Element]) {
        for (index, element) in indices(shape).zip(elements) {
            let at: Vec<u32> =
                index.iter().zip(start).map(|(index, start)| index + start).collect();
            let chunk = at.iter().zip(self.definition.chunk_shape());
            self.chunks.insert(chunk.map(|(at, extent)| at / extent.max(&1)).collect());
            let position = position(&at, &self.definition.shape);
            if let Some(slot) = self.elements.get_mut(position) {
                slot.clone_from(element);
            }
        }
    }

    /// The elements of a chunk, clipped to the array.
    pub fn chunk_elements(&self, chunk: &[u32]) -> Vec<Element> {
        let shape = &self.definition.shape;
        let extents = self.definition.chunk_shape();
        let start: Vec<u32> = chunk.iter().zip(extents).map(|(at, extent)| at * extent).collect();
        let clipped: Vec<u32> = (start.iter().zip(extents).zip(shape))
            .map(|((start, extent), axis)| (*extent).min(axis - start))
            .collect();
        indices(&clipped)
            .map(|index| index.iter().zip(&start).map(|(index, start)| index + start).collect())
            .filter_map(|at: Vec<u32>| self.elements.get(position(&at, shape)).cloned())
            .collect()
    }
}

/// All positions in a box, row-major; one for a scalar.
fn indices(shape: &[u32]) -> impl Iterator<Item = Vec<u32>> + '_ {
    let count: u64 = shape.iter().map(|&extent| u64::from(extent)).product();
    (0..count).map(move |mut at| {
        let mut index = vec![0; shape.len()];
        for (slot, &extent) in index.iter_mut().zip(shape).rev() {
            *slot = (at % u64::from(extent)) as u32;
            at /= u64::from(extent);
        }
        index
    })
}

fn position(at: &[u32], shape: &[u32]) -> usize {
    at.iter().zip(shape).fold(0, |sum, (&at, &extent)| sum * extent as usize + at as usize)
}
