//! Does to a container what a script says.

use std::collections::HashMap;

use array_format::ArrayFile;
use chunkyard_array_format::{Definition, Element, Script, Step};
use chunkyard_engine::format::container::model::DType;
use ndarray::{ArrayD, IxDyn};

use super::elements::{Typed, Visit, visit};
use super::{Peer, words};

impl Peer {
    /// Creates the container and plays the script. After each flush and each compaction the container
    /// is opened anew: a handle that goes on serves blocks of files that are no more.
    pub(crate) async fn play(&self, script: &Script) {
        let mut file = self.create().await;
        let mut types = HashMap::new();
        for step in &script.steps {
            match step {
                Step::Define(definition) => {
                    types.insert(definition.name.clone(), definition.dtype.clone());
                    visit(&definition.dtype, Define { file: &mut file, definition }).await;
                }
                Step::Write { name, start, shape, elements } => {
                    let dtype: &DType = &types[name];
                    let write = Write { file: &mut file, name, start, shape, elements };
                    visit(dtype, write).await;
                }
                Step::Attribute { name, key, value } => {
                    file.set_attribute(name, key, words::attribute(value)).unwrap();
                }
                Step::Delete { name } => file.delete(name).unwrap(),
                Step::Flush => {
                    file.flush().await.unwrap();
                    file = self.open().await;
                }
                Step::Compact => {
                    file.compact().await.unwrap();
                    file = self.open().await;
                }
            }
        }
    }
}

/// Extents as array-format takes them.
pub(super) fn extents(extents: &[u32]) -> Vec<usize> {
    extents.iter().map(|&extent| extent as usize).collect()
}

struct Define<'a> {
    file: &'a mut ArrayFile,
    definition: &'a Definition,
}

impl Visit for Define<'_> {
    type Output = ();

    async fn with<T: Typed>(self) {
        let Definition { name, shape, chunk, fill, .. } = self.definition;
        let chunk = chunk.as_deref().map(extents);
        let (names, fill) = (self.definition.dimension_names(), fill.as_ref().map(words::fill));
        self.file.define_array::<T>(name, names, extents(shape), chunk, fill).unwrap();
    }
}

struct Write<'a> {
    file: &'a mut ArrayFile,
    name: &'a str,
    start: &'a [u32],
    shape: &'a [u32],
    elements: &'a [Element],
}

impl Visit for Write<'_> {
    type Output = ();

    async fn with<T: Typed>(self) {
        let values = self.elements.iter().map(|element| T::from_element(element)).collect();
        let values = ArrayD::from_shape_vec(IxDyn(&extents(self.shape)), values).unwrap();
        self.file.write_array(self.name, extents(self.start), values.view()).await.unwrap();
    }
}
