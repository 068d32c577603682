//! Plays a script on a container.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_array_format::{Element, Expected, Script, Step, elements};
use chunkyard_engine::format::container::{Container, Definition};

use super::Own;

impl Own {
    /// Creates the container and plays the script.
    pub(crate) async fn play(&self, script: &Script) {
        self.create().await;
        self.go_on(script).await;
    }

    /// Plays the script on an existing container, with one handle.
    pub(crate) async fn go_on(&self, script: &Script) {
        let container = self.open().await;
        for step in &script.steps {
            play(&container, step).await;
        }
    }

    /// Writes arrays as one layer, chunk by chunk.
    pub(crate) async fn play_raw(&self, arrays: &[Expected]) {
        let container = self.create().await;
        for array in arrays {
            container.define(definition(&array.definition)).await.unwrap();
            let open = container.array(&array.definition.name).await.unwrap();
            for chunk in &array.chunks {
                let elements = array.chunk_elements(chunk);
                let bytes = elements::chunk(&array.definition.dtype, &elements);
                open.write_chunk(&extents(chunk), bytes.into()).await.unwrap();
            }
        }
        container.flush().await.unwrap();
    }
}

async fn play(container: &Container, step: &Step) {
    match step {
        Step::Define(defined) => {
            container.define(definition(defined)).await.unwrap();
        }
        Step::Write { name, dtype, start, shape, elements } => {
            let region = Region::new(extents(start), extents(shape)).unwrap();
            let array = container.array(name).await.unwrap();
            let elements = buffer(elements, dtype.item_size().is_some());
            array.writer().unwrap().write_elements(&region, elements).await.unwrap();
        }
        Step::Attribute { name, key, value } => {
            container.set_attribute(name, key, value.clone()).await.unwrap();
        }
        Step::Delete { name } => container.delete(name).await.unwrap(),
        Step::Flush => {
            let flushed = container.flush().await.unwrap();
            assert_eq!(flushed.and_then(|flushed| flushed.note), None);
        }
        Step::Compact => {
            container.compact(&Default::default()).await.unwrap();
        }
    }
}

fn definition(of: &chunkyard_array_format::Definition) -> Definition {
    Definition {
        chunk_shape: of.chunk.as_deref().map(extents),
        dimension_names: of.dimension_names(),
        fill_value: of.fill.clone(),
        ..Definition::new(&of.name, of.dtype.clone(), &extents(&of.shape))
    }
}

pub(super) fn extents(extents: &[u32]) -> Vec<u64> {
    extents.iter().copied().map(u64::from).collect()
}

fn buffer(elements: &[Element], is_fixed: bool) -> ElementsBuf {
    let bytes = elements.concat();
    if is_fixed {
        return ElementsBuf::Fixed(bytes);
    }
    let ends = elements.iter().scan(0, |end, element| {
        *end += element.len() as u64;
        Some(*end)
    });
    ElementsBuf::Variable { bytes, offsets: std::iter::once(0).chain(ends).collect() }
}
