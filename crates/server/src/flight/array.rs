//! Any region of any array, as boxes.
//!
//! Chunks are read a few MiB at a time, in the order in which the array has them, and sent in boxes that lie in one piece in what
//! was read. A box is a row.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, ListArray, UInt64Array};
use arrow_buffer::{Buffer as ArrowBuffer, OffsetBuffer, ScalarBuffer};
use arrow_flight::FlightData;
use arrow_schema::{DataType, Schema, SchemaRef};
use bytes::Bytes;
use chunkyard_array::{Buffer, Region};
use chunkyard_engine::format::Reader;
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Noun, Result};

use super::message::{BATCH_BYTES, batch, column, item, lists, of_batch, of_schema, refused};
use super::streams::{HungUp, Sender};
use super::ticket::Wanted;
use crate::State;

/// Bytes of a box at most, unless one element is larger.
const BOX_BYTES: u64 = 2 << 20;
/// Bytes that are read at once, if chunks are smaller.
const READ_BYTES: u64 = 2 << 20;
/// Bytes that are read at once of chunks that are larger: then a chunk is decoded more than once.
const READ_BYTES_MAX: u64 = 16 << 20;

/// An array that is open, and what of it is wanted.
#[derive(Debug)]
pub(super) struct Opened {
    reader: Reader,
    region: Region,
    item_bytes: u64,
    schema: SchemaRef,
}

/// Elements of the array that are read at once, in a box.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tiles {
    shape: Vec<u64>,
}

/// What was read, shared by its boxes.
struct Read(Buffer);

impl AsRef<[u8]> for Read {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Opened {
    /// Opens an array of a served place.
    pub(super) async fn of(state: &State, wanted: &Wanted) -> Result<Self> {
        let view = state.places().get(&wanted.source)?.view(wanted.at.as_deref()).await?;
        let path = match &wanted.path {
            Some(path) => path.clone(),
            None => {
                let arrays: Vec<&str> =
                    view.source.dataset().arrays().map(|(path, _)| path).take(2).collect();
                match arrays[..] {
                    [only] => only.to_owned(),
                    [] => {
                        let name = format!("any in {}", wanted.source);
                        return Err(Error::NotFound { what: Noun::Array, name });
                    }
                    _ => {
                        return Err(Error::invalid(format!(
                            "{} has several arrays; name one as `path`",
                            wanted.source
                        )));
                    }
                }
            }
        };
        let reader = Reader::new(&view.source, &path)?;
        let shape = reader.codecs().grid().array_shape().to_vec();
        let region = Region::parse(wanted.region.as_deref().unwrap_or_default(), &shape)?;
        let item_bytes = reader.item_size()? as u64;
        let schema = schema(&reader, &region);
        Ok(Self { reader, region, item_bytes, schema })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes of all of it.
    pub(super) fn bytes(&self) -> i64 {
        let bytes = self.region.num_elements().saturating_mul(self.item_bytes);
        i64::try_from(bytes).unwrap_or(-1)
    }

    /// Sends the boxes; `Ok(Err(_))` if the client has hung up.
    async fn send(&self, sender: &Sender) -> Result<Result<(), HungUp>> {
        if sender.send(of_schema(&self.schema)).await.is_err() {
            return Ok(Err(HungUp));
        }
        let tiles =
            Tiles::new(self.reader.codecs().grid().chunk_shape(), &self.region, self.item_bytes);
        for tile in tiles.over(&self.region) {
            let read = Bytes::from_owner(Read(self.reader.read_region(&tile).await?));
            let (mut ahead, item) = (boxes(&tile, self.item_bytes).peekable(), self.item_bytes);
            let mut at = 0_usize;
            while ahead.peek().is_some() {
                let (mut rows, mut bytes) = (Vec::new(), 0);
                while bytes < BATCH_BYTES
                    && let Some(one) = ahead.next()
                {
                    let length = usize::try_from(one.num_elements().saturating_mul(item))
                        .unwrap_or(usize::MAX);
                    let end = at.saturating_add(length).min(read.len());
                    rows.push((one, read.slice(at..end)));
                    (at, bytes) = (end, bytes + length);
                }
                let schema = self.schema.clone();
                let message = cpu(move || encode(&schema, &rows)).await??;
                if sender.send(message).await.is_err() {
                    return Ok(Err(HungUp));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// Sends what was asked for, until it is sent or the client hangs up.
pub(super) async fn run(opened: Opened, sender: Sender) {
    let failed = tokio::select! {
        biased;
        () = sender.hung_up() => None,
        sent = opened.send(&sender) => sent.err(),
    };
    if let Some(error) = failed {
        sender.fail(error.into()).await;
    }
}

/// The columns, and what the array is.
fn schema(reader: &Reader, region: &Region) -> SchemaRef {
    let numbers = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        format!("[{}]", texts.join(", "))
    };
    let codecs = reader.codecs();
    let about = [
        ("dtype", codecs.whole().dtype().name().to_owned()),
        ("shape", numbers(region.shape())),
        ("origin", numbers(region.origin())),
        ("array_shape", numbers(codecs.grid().array_shape())),
        ("path", reader.path().to_string()),
    ];
    let about = about.into_iter().map(|(key, value)| (key.to_owned(), value));
    let columns = vec![
        lists("origin", DataType::UInt64),
        lists("shape", DataType::UInt64),
        column("data", DataType::Binary),
    ];
    Arc::new(Schema::new_with_metadata(columns, HashMap::from_iter(about)))
}

fn encode(schema: &SchemaRef, rows: &[(Region, Bytes)]) -> Result<FlightData> {
    let list = |of: fn(&Region) -> &[u64]| -> Result<ArrayRef> {
        let offsets = OffsetBuffer::<i32>::from_lengths(rows.iter().map(|(one, _)| of(one).len()));
        let values: Vec<u64> = rows.iter().flat_map(|(one, _)| of(one).iter().copied()).collect();
        let values = UInt64Array::new(ScalarBuffer::from(values), None);
        let lists = ListArray::try_new(item(DataType::UInt64), offsets, Arc::new(values), None);
        Ok(Arc::new(lists.map_err(refused)?))
    };
    let offsets = OffsetBuffer::<i32>::from_lengths(rows.iter().map(|(_, data)| data.len()));
    let data = match rows {
        [(_, only)] => ArrowBuffer::from(only.clone()),
        several => {
            let mut bytes = Vec::with_capacity(several.iter().map(|(_, data)| data.len()).sum());
            several.iter().for_each(|(_, data)| bytes.extend_from_slice(data));
            ArrowBuffer::from(bytes)
        }
    };
    let data = BinaryArray::try_new(offsets, data, None).map_err(refused)?;
    of_batch(&batch(schema, vec![list(Region::origin)?, list(Region::shape)?, Arc::new(data)])?)
}

impl Tiles {
    /// Whole chunks, as many as are read at once; a part of one where it is large.
    fn new(chunk: &[u64], region: &Region, item_bytes: u64) -> Self {
        let mut shape: Vec<u64> = chunk.iter().map(|extent| (*extent).max(1)).collect();
        let bytes =
            |shape: &[u64]| shape.iter().fold(item_bytes.max(1), |all, n| all.saturating_mul(*n));
        let ends = region.end();
        for axis in (0..shape.len()).rev() {
            let end = ends.get(axis).copied().unwrap_or(1).max(1);
            let room = READ_BYTES / bytes(&shape).max(1);
            let Some(extent) = shape.get_mut(axis) else { break };
            let wanted = end.div_ceil(*extent);
            *extent = extent.saturating_mul(room.clamp(1, wanted));
            if room < wanted {
                break;
            }
        }
        for axis in 0..shape.len() {
            while bytes(&shape) > READ_BYTES_MAX
                && shape.get(axis).is_some_and(|extent| *extent > 1)
            {
                if let Some(extent) = shape.get_mut(axis) {
                    *extent = extent.div_ceil(2);
                }
            }
        }
        Self { shape }
    }

    /// The tiles of a region, clipped to it.
    fn over<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = Region> + Send + 'a {
        let first: Vec<u64> =
            region.origin().iter().zip(&self.shape).map(|(at, n)| at / n).collect();
        let end: Vec<u64> =
            region.end().iter().zip(&self.shape).map(|(at, n)| at.div_ceil(*n)).collect();
        let mut next = (!region.is_empty()).then(|| first.clone());
        std::iter::from_fn(move || {
            let at = next.take()?;
            let mut after = at.clone();
            for axis in (0..after.len()).rev() {
                let (Some(here), Some(start), Some(stop)) =
                    (after.get_mut(axis), first.get(axis), end.get(axis))
                else {
                    break;
                };
                *here += 1;
                if *here < *stop {
                    next = Some(after);
                    break;
                }
                *here = *start;
            }
            let origin: Vec<u64> =
                at.iter().zip(&self.shape).map(|(at, n)| at.saturating_mul(*n)).collect();
            let whole = Region::new(origin, self.shape.clone()).ok()?;
            Some(whole.intersect(region).unwrap_or_else(|| region.clone()))
        })
    }
}

/// The boxes of a tile: each lies in one piece in it, in this order.
fn boxes(tile: &Region, item_bytes: u64) -> impl Iterator<Item = Region> + Send + use<> {
    // Along the axes behind `cut` a box has all, before it one.
    let (shape, origin) = (tile.shape().to_vec(), tile.origin().to_vec());
    let (mut cut, mut row) = (shape.len(), item_bytes.max(1));
    while cut > 0 {
        let more = row.saturating_mul(shape.get(cut - 1).copied().unwrap_or(1));
        if more > BOX_BYTES {
            break;
        }
        (cut, row) = (cut - 1, more);
    }
    let step = (BOX_BYTES / row.max(1)).max(1);
    // The shape of a box, and how many there are along each axis up to the one that is cut.
    let mut unit = shape.clone();
    unit.iter_mut().take(cut).for_each(|extent| *extent = 1);
    if let Some(extent) = cut.checked_sub(1).and_then(|at| unit.get_mut(at)) {
        *extent = step;
    }
    let local = Region::whole(&shape);
    let tiles = Tiles { shape: unit };
    let found: Vec<Region> = tiles.over(&local).collect();
    found.into_iter().filter_map(move |one| {
        let from: Vec<u64> = one.origin().iter().zip(&origin).map(|(at, from)| at + from).collect();
        Region::new(from, one.shape().to_vec()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_lie_in_one_piece_and_are_the_region_together() {
        for (array, chunk, from, shape, item) in [
            (vec![], vec![], vec![], vec![], 8),
            (vec![10], vec![3], vec![1], vec![8], 8),
            (vec![100, 100], vec![7, 9], vec![5, 11], vec![50, 80], 4),
            (vec![4, 2000, 900], vec![1, 2000, 900], vec![1, 3, 0], vec![3, 1990, 900], 8),
            (vec![3, 5, 4_000_000], vec![3, 5, 4_000_000], vec![0; 3], vec![3, 5, 4_000_000], 2),
            (vec![1 << 12, 1 << 12], vec![1 << 12, 1 << 12], vec![1, 1], vec![4000, 4000], 8),
        ] {
            let region = Region::new(from, shape).unwrap();
            assert!(Region::whole(&array).contains(&region));
            let tiles = Tiles::new(&chunk, &region, item);
            let (mut elements, mut last) = (0, None);
            for tile in tiles.over(&region) {
                assert!(tile.num_elements() * item <= READ_BYTES_MAX);
                assert!(last.as_ref().is_none_or(|last: &Vec<u64>| *last < tile.origin().to_vec()));
                last = Some(tile.origin().to_vec());
                let mut inside = 0;
                for one in boxes(&tile, item) {
                    assert!(region.contains(&one) && tile.contains(&one));
                    assert!(one.num_elements() * item <= BOX_BYTES);
                    // Where it begins in the tile is where the ones before it end.
                    let mut offset = 0;
                    for (axis, extent) in tile.shape().iter().enumerate() {
                        offset = offset * extent + one.origin()[axis] - tile.origin()[axis];
                    }
                    assert_eq!(offset, inside, "{one} of {tile}");
                    inside += one.num_elements();
                }
                assert_eq!(inside, tile.num_elements());
                elements += inside;
            }
            assert_eq!(elements, region.num_elements());
        }
        let empty = Region::new(vec![3, 0], vec![0, 5]).unwrap();
        assert_eq!(Tiles::new(&[2, 2], &empty, 1).over(&empty).count(), 0);
    }

    #[test]
    fn small_chunks_are_read_together() {
        let region = Region::whole(&[64, 64, 64]);
        let tiles = Tiles::new(&[1, 8, 8], &region, 1);
        assert_eq!(tiles.over(&region).count(), 1);
    }
}
