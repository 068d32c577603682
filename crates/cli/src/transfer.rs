//! Elements between arrays and `.npy` files, slab by slab, in bounded memory.

use anyhow::{Context as _, Result};
use chunkyard_array::{DType, Region};
use chunkyard_engine::format;
use chunkyard_engine::{Error, Result as EngineResult};

use crate::context::Context;
use crate::failure::Input;
use crate::npy::{Header, Reader, Writer};
use crate::slabs::{SLAB_BYTES, cut, slow_axis};

/// Reads slab after slab of an array, and writes each to a file while the next one is read.
pub(crate) async fn read(
    array: &format::Reader,
    region: &Region,
    writer: Writer,
    context: &Context,
) -> Result<()> {
    let item_size = array.item_size()?;
    let bar = context.progress(array.path(), region.num_bytes(item_size)? as u64);
    let axis = slow_axis(region.shape(), false);
    let chunk_shape = array.codecs().grid().chunk_shape();
    let slabs = cut(region, chunk_shape, axis, item_size, SLAB_BYTES)?;
    let mut pending = tokio::task::spawn_blocking(move || EngineResult::Ok(writer));
    for slab in slabs {
        let values = array.read_region(&slab).await?;
        let mut writer: Writer = pending.await??;
        let size = values.len() as u64;
        pending = tokio::task::spawn_blocking(move || {
            writer.push(&values)?;
            Ok::<_, Error>(writer)
        });
        bar.advance(size);
    }
    let writer = pending.await??;
    tokio::task::spawn_blocking(move || writer.finish()).await??;
    Ok(())
}

/// Opens a file. Opening a pipe may block, and Ctrl-C must work meanwhile.
pub(crate) async fn open(file: &std::path::Path) -> Result<Reader> {
    let file = file.to_owned();
    let opening = tokio::task::spawn_blocking(move || Reader::open(&file));
    opening.await?.context(Input)
}

/// Reads slab after slab of a file, the next one while the last one is written.
pub(crate) async fn write(
    array: &format::Writer,
    region: &Region,
    mut reader: Reader,
    context: &Context,
) -> Result<()> {
    let item_size = reader.item_size();
    let axis = slow_axis(region.shape(), reader.header().fortran);
    let target = array.reader();
    let chunk_shape = target.codecs().grid().chunk_shape();
    let slabs = cut(region, chunk_shape, axis, item_size, SLAB_BYTES)?;
    let bar = context.progress(target.path(), region.num_bytes(item_size)? as u64);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        for slab in slabs {
            let bytes = reader.read_slab(slab.shape())?;
            if sender.blocking_send((slab, bytes)).is_err() {
                // The writer gave up; it reports the reason.
                break;
            }
        }
        Ok::<_, Error>(())
    });
    while let Some((slab, bytes)) = receiver.recv().await {
        let size = bytes.len() as u64;
        array.write_region(&slab, bytes.into()).await?;
        bar.advance(size);
    }
    reading.await?.context(Input)?;
    Ok(())
}

/// The region that the user names, or the whole array.
pub(crate) fn region(typed: Option<&str>, shape: &[u64]) -> Result<Region> {
    match typed {
        Some(text) => Ok(Region::parse(text, shape)?),
        None => Ok(Region::whole(shape)),
    }
}

/// The region of an array that a file is for. Refuses a file of another type or shape.
pub(crate) fn target_region(
    path: &str,
    (dtype, shape): (&DType, &[u64]),
    typed: Option<&str>,
    header: &Header,
) -> Result<Region> {
    let region = region(typed, shape)?;
    // Compared as NumPy sees them: a name of Zarr may have several spellings. Bytes of fixed length are
    // the same with and without an end: a file of the first kind once became an array of the second.
    let kind = |dtype: &DType| dtype.to_numpy().map(|numpy| numpy.replacen("|S", "|V", 1));
    if kind(dtype) != kind(&header.dtype) {
        return Err(Error::invalid(format!(
            "{path} has data type {dtype}, the file has {} ({})",
            header.dtype, header.descr
        ))
        .into());
    }
    if !alike(region.shape(), &header.shape) {
        let (what, wanted) = match typed {
            Some(_) => (format!("the region {region}"), region.shape()),
            None => (path.to_owned(), shape),
        };
        return Err(Error::invalid(format!(
            "{what} has shape {wanted:?}, the file has {:?}",
            header.shape
        ))
        .into());
    }
    Ok(region)
}

/// Whether two shapes hold the same elements in the same order: axes of length one do not count.
fn alike(a: &[u64], b: &[u64]) -> bool {
    let long = |shape: &[u64]| shape.iter().copied().filter(|&n| n != 1).collect::<Vec<_>>();
    long(a) == long(b)
}
