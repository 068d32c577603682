//! Plays a script on a container.

use array_format::ArrayFile;
use chunkyard_array_format::{Definition, Element, Script, Step};
use ndarray::{ArrayD, IxDyn};

use super::elements::{Typed, Visit, visit};
use super::{Peer, words};

impl Peer {
    /// Creates the container and plays the script.
    pub(crate) async fn play(&self, script: &Script) {
        self.create().await;
        self.go_on(script).await;
    }

    /// Plays the script on an existing container. It is opened anew after each flush and each
    /// compaction, because an old handle serves blocks of deleted files.
    pub(crate) async fn go_on(&self, script: &Script) {
        for layer in script.layers() {
            let mut file = self.open().await;
            for step in &layer.steps {
                play(&mut file, step).await;
            }
        }
    }
}

async fn play(file: &mut ArrayFile, step: &Step) {
    match step {
        Step::Define(definition) => {
            visit(&definition.dtype, Define { file, definition }).await;
        }
        Step::Write { name, dtype, start, shape, elements } => {
            visit(dtype, Write { file, name, start, shape, elements }).await;
        }
        Step::Attribute { name, key, value } => {
            file.set_attribute(name, key, words::attribute(value)).unwrap();
        }
        Step::Delete { name } => file.delete(name).unwrap(),
        Step::Flush => file.flush().await.unwrap(),
        Step::Compact => file.compact().await.unwrap(),
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
