//! Changes to a container, step by step.

use chunkyard_engine::format::container::model::{AttributeValue, DType, FillValue};

use crate::elements;

/// The bytes of one element.
pub type Element = Vec<u8>;

/// The definition of an array.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<u32>,
    /// The extents of its chunks; `None` for one chunk.
    pub chunk: Option<Vec<u32>>,
    /// The value of elements that are never written.
    pub fill: Option<FillValue>,
}

impl Definition {
    /// An array in one chunk without a fill value.
    pub fn new(name: &str, dtype: DType, shape: &[u32]) -> Self {
        Self { name: name.into(), dtype, shape: shape.to_vec(), chunk: None, fill: None }
    }

    /// The same in chunks.
    #[must_use]
    pub fn chunks(mut self, chunk: &[u32]) -> Self {
        self.chunk = Some(chunk.to_vec());
        self
    }

    /// The same with a fill value.
    #[must_use]
    pub fn fill(mut self, fill: FillValue) -> Self {
        self.fill = Some(fill);
        self
    }

    /// The extents of its chunks.
    pub fn chunk_shape(&self) -> &[u32] {
        self.chunk.as_deref().unwrap_or(&self.shape)
    }

    /// The names of its dimensions, one letter each from `x` on.
    pub fn dimension_names(&self) -> Vec<String> {
        let letters = ["x", "y", "z", "time and the rest"];
        self.shape.iter().zip(letters).map(|(_, letter)| letter.to_owned()).collect()
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.shape.iter().map(|&extent| extent as usize).product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One change to a container.
#[derive(Debug, Clone)]
pub enum Step {
    /// Defines an array.
    Define(Definition),
    /// Writes a region, row-major.
    Write {
        /// The array.
        name: String,
        /// The type of its elements.
        dtype: DType,
        /// Where the region begins.
        start: Vec<u32>,
        /// Its extents.
        shape: Vec<u32>,
        /// The elements of the region.
        elements: Vec<Element>,
    },
    /// Sets an attribute.
    Attribute {
        /// The array.
        name: String,
        /// The name of the attribute.
        key: String,
        /// Its value from now on.
        value: AttributeValue,
    },
    /// Deletes an array.
    Delete {
        /// The array.
        name: String,
    },
    /// Makes a layer of the changes so far.
    Flush,
    /// Makes one file of all layers.
    Compact,
}

/// Steps, made one after the other.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// A script without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Defines an array.
    #[must_use]
    pub fn define(self, definition: Definition) -> Self {
        self.then(Step::Define(definition))
    }

    /// Defines an array and writes all of it.
    #[must_use]
    pub fn whole(self, definition: Definition, seed: u64) -> Self {
        let (name, dtype, shape) =
            (definition.name.clone(), definition.dtype.clone(), definition.shape.clone());
        let start = vec![0; shape.len()];
        self.define(definition).write(&name, &dtype, &start, &shape, seed)
    }

    /// Writes a region, with elements made from the type and the seed.
    #[must_use]
    pub fn write(self, name: &str, dtype: &DType, start: &[u32], shape: &[u32], seed: u64) -> Self {
        let count = shape.iter().map(|&extent| extent as usize).product();
        self.then(Step::Write {
            name: name.into(),
            dtype: dtype.clone(),
            start: start.to_vec(),
            shape: shape.to_vec(),
            elements: elements::of(dtype, count, seed),
        })
    }

    /// Sets an attribute.
    #[must_use]
    pub fn attribute(self, name: &str, key: &str, value: AttributeValue) -> Self {
        self.then(Step::Attribute { name: name.into(), key: key.into(), value })
    }

    /// Deletes an array.
    #[must_use]
    pub fn delete(self, name: &str) -> Self {
        self.then(Step::Delete { name: name.into() })
    }

    /// Makes a layer.
    #[must_use]
    pub fn flush(self) -> Self {
        self.then(Step::Flush)
    }

    /// Makes one file of all layers.
    #[must_use]
    pub fn compact(self) -> Self {
        self.then(Step::Compact)
    }

    /// One script for each layer that it makes.
    pub fn layers(&self) -> Vec<Self> {
        let ends = |step: &Step| matches!(step, Step::Flush | Step::Compact);
        let layers = self.steps.split_inclusive(ends);
        layers.map(|steps| Self { steps: steps.to_vec() }).collect()
    }
}
