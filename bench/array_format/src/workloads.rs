//! The workloads, for any release.

use bench_measure::{Answer, Clock, Data, Idle, Options, Samples, resident};
use ndarray::{ArrayD, IxDyn};

use crate::release::{Array, Element, Release, Result, TINY, tiny_value};
use crate::store::Place;

/// The first planes of the field or of the segmentation.
struct Planes<T> {
    values: ArrayD<T>,
    item_size: usize,
}

impl<T: Element> Planes<T> {
    /// As many as `mib` says.
    fn load(options: &Options) -> Result<Self> {
        let mut data = Data::load(options)?;
        data.elements.truncate((options.number("mib", 256)? as usize) << 20);
        let values = T::all(&data.elements);
        let shape = IxDyn(&[values.len() >> 18, 512, 512]);
        Ok(Self { values: ArrayD::from_shape_vec(shape, values)?, item_size: data.item_size })
    }

    /// As one array in chunks of this many bytes.
    fn array(&self, chunk_bytes: usize) -> Array<'_, T> {
        let planes = chunk_bytes / (self.item_size << 18);
        Array { name: "a".into(), chunk: vec![planes, 512, 512], values: self.values.view() }
    }
}

/// Writes the field in chunks of 4 MiB; with `repeats=0`, only makes it.
pub async fn write<R: Release, T: Element>(options: &Options) -> Result<Answer> {
    let (field, codec) = (Planes::<T>::load(options)?, options.text("codec"));
    let mut returned = Samples::default();
    for repeat in 0..=options.number("repeats", 3)? {
        let place = Place::open(options).await?;
        let clock = Clock::start();
        R::write(&place, codec, &field.array(4 << 20)).await?;
        if repeat > 0 {
            returned.add(clock);
        }
    }
    Ok(Answer::default().measure("returned", &returned))
}

/// Opens the field and reads all of it.
pub async fn read<R: Release, T: Element>(options: &Options) -> Result<Answer> {
    let field = Planes::<T>::load(options)?;
    let (mut fresh, mut equal) = (Samples::default(), true);
    let place = Place::open(options).await?;
    for _ in 0..=options.number("repeats", 3)? {
        let clock = Clock::start();
        let file = R::open(&place).await?;
        let values = R::read::<T>(&file, "a", &[], &[]).await?;
        fresh.add(clock);
        equal &= values == field.values;
    }
    Ok(Answer::default().measure("fresh", &fresh).equal(equal))
}

/// Makes an array of many tiny chunks.
pub async fn chunks<R: Release>(options: &Options) -> Result<Answer> {
    R::make_chunks(&Place::open(options).await?, count(options, "chunks")?).await?;
    Ok(Answer::default())
}

/// Makes many arrays.
pub async fn arrays<R: Release>(options: &Options) -> Result<Answer> {
    R::make_arrays(&Place::open(options).await?, count(options, "arrays")?).await?;
    Ok(Answer::default())
}

/// Opens, once per process: how long that takes, and how much memory it keeps.
pub async fn open<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let mut opened = Samples::default();
    let (idle, before) = (Idle::now(), resident());
    let clock = Clock::start();
    let file = R::open(&place).await?;
    opened.add(clock);
    let (grown, peak) = (resident().saturating_sub(before), idle.above());
    let requests = place.requests();
    let arrays = R::arrays(&file);
    let equal = match options.text("arrays") {
        "" => arrays == 1,
        text => text == arrays.to_string(),
    };
    let answer = Answer::default().measure("open", &opened).equal(equal);
    let answer = answer.fact("memory-growth", grown).fact("memory-peak", peak);
    Ok(answer.fact("requests", requests))
}

/// Reads 16 values at random places, from an open container that has read all of its blocks.
pub async fn point<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let chunks = count(options, "chunks")?;
    let file = R::open(&place).await?;
    let (mut latency, mut equal) = (Samples::default(), true);
    let reads = options.number("reads", 16)? as usize;
    // 8 MiB apart at most: every block is in the crate's cache afterwards.
    for start in (0..chunks * TINY).step_by((1 << 20).max(chunks * TINY / 64)) {
        R::read::<f32>(&file, "a", &[start], &[TINY]).await?;
    }
    for read in 0..reads {
        let start = scattered(read, chunks) * TINY;
        let clock = Clock::start();
        let values = R::read::<f32>(&file, "a", &[start], &[TINY]).await?;
        latency.add(clock);
        equal &= values.iter().copied().eq((start..start + TINY).map(tiny_value));
    }
    Ok(Answer::default().measure("latency", &latency).equal(equal))
}

/// Writes many tiny chunks by the API.
pub async fn tiny<R: Release>(options: &Options) -> Result<Answer> {
    let chunks = count(options, "chunks")?;
    let values = ArrayD::from_shape_vec(
        IxDyn(&[chunks * TINY]),
        (0..chunks * TINY).map(tiny_value).collect(),
    )?;
    let place = Place::open(options).await?;
    let array = Array { name: "a".into(), chunk: vec![TINY], values: values.view() };
    let mut returned = Samples::default();
    let clock = Clock::start();
    R::write(&place, "none", &array).await?;
    returned.add(clock);
    let file = R::open(&place).await?;
    let start = (chunks - 1) * TINY;
    let last = R::read::<f32>(&file, "a", &[start], &[TINY]).await?;
    let equal = last.iter().copied().eq((start..start + TINY).map(tiny_value));
    Ok(Answer::default().measure("returned", &returned).equal(equal))
}

/// Makes 64 planes in chunks of 1 MiB.
pub async fn planes<R: Release>(options: &Options) -> Result<Answer> {
    let field = Planes::<f32>::load(options)?;
    R::write(&Place::open(options).await?, "none", &field.array(1 << 20)).await?;
    Ok(Answer::default())
}

/// Changes one chunk of 1 MiB of an existing array: from opening until the change is visible.
pub async fn change<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let mut returned = Samples::default();
    let mut requests = 0;
    for repeat in 0..options.number("changes", 3)? {
        let values = ArrayD::from_elem(IxDyn(&[1, 512, 512]), repeat as f32);
        let before = place.requests();
        let clock = Clock::start();
        let done = R::change(&place, "a", &[repeat as usize, 0, 0], values.view()).await?;
        returned.add(clock);
        drop(done);
        requests = place.requests() - before;
    }
    let file = R::open(&place).await?;
    let first = R::read::<f32>(&file, "a", &[0, 0, 0], &[1, 1, 16]).await?;
    let equal = first.iter().all(|&value| value == 0.0);
    Ok(Answer::default().measure("returned", &returned).fact("requests", requests).equal(equal))
}

/// Makes a container of many layers; each changes one of 256 chunks of 4 KiB.
pub async fn layers<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let values = ArrayD::from_elem(IxDyn(&[256 * 1024]), 0.0);
    let array = Array { name: "a".into(), chunk: vec![1024], values: values.view() };
    R::write(&place, "none", &array).await?;
    for layer in 1..count(options, "layers")? {
        let value = ArrayD::from_elem(IxDyn(&[1024]), layer as f32);
        R::change(&place, "a", &[(layer % 256) * 1024], value.view()).await?;
    }
    Ok(Answer::default())
}

/// Reads random chunks of 4 KiB through all layers.
pub async fn deep<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let file = R::open(&place).await?;
    let requests = place.requests();
    let (mut latency, mut equal) = (Samples::default(), true);
    R::read::<f32>(&file, "a", &[], &[]).await?;
    for read in 0..256 {
        let start = scattered(read, 256) * 1024;
        let clock = Clock::start();
        let values = R::read::<f32>(&file, "a", &[start], &[1024]).await?;
        latency.add(clock);
        equal &= values.len() == 1024;
    }
    Ok(Answer::default().measure("latency", &latency).fact("requests", requests).equal(equal))
}

/// Requests to read one chunk from a container that was just opened.
pub async fn first<R: Release>(options: &Options) -> Result<Answer> {
    let place = Place::open(options).await?;
    let file = R::open(&place).await?;
    let before = place.requests();
    let clock = Clock::start();
    R::read::<f32>(&file, "a", &[0, 0, 0], &[1, 512, 512]).await?;
    let mut latency = Samples::default();
    latency.add(clock);
    let requests = place.requests() - before;
    Ok(Answer::default().measure("latency", &latency).fact("requests", requests))
}

fn count(options: &Options, key: &str) -> Result<usize> {
    Ok(options.number(key, 1000)? as usize)
}

/// A place below `count`, never the same twice in a row.
fn scattered(at: usize, count: usize) -> usize {
    (at * 7_919 + 13) * 104_729 % count
}
