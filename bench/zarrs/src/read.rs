//! Reading: everything, single chunks, one point through all chunks.

use std::error::Error;

use bench_measure::{Answer, Clock, Data, Options, Outcome, Samples, series_point};

use zarrs::array::{
    Array, ArrayBytes, ArrayBytesFixedDisjointView, ArrayShardedReadableExt,
    ArrayShardedReadableExtCache, ArraySubset, CodecOptions,
};

use crate::{Store, open};

const READS: u64 = 220;
const WARM_UP: u64 = 20;

fn fresh(array: &Array<Store>, region: &ArraySubset) -> Result<Vec<u8>, Box<dyn Error>> {
    let bytes: ArrayBytes<'static> = array.retrieve_array_subset(region)?;
    Ok(bytes.into_fixed()?.into_owned())
}

/// Decodes into memory of the caller.
fn into(
    array: &Array<Store>,
    region: &ArraySubset,
    item: usize,
    memory: &mut [u8],
) -> Result<(), Box<dyn Error>> {
    let shape = region.shape().to_vec();
    let whole = ArraySubset::new_with_shape(shape.clone());
    let cells = unsafe_cell_slice::UnsafeCellSlice::new(memory);
    // SAFETY: the one view there is covers the memory, which is borrowed for as long.
    let mut view = unsafe { ArrayBytesFixedDisjointView::new(cells, item, &shape, whole)? };
    array.retrieve_array_subset_into(region, (&mut view).into())?;
    Ok(())
}

/// A part of the array. Shards use the crate's cache of their indices, without which it would read
/// and check an index for each part; the cache gives fresh memory only.
fn part(
    array: &Array<Store>,
    cache: &ArrayShardedReadableExtCache,
    region: &ArraySubset,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let options = CodecOptions::default();
    let bytes: ArrayBytes<'static> =
        array.retrieve_array_subset_sharded_opt(cache, region, &options)?;
    Ok(bytes.into_fixed()?.into_owned())
}

/// A chunk, into the given memory if that is possible.
fn chunk(
    array: &Array<Store>,
    cache: &ArrayShardedReadableExtCache,
    region: &ArraySubset,
    item: usize,
    memory: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    if !cache.array_is_sharded() {
        return into(array, region, item, memory);
    }
    *memory = part(array, cache, region)?;
    Ok(())
}

/// Everything, into fresh and into reused memory.
pub fn all(directory: &str, data: Data, repeats: u64) -> Outcome {
    let array = open(directory)?;
    let region = array.subset_all();
    let mut memory = vec![0u8; data.elements.len()];
    into(&array, &region, data.item_size, &mut memory)?;
    let equal = memory == data.elements && fresh(&array, &region)? == data.elements;
    let item = data.item_size;
    drop(data);
    let (mut anew, mut reused) = (Samples::default(), Samples::default());
    for _ in 0..repeats {
        let clock = Clock::start();
        let read = fresh(&array, &region)?;
        anew.add(clock);
        drop(read);
        let clock = Clock::start();
        into(&array, &region, item, &mut memory)?;
        reused.add(clock);
    }
    Ok(Answer::default().measure("fresh", &anew).measure("reused", &reused).equal(equal))
}

/// Open and read everything once; the caller has dropped the page cache.
pub fn cold(directory: &str, options: &Options) -> Outcome {
    let mut samples = Samples::default();
    let clock = Clock::start();
    let array = open(directory)?;
    let read = fresh(&array, &array.subset_all())?;
    samples.add(clock);
    let equal = read == Data::load(options)?.elements;
    Ok(Answer::default().measure("cold", &samples).equal(equal))
}

/// Random chunks into a reused buffer, by one client and by two.
pub fn chunks(directory: &str, data: &Data) -> Outcome {
    let array = open(directory)?;
    let cache = ArrayShardedReadableExtCache::new(&array);
    let (planes, item) = (data.shape[0], data.item_size);
    let size = data.elements.len() / planes as usize;
    let plane = |at: u64| ArraySubset::new_with_ranges(&[at..at + 1, 0..512, 0..512]);
    let mut memory = vec![0u8; size];
    let (mut one, mut two, mut equal) = (Samples::default(), Samples::default(), true);
    for at in 0..READS {
        let at_plane = at * 617 % planes;
        let clock = Clock::start();
        self::chunk(&array, &cache, &plane(at_plane), item, &mut memory)?;
        if at >= WARM_UP {
            one.add(clock);
        }
        equal &= data.plane(at_plane) == Some(&memory[..]);
    }
    for _ in 0..3 {
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let clients = [0, 331].map(|start| {
                let (array, cache) = (&array, &cache);
                scope.spawn(move || {
                    let mut memory = vec![0u8; size];
                    (0..READS)
                        .try_for_each(|at| {
                            let region = plane((at * 617 + start) % planes);
                            self::chunk(array, cache, &region, item, &mut memory)
                        })
                        .map_err(|error| error.to_string())
                })
            });
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| "a client died".to_owned())?)
        })?;
        two.add_shared(clock, 2 * READS);
    }
    Ok(Answer::default().measure("latency", &one).measure("two-clients", &two).equal(equal))
}

/// One point through all chunks.
pub fn series(directory: &str, data: &Data, repeats: u64) -> Outcome {
    let array = open(directory)?;
    let cache = ArrayShardedReadableExtCache::new(&array);
    let (mut samples, mut equal) = (Samples::default(), true);
    for repeat in 0..=repeats {
        let [y, x] = series_point(repeat);
        let region = ArraySubset::new_with_ranges(&[0..data.shape[0], y..y + 1, x..x + 1]);
        let clock = Clock::start();
        let read = part(&array, &cache, &region)?;
        if repeat > 0 {
            samples.add(clock);
        }
        equal &= read == data.series([y, x]);
    }
    Ok(Answer::default().measure("series", &samples).equal(equal))
}
