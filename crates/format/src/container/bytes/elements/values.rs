//! Elements, taken apart.

use chunkyard_store::{Error, Result};

use super::is_text;
use crate::container::model::DType;

/// The elements of a chunk, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Items of equal size, one after the other.
    Fixed(Vec<u8>),
    /// Element `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    Variable {
        /// Where each element begins, and where the last one ends.
        offsets: Vec<u64>,
        /// All elements, end to end.
        bytes: Vec<u8>,
    },
    /// Element `i` is the children from `offsets[i]` to `offsets[i + 1]`.
    List {
        /// Where each element begins among the children, and where the last one ends.
        offsets: Vec<u64>,
        /// All children.
        child: Box<Values>,
    },
    /// Element `i` is the children from `i · size` to `(i + 1) · size`.
    FixedList {
        /// Children of an element.
        size: u32,
        /// All children.
        child: Box<Values>,
    },
}

impl Values {
    /// No elements of a type.
    pub(super) fn none_of(dtype: &DType) -> Self {
        match dtype {
            DType::String | DType::Binary => Self::Variable { offsets: vec![0], bytes: Vec::new() },
            DType::List { child } => {
                Self::List { offsets: vec![0], child: Box::new(Self::none_of(child)) }
            }
            DType::FixedSizeList { child, size } => {
                Self::FixedList { size: *size, child: Box::new(Self::none_of(child)) }
            }
            _ => Self::Fixed(Vec::new()),
        }
    }

    /// The number of elements; `None` if they are not of the type. Lists of fixed size 0 count as
    /// no elements.
    pub(super) fn count(&self, dtype: &DType) -> Option<u64> {
        match (self, dtype) {
            (Self::Fixed(bytes), dtype) => {
                (bytes.len() as u64).checked_div(dtype.item_size()? as u64)
            }
            (Self::Variable { offsets, .. } | Self::List { offsets, .. }, _) => {
                (offsets.len() as u64).checked_sub(1)
            }
            (Self::FixedList { size, child }, DType::FixedSizeList { child: dtype, .. }) => {
                Some(child.count(dtype)?.checked_div(u64::from(*size)).unwrap_or(0))
            }
            _ => None,
        }
    }

    /// Whether these are `count` elements of the type.
    pub(super) fn holds(&self, dtype: &DType, count: u64) -> bool {
        let rise = |offsets: &[u64], end: u64| {
            offsets.len() as u64 == count.saturating_add(1)
                && offsets.is_sorted()
                && (offsets.first(), offsets.last()) == (Some(&0), Some(&end))
        };
        match (self, dtype) {
            (Self::Variable { offsets, bytes }, DType::Binary) => rise(offsets, bytes.len() as u64),
            (Self::Variable { offsets, bytes }, DType::String) => {
                rise(offsets, bytes.len() as u64) && is_text(offsets, bytes)
            }
            (Self::List { offsets, child }, DType::List { child: dtype }) => {
                let end = offsets.last().copied().unwrap_or(0);
                rise(offsets, end) && child.holds(dtype, end)
            }
            (
                Self::FixedList { size, child },
                DType::FixedSizeList { child: dtype, size: wanted },
            ) => {
                let children = count.checked_mul(u64::from(*size));
                size == wanted && children.is_some_and(|children| child.holds(dtype, children))
            }
            (
                Self::Fixed(_),
                DType::String | DType::Binary | DType::List { .. } | DType::FixedSizeList { .. },
            ) => false,
            (Self::Fixed(bytes), dtype) => {
                let size = dtype.item_size().map(|size| size as u64);
                size.and_then(|size| size.checked_mul(count)) == Some(bytes.len() as u64)
            }
            _ => false,
        }
    }

    /// Appends the encoding of the elements from `start` to `end`. The values must
    /// [hold](Self::holds) them.
    pub(super) fn encode_part(
        &self,
        dtype: &DType,
        start: u64,
        end: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, dtype) {
            (Self::Variable { offsets, bytes }, _) => {
                let (first, last) = encode_offsets(offsets, start, end, out)?;
                out.extend_from_slice(part(bytes, first, last)?);
                Ok(())
            }
            (Self::List { offsets, child }, DType::List { child: dtype }) => {
                let (first, last) = encode_offsets(offsets, start, end, out)?;
                child.encode_part(dtype, first, last, out)
            }
            (Self::FixedList { size, child }, DType::FixedSizeList { child: dtype, .. }) => {
                let at = |element: u64| element.saturating_mul(u64::from(*size));
                child.encode_part(dtype, at(start), at(end), out)
            }
            (Self::Fixed(bytes), dtype) => {
                let size = dtype.item_size().unwrap_or(0) as u64;
                let at = |element: u64| element.saturating_mul(size);
                out.extend_from_slice(part(bytes, at(start), at(end))?);
                Ok(())
            }
            _ => Err(unlike()),
        }
    }

    /// Appends other elements of the same type.
    pub(super) fn append(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::Fixed(bytes), Self::Fixed(more)) => bytes.extend_from_slice(&more),
            (
                Self::Variable { offsets, bytes },
                Self::Variable { offsets: more_offsets, bytes: more },
            ) => {
                append_offsets(offsets, &more_offsets);
                bytes.extend_from_slice(&more);
            }
            (Self::List { offsets, child }, Self::List { offsets: more_offsets, child: more }) => {
                append_offsets(offsets, &more_offsets);
                child.append(*more)?;
            }
            (Self::FixedList { child, .. }, Self::FixedList { child: more, .. }) => {
                child.append(*more)?;
            }
            _ => return Err(unlike()),
        }
        Ok(())
    }
}

/// Appends the offsets of the elements from `start` to `end`, counted from the first of them;
/// returns where the first begins and where the last ends.
fn encode_offsets(offsets: &[u64], start: u64, end: u64, out: &mut Vec<u8>) -> Result<(u64, u64)> {
    let offsets = part(offsets, start, end.saturating_add(1))?;
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(unlike());
    };
    if u32::try_from(last.saturating_sub(first)).is_err() {
        return Err(Error::invalid(format!(
            "a chunk of {last} bytes or children is too large for its offsets, which end at {}; \
             make the chunks smaller",
            u32::MAX
        )));
    }
    // The last one fits, and no other is larger.
    out.extend(
        offsets.iter().flat_map(|offset| (offset.saturating_sub(first) as u32).to_le_bytes()),
    );
    Ok((first, last))
}

fn append_offsets(offsets: &mut Vec<u64>, more: &[u64]) {
    let base = offsets.last().copied().unwrap_or(0);
    offsets.extend(more.iter().skip(1).map(|offset| base.saturating_add(*offset)));
}

fn part<T>(items: &[T], start: u64, end: u64) -> Result<&[T]> {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| items.get(start..end)).ok_or_else(unlike)
}

fn unlike() -> Error {
    Error::invalid("values that are not of their type")
}
