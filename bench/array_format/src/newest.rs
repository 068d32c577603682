//! array-format 0.15.0: the newest release, one immutable file without layers.

use array_format_newest as af;

use af::{ArrayFile, ArrayWriter, AttributeValue, ReadConfig, WriterConfig};
use ndarray::{ArcArray, ArrayViewD, IxDyn};

use crate::release::{Array, Change, Element, Release, Result, TINY, name_of, tiny_value};
use crate::store::Place;

/// The release.
pub struct Newest;

fn writer(codec: &str) -> ArrayWriter {
    match codec {
        "lz4" => ArrayWriter::new(WriterConfig::new(af::Lz4Codec)),
        "zstd" => ArrayWriter::new(WriterConfig::new(af::ZstdCodec::new(3))),
        _ => ArrayWriter::new(WriterConfig::new(af::NoCompression)),
    }
}

/// The elements of a number of tiny chunks.
fn tiny_values(chunks: usize) -> ArcArray<f32, IxDyn> {
    ArcArray::from_iter((0..chunks * TINY).map(tiny_value)).into_dyn()
}

impl Release for Newest {
    type File = ArrayFile;

    async fn write<T: Element>(place: &Place, codec: &str, array: &Array<'_, T>) -> Result<()> {
        let mut writer = writer(codec);
        let shape = array.values.shape().to_vec();
        let start = vec![0; shape.len()];
        writer.define_array::<T>(&array.name, vec![], shape, Some(array.chunk.clone()), None)?;
        writer.write_array(&array.name, start, array.values.view())?;
        writer.finish(place.store.clone(), place.base.clone()).await?;
        Ok(())
    }

    async fn make_chunks(place: &Place, chunks: usize) -> Result<()> {
        let values = tiny_values(chunks);
        let array = Array { name: "a".into(), chunk: vec![TINY], values: values.view() };
        Self::write(place, "none", &array).await
    }

    async fn make_arrays(place: &Place, arrays: usize) -> Result<()> {
        let values = tiny_values(arrays);
        let mut writer = writer("none");
        for (at, values) in values.axis_chunks_iter(ndarray::Axis(0), TINY).enumerate() {
            let name = name_of(at);
            writer.define_array::<f32>(&name, vec!["x".into()], vec![TINY], None, None)?;
            writer.write_array(&name, vec![0], values)?;
            writer.set_attribute(&name, "units", AttributeValue::String("K".into()))?;
        }
        writer.finish(place.store.clone(), place.base.clone()).await?;
        Ok(())
    }

    async fn open(place: &Place) -> Result<ArrayFile> {
        let config = ReadConfig::default();
        Ok(ArrayFile::open(place.store.clone(), place.base.clone(), config).await?)
    }

    fn arrays(file: &ArrayFile) -> usize {
        file.arrays().len()
    }

    async fn read<T: Element>(
        file: &ArrayFile,
        name: &str,
        start: &[usize],
        shape: &[usize],
    ) -> Result<ArcArray<T, IxDyn>> {
        Ok(file.read_array::<T>(name, start.to_vec(), shape.to_vec()).await?)
    }

    /// Writes a new file in its place: this release has no other way to change one.
    async fn change(
        place: &Place,
        name: &str,
        start: &[usize],
        values: ArrayViewD<'_, f32>,
    ) -> Result<Change> {
        let source = Self::open(place).await?;
        let mut writer = writer("none");
        writer.copy_array(&source, name).await?;
        writer.write_array(name, start.to_vec(), values)?;
        let file = writer.finish(place.store.clone(), place.base.clone()).await?;
        Ok(Box::new(file))
    }
}
