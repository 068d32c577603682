//! Decoded elements: of fixed size, back to back; or of any length, with offsets.

use crate::copy::{Plan, copy_region, dense_bytes};
use crate::{Error, Footprint, Region, Result};

/// Elements of a chunk or region, in row-major order, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements<'a> {
    /// Items of equal size in native byte order.
    Fixed(&'a [u8]),
    /// Element `i` is `bytes[offsets[i]..offsets[i + 1]]`; there is one offset more than elements.
    Variable {
        /// All elements, end to end.
        bytes: &'a [u8],
        /// Where each begins, and where the last one ends.
        offsets: &'a [u64],
    },
}

/// Elements of a chunk or region, owned; see [`Elements`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementsBuf {
    /// Items of equal size in native byte order.
    Fixed(Vec<u8>),
    /// Element `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    Variable {
        /// All elements, end to end.
        bytes: Vec<u8>,
        /// Where each begins, and where the last one ends.
        offsets: Vec<u64>,
    },
}

impl<'a> Elements<'a> {
    /// Element `index` of elements of variable length.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let Self::Variable { bytes, offsets } = *self else { return None };
        let start = usize::try_from(*offsets.get(index)?).ok()?;
        let end = usize::try_from(*offsets.get(index.checked_add(1)?)?).ok()?;
        bytes.get(start..end)
    }

    /// Takes `region` out of elements of an array of `shape`.
    pub fn gather(&self, shape: &[u64], region: &Region) -> Result<ElementsBuf> {
        let origin = vec![0; region.rank()];
        match *self {
            Self::Fixed(bytes) => {
                let item_size = item_size(bytes.len(), shape)?;
                let mut out = super::scratch::zeroed(region.num_bytes(item_size)?)?;
                copy_region(bytes, shape, region, &mut out, region.shape(), &origin, item_size)?;
                Ok(ElementsBuf::Fixed(out))
            }
            Self::Variable { .. } => {
                let mut assembly = Assembly::new(region.shape(), &[])?;
                assembly.place(*self, shape, region, &origin)?;
                Ok(assembly.finish())
            }
        }
    }

    /// Checks the offsets of elements of variable length.
    pub(crate) fn check(&self, num_elements: u64) -> Result<()> {
        let Self::Variable { bytes, offsets } = *self else { return Ok(()) };
        let ordered = offsets.is_sorted()
            && offsets.first() == Some(&0)
            && offsets.last() == Some(&(bytes.len() as u64));
        if ordered && offsets.len() as u64 - 1 == num_elements {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "offsets of {num_elements} elements must rise from 0 to {} and be one more, found {}",
            bytes.len(),
            offsets.len()
        )))
    }
}

impl ElementsBuf {
    /// The elements, borrowed.
    pub fn as_ref(&self) -> Elements<'_> {
        match self {
            Self::Fixed(bytes) => Elements::Fixed(bytes),
            Self::Variable { bytes, offsets } => Elements::Variable { bytes, offsets },
        }
    }

    /// Replaces `region` of these elements of an array of `shape` by `part`.
    pub fn scatter(&mut self, shape: &[u64], region: &Region, part: Elements<'_>) -> Result<()> {
        let whole = Region::whole(region.shape());
        match (&mut *self, part) {
            (Self::Fixed(bytes), Elements::Fixed(part)) => {
                let size = item_size(bytes.len(), shape)?;
                copy_region(part, region.shape(), &whole, bytes, shape, region.origin(), size)
            }
            (Self::Variable { .. }, Elements::Variable { .. }) => {
                let everything = Region::whole(shape);
                let mut assembly = Assembly::new(shape, &[])?;
                assembly.place(self.as_ref(), shape, &everything, everything.origin())?;
                assembly.place(part, region.shape(), &whole, region.origin())?;
                *self = assembly.finish();
                Ok(())
            }
            _ => Err(Error::invalid("elements of fixed size and of any length do not mix")),
        }
    }

    /// Replaces the wanted part of these elements of variable length, a whole chunk, with the
    /// elements at its place in `given`, of an array of `given_shape`.
    pub fn scatter_part(
        &mut self,
        wanted: &Footprint,
        given: Elements<'_>,
        given_shape: &[u64],
    ) -> Result<()> {
        let whole = Region::whole(wanted.chunk_shape());
        let mut assembly = Assembly::new(whole.shape(), &[])?;
        assembly.place(self.as_ref(), whole.shape(), &whole, whole.origin())?;
        if let Some(plan) = wanted.plan(&whole, given_shape, 1)? {
            assembly.copy(given, given_shape, &plan.reversed())?;
        }
        *self = assembly.finish();
        Ok(())
    }
}

/// Bytes of an item of an array that takes `len` bytes.
fn item_size(len: usize, shape: &[u64]) -> Result<usize> {
    let items = dense_bytes(shape, 1)?;
    match len.checked_div(items) {
        Some(size) if size * items == len => Ok(size),
        None if len == 0 => Ok(1),
        _ => Err(Error::invalid(format!("{len} bytes are no elements of shape {shape:?}"))),
    }
}

/// A region of elements of variable length, put together from the chunks it touches.
///
/// The bytes are copied twice, once in and once in order, however many chunks there are.
#[derive(Clone, Debug)]
pub struct Assembly {
    shape: Vec<u64>,
    bytes: Vec<u8>,
    /// Start and end in `bytes`, per element.
    slots: Vec<(usize, usize)>,
}

impl Assembly {
    /// An assembly of `shape` in which each element is `fill`, until something is placed.
    pub fn new(shape: &[u64], fill: &[u8]) -> Result<Self> {
        let slots_bytes = dense_bytes(shape, size_of::<(usize, usize)>())?;
        let count = dense_bytes(shape, 1)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| Error::OutOfMemory {
            what: "elements of variable length".into(),
            bytes: slots_bytes,
        })?;
        slots.resize(count, (0, fill.len()));
        Ok(Self { shape: shape.to_vec(), bytes: fill.to_vec(), slots })
    }

    /// Places `region` of elements of an array of `source_shape` at `target_origin`.
    pub fn place(
        &mut self,
        source: Elements<'_>,
        source_shape: &[u64],
        region: &Region,
        target_origin: &[u64],
    ) -> Result<()> {
        // With items of one byte, the offsets of a plan are positions of elements.
        let plan = Plan::new(source_shape, region, &self.shape, target_origin, 1)?;
        self.copy(source, source_shape, &plan)
    }

    /// Places the wanted part of a box of a chunk, given its elements.
    pub fn place_part(
        &mut self,
        source: Elements<'_>,
        place: &Region,
        wanted: &Footprint,
    ) -> Result<()> {
        match wanted.plan(place, &self.shape, 1)? {
            Some(plan) => self.copy(source, place.shape(), &plan),
            None => Ok(()),
        }
    }

    fn copy(&mut self, source: Elements<'_>, source_shape: &[u64], plan: &Plan) -> Result<()> {
        let Elements::Variable { bytes, offsets } = source else {
            return Err(Error::invalid("an assembly takes elements of variable length only"));
        };
        source.check(dense_bytes(source_shape, 1)? as u64)?;
        let run = plan.run();
        plan.each_run(|source_at, target_at| {
            let ends = &offsets[source_at..=source_at + run];
            let first = ends.first().map_or(0, |&offset| offset as usize);
            let last = ends.last().map_or(first, |&offset| offset as usize);
            let base = self.bytes.len();
            self.bytes.extend_from_slice(&bytes[first..last]);
            for (slot, pair) in self.slots[target_at..].iter_mut().zip(ends.windows(2)) {
                *slot = (base + pair[0] as usize - first, base + pair[1] as usize - first);
            }
        });
        Ok(())
    }

    /// The elements, in order.
    pub fn finish(self) -> ElementsBuf {
        let total = self.slots.iter().map(|(start, end)| end - start).sum();
        let mut bytes = Vec::with_capacity(total);
        let mut offsets = Vec::with_capacity(self.slots.len() + 1);
        offsets.push(0);
        for (start, end) in self.slots {
            bytes.extend_from_slice(&self.bytes[start..end]);
            offsets.push(bytes.len() as u64);
        }
        ElementsBuf::Variable { bytes, offsets }
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembly, Elements, ElementsBuf};
    use crate::Region;

    fn words(words: &[&str]) -> ElementsBuf {
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend_from_slice(word.as_bytes());
            offsets.push(bytes.len() as u64);
        }
        ElementsBuf::Variable { bytes, offsets }
    }

    #[test]
    fn a_region_is_gathered_and_scattered() {
        let mut all = words(&["a", "bb", "", "dddd", "e", "ff"]);
        let region = Region::new([0, 1], [2, 2]).unwrap();
        let part = all.as_ref().gather(&[2, 3], &region).unwrap();
        assert_eq!(part, words(&["bb", "", "e", "ff"]));
        assert_eq!(part.as_ref().get(3), Some(&b"ff"[..]));
        assert_eq!(part.as_ref().get(4), None);
        all.scatter(&[2, 3], &region, words(&["1", "22", "333", ""]).as_ref()).unwrap();
        assert_eq!(all, words(&["a", "1", "22", "dddd", "333", ""]));

        let mut fixed = ElementsBuf::Fixed((0..12).collect());
        let part = fixed.as_ref().gather(&[2, 3], &region).unwrap();
        assert_eq!(part, ElementsBuf::Fixed(vec![2, 3, 4, 5, 8, 9, 10, 11]));
        fixed.scatter(&[2, 3], &region, Elements::Fixed(&[0; 8])).unwrap();
        assert_eq!(fixed, ElementsBuf::Fixed(vec![0, 1, 0, 0, 0, 0, 6, 7, 0, 0, 0, 0]));
        assert!(fixed.scatter(&[2, 3], &region, part.as_ref()).is_ok());
        assert!(all.scatter(&[2, 3], &region, part.as_ref()).is_err(), "kinds do not mix");
    }

    #[test]
    fn a_region_of_strings_is_assembled_from_chunks() {
        let mut assembly = Assembly::new(&[4], b"?").unwrap();
        let chunk = words(&["one", "two"]);
        let second = Region::new([1], [1]).unwrap();
        assembly.place(chunk.as_ref(), &[2], &second, &[0]).unwrap();
        assembly.place(chunk.as_ref(), &[2], &Region::whole(&[2]), &[2]).unwrap();
        assert!(assembly.place(chunk.as_ref(), &[2], &second, &[4]).is_err(), "outside");
        assert!(assembly.place(chunk.as_ref(), &[3], &second, &[0]).is_err(), "wrong shape");
        assert_eq!(assembly.finish(), words(&["two", "?", "one", "two"]));
    }

    #[test]
    fn offsets_that_lie_are_refused() {
        for offsets in [&[][..], &[0], &[0, 1, 3], &[1, 1, 2], &[0, 2, 1], &[0, 1, 2, 2]] {
            assert!(Elements::Variable { bytes: b"ab", offsets }.check(2).is_err(), "{offsets:?}");
        }
        assert!(Elements::Variable { bytes: b"ab", offsets: &[0, 1, 2] }.check(2).is_ok());
    }
}
