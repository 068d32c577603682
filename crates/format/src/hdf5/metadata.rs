//! A dataset as an array: its Zarr metadata, and where its chunks are.

use std::collections::BTreeSet;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Attributes, Codecs, non_finite};
use hdf5_reader::Hdf5File;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::dataspace::{DataspaceMessage, DataspaceType};
use hdf5_reader::messages::datatype::Datatype;
use hdf5_reader::messages::fill_value::FillValueMessage;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::object_header::ObjectHeader;
use serde_json::{Value, json};

use super::dtype::{ElementClass, ElementType};
use super::index::{Index, Table};
use super::slabs::slab_shape;
use super::{edges, filters};

/// The most decoded bytes in all odd chunks of a dataset, which have other filters than most.
const ODD_BYTES_MAX: u64 = 64 << 20;
/// The attribute that netCDF keeps the fill value in.
const FILL_ATTRIBUTE: &str = "_FillValue";
/// The attribute that keeps the names of an enumeration's values.
const ENUM_ATTRIBUTE: &str = "hdf5_enum";

/// The most strings of variable length in one dataset.
const TEXTS_MAX: u64 = 1 << 22;

/// Where the chunks of an array are.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chunks {
    /// Nowhere: all elements are the fill value.
    Fill,
    /// There is one chunk, and these are its bytes.
    Inline(Bytes),
    /// All of them, back to back in the order of the grid.
    Slabs {
        /// Where the first begins.
        start: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// At the places that the index of the dataset gives.
    Stored {
        /// The index.
        table: Table,
        /// How the odd chunks are encoded, by the filters that they leave out.
        odd: Vec<(u32, ArraySpec)>,
    },
    /// Text, which lies in heaps and is collected when it is asked for.
    Text,
}

/// The messages of a dataset that describe it.
#[derive(Debug, Default)]
pub(super) struct Description<'a> {
    address: u64,
    space: Option<&'a DataspaceMessage>,
    datatype: Option<&'a Datatype>,
    layout: Option<&'a DataLayout>,
    fill: Option<&'a FillValueMessage>,
    filters: &'a [FilterDescription],
    elsewhere: bool,
}

impl<'a> Description<'a> {
    /// The description in the header at this address.
    pub(super) fn of(address: u64, header: &'a ObjectHeader) -> Self {
        let mut found = Self { address, ..Self::default() };
        for message in &header.messages {
            match message {
                HdfMessage::Dataspace(space) => found.space = Some(space),
                HdfMessage::Datatype(message) => found.datatype = Some(&message.datatype),
                HdfMessage::DataLayout(message) => found.layout = Some(&message.layout),
                // The old message may stand beside the new one; the message with a value counts.
                HdfMessage::FillValue(fill) if fill.value.is_some() || found.fill.is_none() => {
                    found.fill = Some(fill);
                }
                HdfMessage::FilterPipeline(pipeline) => found.filters = &pipeline.filters,
                HdfMessage::ExternalFiles(_) => found.elsewhere = true,
                _ => {}
            }
        }
        found
    }

    pub(super) fn rank(&self) -> usize {
        self.space.map_or(0, |space| space.dims.len())
    }

    /// The array, or the reason why the dataset cannot be one. `raw_datatype` is the type message
    /// as stored.
    pub(super) fn array(
        &self,
        file: &Hdf5File,
        raw_datatype: &[u8],
        names: Option<Vec<Option<String>>>,
        mut attributes: Attributes,
    ) -> Result<(ArraySpec, Chunks), String> {
        let (Some(space), Some(datatype), Some(layout)) = (self.space, self.datatype, self.layout)
        else {
            return Err("its header is incomplete".to_owned());
        };
        if space.dataspace_type == DataspaceType::Null {
            return Err("it has a type but no elements".to_owned());
        }
        if self.elsewhere {
            return Err("its data is in other files".to_owned());
        }
        let element = ElementType::new_from(datatype, raw_datatype)?;
        let (chunk_shape, mut chunks) = self.chunks(file, space, layout, &element)?;
        let chunk_bytes = bytes_of(&chunk_shape, element.bytes)?;
        let codecs = |skipped| {
            let text = element.kind == ElementClass::Text;
            let filters = if text { Vec::new() } else { without(self.filters, skipped) };
            filters::codecs(&element, chunk_bytes, &filters)
        };
        let skipped = match &chunks {
            Chunks::Stored { table, .. } => table.skipped,
            _ => 0,
        };
        let fill = attributes.get(FILL_ATTRIBUTE).cloned().map(non_finite::spelled);
        let fill = fill.and_then(|fill| element.xarray_fill_value(&fill));
        if let Some(fill) = fill {
            attributes.insert(FILL_ATTRIBUTE.to_owned(), fill);
        }
        if let Some(members) = element.members.clone() {
            attributes.insert(ENUM_ATTRIBUTE.to_owned(), Value::Object(members));
        }
        let (fill, most) = (self.fill(&element), codecs(skipped)?);
        let document = document(space, &chunk_shape, &element, fill, most, names);
        let spec = ArraySpec::parse(document.to_string().as_bytes())
            .and_then(|spec| spec.with_attributes(attributes))
            .map_err(|cause| cause.to_string())?;
        // Refuse the array now if its codecs do not exist.
        Codecs::new(&spec).map_err(|cause| cause.to_string())?;
        if let Chunks::Stored { table, odd } = &mut chunks {
            let count = table.odd.len() as u64;
            if count.saturating_mul(chunk_bytes) > ODD_BYTES_MAX {
                return Err(format!("{count} of its chunks have other filters than the rest"));
            }
            let kinds: BTreeSet<u32> = table.odd.iter().map(|(_, skipped)| *skipped).collect();
            for skipped in kinds {
                let other = spec.with_codecs(codecs(skipped)?);
                odd.push((skipped, other.map_err(|cause| cause.to_string())?));
            }
        }
        Ok((spec, chunks))
    }

    /// The fill value; without one HDF5 gives zeros.
    fn fill(&self, element: &ElementType) -> Value {
        let stored = self.fill.and_then(|fill| fill.value.as_deref());
        let stored = stored.and_then(|bytes| element.value(bytes));
        let zero = || element.value(&vec![0; element.bytes]);
        stored.or_else(zero).unwrap_or_default()
    }

    /// Only layouts that name their index can say so.
    fn unfiltered_edges(&self, file: &Hdf5File, named: bool) -> Result<bool, String> {
        if !named || self.filters.is_empty() {
            return Ok(false);
        }
        edges::are_unfiltered(file, self.address).map_err(|cause| cause.to_string())
    }

    /// Text becomes one chunk that is made anew, so there must not be too much of it.
    fn text(
        &self,
        space: &DataspaceMessage,
        layout: &DataLayout,
        unwritten: Unwritten<'_>,
    ) -> Result<Chunks, String> {
        let count = space.num_elements().map_err(|cause| cause.to_string())?;
        if count > TEXTS_MAX {
            return Err(format!("{count} strings of variable length, more than {TEXTS_MAX}"));
        }
        // The parser itself can undo these filters.
        if let Some(filter) = self.filters.iter().find(|filter| !matches!(filter.id, 1..=3)) {
            return Err(format!("strings of variable length, filtered by filter {}", filter.id));
        }
        Ok(match layout {
            DataLayout::Chunked { address, .. } | DataLayout::Contiguous { address, .. }
                if unwritten(*address) =>
            {
                Chunks::Fill
            }
            _ => Chunks::Text,
        })
    }

    /// The shape of the chunks and where they are.
    fn chunks(
        &self,
        file: &Hdf5File,
        space: &DataspaceMessage,
        layout: &DataLayout,
        element: &ElementType,
    ) -> Result<(Vec<u64>, Chunks), String> {
        let offset_bytes = file.superblock().offset_size;
        let unwritten = &|address: u64| Cursor::is_undefined_offset(address, offset_bytes);
        let text = element.kind == ElementClass::Text;
        let element_bytes = element.bytes;
        let whole: Vec<u64> = space.dims.iter().map(|&extent| extent.max(1)).collect();
        if text {
            return Ok((whole, self.text(space, layout, unwritten)?));
        }
        match layout {
            DataLayout::Chunked { address, dims, chunk_indexing, .. } => {
                let chunk_shape = dims.get(..space.dims.len()).unwrap_or_default().to_vec();
                if chunk_shape.len() != space.dims.len() || chunk_shape.contains(&0) {
                    return Err(format!("chunks of shape {dims:?}"));
                }
                let wide: Vec<u64> = chunk_shape.iter().map(|&extent| u64::from(extent)).collect();
                let index = Index {
                    address: *address,
                    indexing: chunk_indexing.clone(),
                    shape: space.dims.clone(),
                    max_shape: space.max_dims.clone(),
                    chunk_bytes: bytes_of(&wide, element_bytes)?,
                    chunk_shape,
                    element_bytes,
                    filters: self.filters.len(),
                    unfiltered_edges: self.unfiltered_edges(file, chunk_indexing.is_some())?,
                };
                if unwritten(*address) {
                    return Ok((wide, Chunks::Fill));
                }
                Ok((wide, Chunks::Stored { table: index.read(file)?, odd: Vec::new() }))
            }
            DataLayout::Compact { data } => {
                let expected = bytes_of(&space.dims, element_bytes)?;
                if data.len() as u64 != expected {
                    return Err(format!("{} bytes in its header, not {expected}", data.len()));
                }
                Ok((whole, Chunks::Inline(data.clone().into())))
            }
            DataLayout::Contiguous { address, .. } if unwritten(*address) => {
                Ok((slab_shape(&space.dims, element.bytes as u64)?, Chunks::Fill))
            }
            DataLayout::Contiguous { address, .. } => {
                let total = bytes_of(&space.dims, element_bytes)?;
                // The superblock may come after a user block; addresses count from it.
                let start = address.checked_add(file.superblock().base_address);
                let end = start.and_then(|start| start.checked_add(total));
                let (Some(start), Some(end)) = (start, end) else {
                    return Err("its data lies beyond the end of the file".to_owned());
                };
                let file_bytes = file.storage().len() + file.superblock().base_address;
                if end > file_bytes {
                    return Err("its data lies beyond the end of the file".to_owned());
                }
                let slab = slab_shape(&space.dims, element.bytes as u64)?;
                let bytes = bytes_of(&slab, element_bytes)?;
                Ok((slab, Chunks::Slabs { start, bytes }))
            }
        }
    }
}

/// Whether a dataset was never written, by the address of its data.
type Unwritten<'a> = &'a dyn Fn(u64) -> bool;

fn bytes_of(shape: &[u64], element_bytes: usize) -> Result<u64, String> {
    let product = shape.iter().try_fold(element_bytes as u64, |bytes, &n| bytes.checked_mul(n));
    product.ok_or_else(|| "more bytes than can be counted".to_owned())
}

/// A pipeline without the filters whose bits are set.
fn without(filters: &[FilterDescription], skipped: u32) -> Vec<FilterDescription> {
    let applied = |at: usize| u32::try_from(at).is_ok_and(|at| skipped.unbounded_shr(at) & 1 == 0);
    let kept = filters.iter().enumerate().filter(|(at, _)| applied(*at));
    kept.map(|(_, filter)| filter.clone()).collect()
}

fn document(
    space: &DataspaceMessage,
    chunk_shape: &[u64],
    element: &ElementType,
    fill: Value,
    codecs: Vec<Value>,
    names: Option<Vec<Option<String>>>,
) -> Value {
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": space.dims,
        "data_type": element.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
    });
    if let Some(names) = names {
        document["dimension_names"] = json!(names);
    }
    document
}
