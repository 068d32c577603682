//! One output array, written by many threads at once without locks.
//!
//! An [`Output`] owns memory for a region or a selection. [`Output::views`] cuts it along a chunk
//! grid into [`View`]s, one per chunk, that can be sent to the thread that decodes the chunk. A
//! view keeps the memory alive, so it needs no scope; when all are dropped the memory comes back by
//! [`Output::into_memory`].
//!
//! This is one of three files of the crate with unsafe code; the others call C (`codec/blosc/c.rs`)
//! and instructions of some processors (`codec/blosc/shuffle.rs`). It is sound because
//! - the memory is asked for its slice once and not touched again while a pointer to it exists,
//! - views are made once per output, each from the [`Footprint`] of another chunk in one walk of
//!   [`Cells`]; a selected element lies in one chunk only, so no two views share a byte,
//! - a view writes only at offsets of a [`Plan`] made for the shape whose byte length was compared
//!   with the length of the slice.
#![expect(unsafe_code, reason = "disjoint views of one output, written from many threads")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::copy::{Plan, Sink, check_len};
use crate::{Buffer, Cells, ChunkIndex, Error, Footprint, Grid, Region, Result, Selection};

#[cfg(test)]
mod tests;

/// Memory that an output can be made of.
pub trait OutputMemory: Send + 'static {
    /// The bytes of the output.
    fn as_mut_slice(&mut self) -> &mut [u8];
}

impl OutputMemory for Vec<u8> {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        self
    }
}

impl OutputMemory for Buffer {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        self
    }
}

/// The memory, and the one pointer through which it is written.
struct Shared<M> {
    memory: UnsafeCell<M>,
    base: NonNull<u8>,
}

// SAFETY: `M` itself is reached only by the owner of the last `Arc` (`into_memory` or drop), which
// may be on another thread, hence `M: Send`. Through a shared reference only `base` is read.
unsafe impl<M: Send> Send for Shared<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Shared<M> {}

/// An output array of known shape and item size, to be filled chunk by chunk.
pub struct Output<M> {
    shared: Arc<Shared<M>>,
    shape: Arc<[u64]>,
    item_size: usize,
    views_taken: bool,
}

impl<M: OutputMemory> Output<M> {
    /// An output of `shape` in `memory`, whose length must be exactly right.
    pub fn new(memory: M, shape: &[u64], item_size: usize) -> Result<Self> {
        let mut shared =
            Arc::new(Shared { memory: UnsafeCell::new(memory), base: NonNull::dangling() });
        // The memory is in its final place before its address is taken: it may hold its bytes
        // inline.
        let Some(owned) = Arc::get_mut(&mut shared) else {
            return Err(Error::invalid("a new output is already shared"));
        };
        let slice = owned.memory.get_mut().as_mut_slice();
        check_len("output memory", slice.len(), shape, item_size)?;
        owned.base = NonNull::from(slice).cast();
        Ok(Self { shared, shape: shape.into(), item_size, views_taken: false })
    }

    /// Cuts the output, which holds `region` of an array, along the array's `grid`.
    ///
    /// Yields each chunk that has elements in the region once, in row-major order, with the view of
    /// its place in the output. A second call is an error: its views would alias the first ones.
    pub fn views(&mut self, grid: &Grid, region: &Region) -> Result<Views> {
        if !Region::whole(grid.array_shape()).contains(region) {
            return Err(Error::invalid(format!(
                "region {region} is not within the array of shape {:?}",
                grid.array_shape()
            )));
        }
        self.views_of(Selection::from(region).cells(grid)?)
    }

    /// Cuts the output, which holds the elements that the cells select; like [`Output::views`].
    pub fn views_of(&mut self, cells: Cells) -> Result<Views> {
        if self.views_taken {
            return Err(Error::invalid("the views of an output can be taken only once"));
        }
        if cells.shape() != &*self.shape {
            return Err(Error::invalid(format!(
                "a selection of shape {:?} does not have the shape {:?} of the output",
                cells.shape(),
                self.shape
            )));
        }
        self.views_taken = true;
        Ok(Views {
            base: self.shared.base,
            keep: Arc::clone(&self.shared) as Arc<dyn Any + Send + Sync>,
            cells,
            shape: Arc::clone(&self.shape),
            item_size: self.item_size,
        })
    }

    /// Takes the memory back, once all views are dropped.
    pub fn into_memory(self) -> Result<M> {
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => Ok(shared.memory.into_inner()),
            Err(_) => Err(Error::invalid("views of the output are still in use")),
        }
    }
}

/// Iterator over the chunks of an output; see [`Output::views`].
pub struct Views {
    base: NonNull<u8>,
    keep: Arc<dyn Any + Send + Sync>,
    cells: Cells,
    shape: Arc<[u64]>,
    item_size: usize,
}

// SAFETY: `base` points into memory kept alive by `keep`; the iterator itself never writes.
unsafe impl Send for Views {}

impl Iterator for Views {
    type Item = (ChunkIndex, View);

    fn next(&mut self) -> Option<Self::Item> {
        let (index, footprint) = self.cells.next()?;
        let view = View {
            base: self.base,
            keep: Arc::clone(&self.keep),
            footprint,
            shape: Arc::clone(&self.shape),
            item_size: self.item_size,
        };
        Some((index, view))
    }
}

/// The place of one chunk, or of a part of it, in an output. Nothing else can write there.
pub struct View {
    base: NonNull<u8>,
    #[expect(dead_code, reason = "held for its drop: it keeps the memory alive")]
    keep: Arc<dyn Any + Send + Sync>,
    footprint: Footprint,
    shape: Arc<[u64]>,
    item_size: usize,
}

// SAFETY: a view is the only one to write its places, and the memory it writes to is kept alive by
// `keep`, which is itself `Send`.
unsafe impl Send for View {}
// SAFETY: a shared reference to a view only gives access to its geometry.
unsafe impl Sync for View {}

impl View {
    /// The wanted part of the chunk.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Makes it a view of a chunk of a smaller shape; see [`Footprint::clipped`].
    pub fn clip(&mut self, shape: &[u64]) -> Result<()> {
        if self.footprint.chunk_shape() != shape {
            self.footprint = self.footprint.clone().clipped(shape)?;
        }
        Ok(())
    }

    /// Bytes of an item.
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// The numbers, ascending, of the blocks that hold something wanted, when the decoded chunk is
    /// cut into blocks of `block_bytes` bytes.
    pub fn blocks_wanted(&self, block_bytes: usize) -> Result<Vec<usize>> {
        let whole = Region::whole(self.footprint.chunk_shape());
        let mut blocks: Vec<usize> = Vec::new();
        let Some(plan) = self.plan(&whole)? else { return Ok(blocks) };
        let block_bytes = block_bytes.max(1);
        plan.each_run(|start, _| {
            let last = (start + plan.run() - 1) / block_bytes;
            let next = blocks.last().map_or(0, |&known| known + 1);
            blocks.extend((start / block_bytes).max(next)..=last);
        });
        Ok(blocks)
    }

    /// Copies the wanted part out of a decoded chunk of shape `chunk_shape`.
    pub fn write_from(&mut self, decoded: &[u8], chunk_shape: &[u64]) -> Result<()> {
        self.write_box(decoded, &Region::whole(chunk_shape))
    }

    /// Copies the wanted part out of a decoded box of the chunk; `place` is relative to the chunk's
    /// origin. A box without wanted elements writes nothing.
    pub fn write_box(&mut self, decoded: &[u8], place: &Region) -> Result<()> {
        check_len("decoded chunk", decoded.len(), place.shape(), self.item_size)?;
        if let Some(plan) = self.plan(place)? {
            plan.copy(decoded, &mut RawSink { base: self.base });
        }
        Ok(())
    }

    /// Sets all wanted elements to `element`.
    pub fn fill(&mut self, element: &[u8]) -> Result<()> {
        let place = Region::whole(self.footprint.chunk_shape());
        self.fill_box(element, &place)
    }

    /// Sets the wanted elements in a box of the chunk to `element`.
    pub fn fill_box(&mut self, element: &[u8], place: &Region) -> Result<()> {
        if element.len() != self.item_size {
            return Err(Error::invalid(format!(
                "an element of the output has {} bytes, the one to fill with has {}",
                self.item_size,
                element.len()
            )));
        }
        if let Some(plan) = self.footprint.plan_filling(place, &self.shape, self.item_size)? {
            plan.fill(element, &mut RawSink { base: self.base });
        }
        Ok(())
    }

    /// The place of the whole chunk as one slice, where all of it is wanted, padding included, and
    /// it is contiguous in the output: a codec can then decode straight into it.
    pub fn whole_chunk_mut(&mut self) -> Option<&mut [u8]> {
        if !self.footprint.is_whole_chunk() {
            return None;
        }
        let whole = Region::whole(self.footprint.chunk_shape());
        let (offset, len) = self.plan(&whole).ok()??.single_run()?;
        // SAFETY: the plan lies within the output, whose bytes are initialised and kept alive by
        // `keep`; these belong to this view alone, which is borrowed for as long as the slice.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.add(offset).as_ptr(), len) })
    }

    fn plan(&self, place: &Region) -> Result<Option<Plan>> {
        self.footprint.plan(place, &self.shape, self.item_size)
    }
}

/// Output memory behind a view.
struct RawSink {
    base: NonNull<u8>,
}

impl Sink for RawSink {
    #[inline]
    fn put(&mut self, offset: usize, run: &[u8]) {
        // SAFETY: offsets come from a plan within the output, for the places of one view. `run`
        // cannot overlap it: lending these bytes would need a borrow of that view.
        unsafe {
            std::ptr::copy_nonoverlapping(run.as_ptr(), self.base.add(offset).as_ptr(), run.len());
        }
    }

    #[inline]
    fn set(&mut self, offset: usize, len: usize, byte: u8) {
        // SAFETY: as in `put`.
        unsafe { std::ptr::write_bytes(self.base.add(offset).as_ptr(), byte, len) };
    }
}
