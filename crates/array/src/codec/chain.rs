//! The codec chain of an array, bound to its data type, fill value and chunk shape.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use zarrs::array::codec::CodecChain;
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayToBytesCodecTraits, BytesRepresentation, CodecOptions,
    FillValue,
};
use zarrs::metadata::v3::MetadataV3;

use super::fast::Fast;
use super::guard::guard;
use super::labels::Labels;
use super::packed::Packing;
use super::scratch::{with_scratch, zeroed};
use super::shard::{Part, Piece, Shard};
use super::{
    Elements, ElementsBuf, bounded, label_block, no_label_blocks, offsets, picture, segmentation,
    wrong_length,
};
use crate::copy::{check_len, dense_bytes};
use crate::{ArraySpec, DType, Error, Region, Result, View, copy_region, fill, fill_region};

/// Encodes and decodes the chunks of one array. Cheap to clone, shared by all threads.
#[derive(Clone, Debug)]
pub struct Codecs(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    chain: CodecChain,
    /// What the chain was made from.
    metadata: Vec<MetadataV3>,
    dtype: DType,
    fill_value: FillValue,
    fill_element: Vec<u8>,
    chunk_shape: Vec<u64>,
    chunk_shape_nonzero: Vec<NonZeroU64>,
    /// Bytes of a decoded chunk, for types of fixed size.
    chunk_bytes: Option<usize>,
    options: CodecOptions,
    fast: Option<Fast>,
    /// How labels are encoded, if chunks are label blocks or something near.
    labels: Option<Labels>,
    /// Whether the chain is only a table of offsets and the elements behind it.
    offsets: bool,
    shard: Option<Shard>,
}

impl Codecs {
    /// Binds the codecs of an array.
    pub fn new(spec: &ArraySpec) -> Result<Self> {
        spec.check_understood()?;
        let dtype = spec.dtype()?;
        let fill_element = fill::fill_element(&dtype, &spec.metadata().fill_value)?;
        let grid = spec.grid()?;
        Self::bind(dtype, fill_element, grid.chunk_shape(), &spec.metadata().codecs)
    }

    /// The same codecs for chunks of another shape, for formats that clip the chunks at the upper
    /// edge of an array.
    pub fn with_chunk_shape(&self, chunk_shape: &[u64]) -> Result<Self> {
        let bound = &*self.0;
        if chunk_shape == bound.chunk_shape {
            return Ok(self.clone());
        }
        if chunk_shape.len() != bound.chunk_shape.len() {
            return Err(Error::invalid(format!(
                "chunks of shape {:?} cannot take the shape {chunk_shape:?}, which has another rank",
                bound.chunk_shape
            )));
        }
        let (dtype, fill_element) = (bound.dtype.clone(), bound.fill_element.clone());
        Self::bind(dtype, fill_element, chunk_shape, &bound.metadata)
    }

    /// Whether an encoded chunk is its elements as they lie in memory, so that a part can be read
    /// without decoding.
    pub fn is_plain(&self) -> bool {
        self.0.fast.as_ref().is_some_and(Fast::is_plain)
    }

    /// The codecs of chunks that were [packed](super::packed) one by one after these encoded them.
    /// Only where these [leave elements as they are](Self::is_plain): packed chunks are then
    /// decoded in one step, straight to their place.
    pub fn packed_by(&self, packing: Packing) -> Result<Option<Self>> {
        if !self.is_plain() {
            return Ok(None);
        }
        let bound = &*self.0;
        let mut codecs = bound.metadata.clone();
        codecs.push(packing.codec());
        let (dtype, fill_element) = (bound.dtype.clone(), bound.fill_element.clone());
        Self::bind(dtype, fill_element, &bound.chunk_shape, &codecs).map(Some)
    }

    pub(super) fn bind(
        dtype: DType,
        fill_element: Vec<u8>,
        chunk_shape: &[u64],
        codecs: &[MetadataV3],
    ) -> Result<Self> {
        bounded::register();
        if dtype.is_optional() {
            return Err(Error::unsupported(format!("reading data type {dtype}")));
        }
        let chunk_bytes =
            dtype.item_size().map(|size| dense_bytes(chunk_shape, size)).transpose()?;
        let chunk_shape_nonzero: Option<Vec<NonZeroU64>> =
            chunk_shape.iter().map(|&extent| NonZeroU64::new(extent)).collect();
        let Some(chunk_shape_nonzero) = chunk_shape_nonzero else {
            return Err(Error::invalid(format!("chunk shape {chunk_shape:?} contains a zero")));
        };
        label_block::zarr::check(codecs, &dtype, chunk_shape)?;
        picture::check(codecs, &dtype, chunk_shape)?;
        segmentation::check(codecs, &dtype, chunk_shape)?;
        let chain = CodecChain::from_metadata(codecs).map_err(|cause| {
            let names: Vec<_> = codecs.iter().map(ToString::to_string).collect();
            Error::from_plugin(format!("codec chain [{}]", names.join(", ")), cause)
        })?;
        let bound = Bound {
            fast: Fast::recognise(codecs, &dtype, chunk_shape),
            labels: codecs
                .first()
                .and_then(|first| Labels::recognise(first, &dtype, chunk_shape))
                .filter(Labels::are_label_blocks),
            offsets: offsets::is_all_of(codecs, &dtype),
            shard: Shard::recognise(codecs, &dtype, &fill_element, chunk_shape)?,
            chain,
            metadata: codecs.to_vec(),
            dtype,
            fill_value: FillValue::new(fill_element.clone()),
            fill_element,
            chunk_shape: chunk_shape.to_vec(),
            chunk_shape_nonzero,
            chunk_bytes,
            // Parallelism is across chunks; a codec call keeps to its thread.
            options: CodecOptions::default().with_concurrent_target(1),
        };
        let codecs = Self(Arc::new(bound));
        codecs.encoded_bytes()?;
        Ok(codecs)
    }

    /// Bytes of an item; `None` for types of variable length.
    pub fn item_size(&self) -> Option<usize> {
        self.0.dtype.item_size()
    }

    /// Bytes of a decoded chunk; `None` for types of variable length.
    pub fn chunk_bytes(&self) -> Option<usize> {
        self.0.chunk_bytes
    }

    /// Shape of a chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.0.chunk_shape
    }

    /// The data type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.0.dtype
    }

    /// Bytes of the fill value.
    pub fn fill_element(&self) -> &[u8] {
        &self.0.fill_element
    }

    /// Whether all elements of a decoded chunk, or of any part of it, are bit by bit the fill
    /// value. For types of fixed size.
    pub fn is_fill(&self, decoded: &[u8]) -> bool {
        fill::is_filled(decoded, &self.0.fill_element)
    }

    /// Encodes a whole chunk.
    pub fn encode(&self, decoded: Elements<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        match decoded {
            Elements::Fixed(bytes) => self.encode_into(bytes, &mut out)?,
            Elements::Variable { bytes, offsets } => {
                if self.item_size().is_some() {
                    return Err(self.other_kind("fixed size", "offsets"));
                }
                decoded.check(Region::whole(&self.0.chunk_shape).num_elements())?;
                if self.0.offsets {
                    offsets::encode(bytes, offsets.iter().copied(), &mut out)?;
                    return Ok(out);
                }
                let offsets: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
                let elements = ArrayBytesOffsets::new(offsets)
                    .map_err(|cause| Error::invalid("offsets of elements").because(cause))
                    .and_then(|offsets| {
                        ArrayBytes::new_vlen(bytes, offsets)
                            .map_err(|cause| Error::invalid("offsets of elements").because(cause))
                    })?;
                self.encode_generic(elements, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Encodes a whole chunk of a type of fixed size and appends it to `out`.
    pub fn encode_into(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(item_size) = self.item_size() else {
            return Err(self.other_kind("variable length", "a plain buffer"));
        };
        check_len("chunk to encode", decoded.len(), &self.0.chunk_shape, item_size)?;
        match &self.0.fast {
            Some(fast) => fast.encode_into(decoded, out),
            None => self.encode_generic(ArrayBytes::new_flen(decoded), out),
        }
    }

    /// Whether chunks are label blocks, compressed or not, or become them without a look at the voxels.
    pub fn has_label_blocks(&self) -> bool {
        self.0.labels.is_some()
    }

    /// Whether a label block that is larger than a chunk can be encoded as that chunk.
    pub fn clips_label_blocks(&self) -> bool {
        self.0.labels.as_ref().is_some_and(Labels::clip)
    }

    /// The [label block](super::label_block) that an encoded chunk is, checked and not decoded any further.
    pub fn label_block(&self, encoded: &[u8]) -> Result<Vec<u8>> {
        let bound = &*self.0;
        let labels = bound.labels.as_ref().ok_or_else(no_label_blocks)?;
        match bound.fast.as_ref().and_then(|fast| fast.label_block(encoded)) {
            Some(block) => block,
            None => label_block::chain::unpack(&bound.chain, labels, encoded, &bound.options),
        }
    }

    /// The encoded chunk that a [label block](super::label_block) is.
    pub fn encode_label_block(&self, block: &[u8]) -> Result<Vec<u8>> {
        let bound = &*self.0;
        let labels = bound.labels.as_ref().ok_or_else(no_label_blocks)?;
        let mut out = Vec::new();
        match bound.fast.as_ref().and_then(|fast| fast.encode_label_block(block, &mut out)) {
            Some(done) => done.map(|()| out),
            None => label_block::chain::pack(&bound.chain, labels, block, &bound.options),
        }
    }

    /// Decodes a whole chunk.
    pub fn decode(&self, encoded: &[u8]) -> Result<ElementsBuf> {
        if let Some(len) = self.0.chunk_bytes
            && (self.0.fast.is_some() || self.0.shard.is_some())
        {
            let mut out = zeroed(len)?;
            self.decode_into(encoded, &mut out)?;
            return Ok(ElementsBuf::Fixed(out));
        }
        if self.0.offsets {
            let count = Region::whole(&self.0.chunk_shape).num_elements();
            let is_text = self.0.dtype.name() == "string";
            let (bytes, offsets) = offsets::decode(encoded, count, is_text)?;
            return Ok(ElementsBuf::Variable { bytes: bytes.to_vec(), offsets });
        }
        self.decode_by_zarrs(encoded)
    }

    /// Decodes a whole chunk without a shortcut.
    pub(super) fn decode_by_zarrs(&self, encoded: &[u8]) -> Result<ElementsBuf> {
        match self.decode_generic(encoded)? {
            ArrayBytes::Fixed(bytes) => Ok(ElementsBuf::Fixed(bytes.into_owned())),
            ArrayBytes::Variable(elements) => {
                let (bytes, offsets) = elements.into_parts();
                let offsets = offsets.iter().map(|&offset| offset as u64).collect();
                let elements = ElementsBuf::Variable { bytes: bytes.into_owned(), offsets };
                self.check_decoded(elements.as_ref())?;
                Ok(elements)
            }
            ArrayBytes::Optional(_) => Err(Error::unsupported("decoding optional elements")),
        }
    }

    /// Decodes a whole chunk of a type of fixed size into `out`, which must have its exact length.
    pub fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let expected = self.fixed_chunk_bytes()?;
        if out.len() != expected {
            return Err(Error::invalid(format!(
                "a decoded chunk has {expected} bytes, the buffer for it {}",
                out.len()
            )));
        }
        if let Some(fast) = &self.0.fast {
            return fast.decode_into(encoded, out);
        }
        if let Some(shard) = &self.0.shard {
            let (shape, element) = (&self.0.chunk_shape, &self.0.fill_element);
            return shard.decode_all(encoded, |piece, place| match piece {
                Piece::Fill => fill_region(out, shape, place, element),
                Piece::Elements(bytes) => {
                    let (inner, origin) = (place.shape(), place.origin());
                    let whole = Region::whole(inner);
                    copy_region(bytes, inner, &whole, out, shape, origin, element.len())
                }
            });
        }
        out.copy_from_slice(&self.decode_fixed(encoded)?);
        Ok(())
    }

    /// Decodes a chunk and throws the elements away: fails if they cannot be read.
    pub fn check(&self, encoded: &[u8]) -> Result<()> {
        match self.0.chunk_bytes {
            Some(bytes) => with_scratch(bytes, |scratch| self.decode_into(encoded, scratch)),
            None => self.decode(encoded).map(drop),
        }
    }

    /// Decodes the part of a chunk that a view wants, straight into the output where possible.
    pub fn decode_view(&self, encoded: &[u8], view: &mut View) -> Result<()> {
        let chunk_bytes = self.fixed_chunk_bytes()?;
        let shape = &self.0.chunk_shape;
        self.check_view(view)?;
        if let Some(shard) = &self.0.shard {
            let wanted = view.footprint().clone();
            return shard.decode(encoded, &wanted, |piece, place| self.deliver(piece, place, view));
        }
        let Some(fast) = &self.0.fast else {
            return view.write_from(&self.decode_fixed(encoded)?, shape);
        };
        if let Some(decoded) = fast.borrow(encoded)? {
            if decoded.len() != chunk_bytes {
                return Err(wrong_length(chunk_bytes, decoded.len()));
            }
            return view.write_from(decoded, shape);
        }
        if let Some(out) = view.whole_chunk_mut() {
            return fast.decode_into_together(encoded, out);
        }
        // Bytes that are not decoded are garbage from an earlier chunk, and are not copied either.
        with_scratch(chunk_bytes, |scratch| {
            fast.decode_some(encoded, scratch, |block_bytes| view.blocks_wanted(block_bytes))?;
            view.write_from(scratch, shape)
        })
    }

    /// Decodes a chunk once for several views.
    pub fn decode_views(&self, encoded: &[u8], views: &mut [View]) -> Result<()> {
        let chunk_bytes = self.fixed_chunk_bytes()?;
        let shape = &self.0.chunk_shape;
        views.iter().try_for_each(|view| self.check_view(view))?;
        let fast = self.0.fast.as_ref();
        let plain = fast.map(|fast| fast.borrow(encoded)).transpose()?.flatten().is_some();
        // A single view may be decoded straight into the output; from an uncompressed chunk or a
        // shard, each view takes its part.
        if views.len() < 2 || plain || self.0.shard.is_some() {
            return views.iter_mut().try_for_each(|view| self.decode_view(encoded, view));
        }
        let Some(fast) = fast else {
            let decoded = self.decode_fixed(encoded)?;
            return views.iter_mut().try_for_each(|view| view.write_from(&decoded, shape));
        };
        with_scratch(chunk_bytes, |scratch| {
            fast.decode_some(encoded, scratch, |block_bytes| {
                let mut wanted = BTreeSet::new();
                for view in &*views {
                    wanted.extend(view.blocks_wanted(block_bytes)?);
                }
                Ok(wanted.into_iter().collect())
            })?;
            views.iter_mut().try_for_each(|view| view.write_from(scratch, shape))
        })
    }

    /// Refuses a view of other chunks than these.
    fn check_view(&self, view: &View) -> Result<()> {
        let shape = &self.0.chunk_shape;
        let found = view.footprint().chunk_shape();
        if found == shape && Some(view.item_size()) == self.item_size() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a view of chunks of shape {found:?} with items of {} bytes cannot take chunks of shape \
             {shape:?} of {}",
            view.item_size(),
            self.0.dtype
        )))
    }

    /// Where the index of an encoded chunk of `len` bytes lies, if the view is better served by
    /// fetching a few parts of the chunk than all of it. Only for chunks whose parts carry
    /// checksums of their own.
    pub fn index_for(&self, len: u64, view: &View) -> Result<Option<Range<u64>>> {
        let Some(shard) = self.0.shard.as_ref().filter(|shard| shard.checks_itself()) else {
            return Ok(None);
        };
        if shard.parts_wanted(view.footprint()).saturating_mul(2) > shard.parts_count() {
            return Ok(None);
        }
        shard.index_range(len).map(Some)
    }

    /// The parts of an encoded chunk of `len` bytes that a view wants, by the chunk's index.
    pub fn parts_for(&self, index: &[u8], len: u64, view: &View) -> Result<Vec<Part>> {
        self.shard()?.parts(index, len, view.footprint())
    }

    /// Decodes a part into the view, from the bytes of the part's range.
    pub fn decode_part(&self, encoded: Option<&[u8]>, part: &Part, view: &mut View) -> Result<()> {
        let shard = self.shard()?;
        shard.decode_part(encoded, part, |piece, place| self.deliver(piece, place, view))
    }

    fn shard(&self) -> Result<&Shard> {
        let none = || Error::invalid("these codecs make no chunks that can be read in parts");
        self.0.shard.as_ref().ok_or_else(none)
    }

    fn deliver(&self, piece: Piece<'_>, place: &Region, view: &mut View) -> Result<()> {
        match piece {
            Piece::Fill => view.fill_box(&self.0.fill_element, place),
            Piece::Elements(bytes) => view.write_box(bytes, place),
        }
    }

    /// Bytes of a decoded chunk, or an error for types that have no fixed size.
    pub(super) fn fixed_chunk_bytes(&self) -> Result<usize> {
        self.0.chunk_bytes.ok_or_else(|| self.other_kind("variable length", "a plain buffer"))
    }

    /// Bytes of an encoded chunk, if all chunks have the same size. Fails where a codec cannot work
    /// on this data type or shape.
    pub(super) fn encoded_bytes(&self) -> Result<Option<usize>> {
        let bound = &*self.0;
        let size = guard(|| {
            bound.chain.encoded_representation(
                &bound.chunk_shape_nonzero,
                bound.dtype.zarrs(),
                &bound.fill_value,
            )
        })
        .map_err(|failure| {
            let what = format!("data type {} with these codecs and chunk shape", bound.dtype);
            failure.because(Error::unsupported(what))
        })?;
        match size {
            BytesRepresentation::FixedSize(size) => Ok(usize::try_from(size).ok()),
            _ => Ok(None),
        }
    }

    fn encode_generic(&self, elements: ArrayBytes<'_>, out: &mut Vec<u8>) -> Result<()> {
        let bound = &*self.0;
        let encoded = guard(|| {
            bound.chain.encode(
                elements,
                &bound.chunk_shape_nonzero,
                bound.dtype.zarrs(),
                &bound.fill_value,
                &bound.options,
            )
        })
        .map_err(|failure| failure.because(Error::invalid("a chunk cannot be encoded")))?;
        out.extend_from_slice(&encoded);
        Ok(())
    }

    fn decode_generic<'a>(&self, encoded: &'a [u8]) -> Result<ArrayBytes<'a>> {
        let bound = &*self.0;
        guard(|| {
            bound.chain.decode(
                Cow::Borrowed(encoded),
                &bound.chunk_shape_nonzero,
                bound.dtype.zarrs(),
                &bound.fill_value,
                &bound.options,
            )
        })
        .map_err(|failure| {
            let found = failure.to_string();
            let expected = format!("a chunk of shape {:?} of {}", bound.chunk_shape, bound.dtype);
            failure.because(Error::corrupt("chunk", expected, found))
        })
    }

    fn decode_fixed<'a>(&self, encoded: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let expected = self.fixed_chunk_bytes()?;
        match self.decode_generic(encoded)? {
            ArrayBytes::Fixed(bytes) if bytes.len() == expected => Ok(bytes),
            other => Err(wrong_length(expected, other.size())),
        }
    }

    /// Checks elements of variable length that came out of a decoder.
    fn check_decoded(&self, elements: Elements<'_>) -> Result<()> {
        let count = Region::whole(&self.0.chunk_shape).num_elements();
        elements.check(count).map_err(|cause| {
            Error::corrupt("chunk", format!("{count} elements"), cause.to_string())
        })?;
        let Elements::Variable { offsets, .. } = elements else { return Ok(()) };
        if self.0.dtype.name() == "string" {
            for index in 0..offsets.len().saturating_sub(1) {
                if elements.get(index).is_none_or(|bytes| str::from_utf8(bytes).is_err()) {
                    let found = format!("other bytes in element {index}");
                    return Err(Error::corrupt("chunk", "strings in UTF-8", found));
                }
            }
        }
        Ok(())
    }

    fn other_kind(&self, expected: &str, found: &str) -> Error {
        Error::invalid(format!("elements of {} are of {expected}, found {found}", self.0.dtype))
    }
}
