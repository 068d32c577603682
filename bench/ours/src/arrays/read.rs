//! Reading: everything, single chunks, one point through all chunks.

use std::error::Error;

use bench_measure::{Answer, Clock, Data, Options, Outcome, Samples, series_point};
use chunkyard_array::{Buffer, Region};

use super::{Opened, open};

const READS: u64 = 220;
const WARM_UP: u64 = 20;

/// Everything, into fresh and into reused memory. The first read of each checks the data.
pub async fn read(options: &Options, data: Data, repeats: u64) -> Outcome {
    let array = open(options).await?;
    let region = Region::whole(&data.shape);
    let mut memory = Buffer::zeroed(data.elements.len())?;
    memory = array.read_into(&region, memory).await?;
    let equal =
        memory[..] == data.elements[..] && array.read(&region).await?[..] == data.elements[..];
    drop(data);
    let (mut fresh, mut reused) = (Samples::default(), Samples::default());
    for _ in 0..repeats {
        let clock = Clock::start();
        let read = array.read(&region).await?;
        fresh.add(clock);
        drop(read);
        let clock = Clock::start();
        memory = array.read_into(&region, memory).await?;
        reused.add(clock);
    }
    Ok(Answer::default().measure("fresh", &fresh).measure("reused", &reused).equal(equal))
}

/// Open and read everything once; the caller has dropped the page cache.
pub async fn read_cold(options: &Options) -> Outcome {
    let mut samples = Samples::default();
    let clock = Clock::start();
    let array = open(options).await?;
    let read = array.read(&array.whole()).await?;
    samples.add(clock);
    let equal = read[..] == Data::load(options)?.elements[..];
    Ok(Answer::default().measure("cold", &samples).equal(equal))
}

fn plane(at: u64) -> Result<Region, Box<dyn Error>> {
    Ok(Region::new(vec![at, 0, 0], vec![1, 512, 512])?)
}

/// Random chunks into a reused buffer, by one client and by two.
pub async fn read_chunk(options: &Options, data: &Data) -> Outcome {
    let array = open(options).await?;
    let planes = data.shape[0];
    let size = data.elements.len() / planes as usize;
    let mut memory = vec![0u8; size];
    let (mut one, mut two, mut equal) = (Samples::default(), Samples::default(), true);
    for at in 0..READS {
        let chunk = at * 617 % planes;
        let region = plane(chunk)?;
        let clock = Clock::start();
        memory = array.read_into(&region, memory).await?;
        if at >= WARM_UP {
            one.add(clock);
        }
        equal &= data.plane(chunk) == Some(&memory[..]);
    }
    for _ in 0..3 {
        let clock = Clock::start();
        let clients = [0, 331].map(|from| tokio::spawn(client(array.clone(), from, planes, size)));
        for client in clients {
            client.await??;
        }
        two.add_shared(clock, 2 * READS);
    }
    Ok(Answer::default().measure("latency", &one).measure("two-clients", &two).equal(equal))
}

async fn client(array: Opened, from: u64, planes: u64, size: usize) -> Result<(), String> {
    let mut memory = vec![0u8; size];
    for at in 0..READS {
        let region = plane((at * 617 + from) % planes).map_err(|error| error.to_string())?;
        let read = array.read_into(&region, memory).await;
        memory = read.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// One point through all chunks.
pub async fn read_series(options: &Options, data: &Data, repeats: u64) -> Outcome {
    let array = open(options).await?;
    let (mut samples, mut equal) = (Samples::default(), true);
    for repeat in 0..=repeats {
        let [y, x] = series_point(repeat);
        let region = Region::new(vec![0, y, x], vec![data.shape[0], 1, 1])?;
        let clock = Clock::start();
        let read = array.read(&region).await?;
        if repeat > 0 {
            samples.add(clock);
        }
        equal &= read[..] == data.series([y, x])[..];
    }
    Ok(Answer::default().measure("series", &samples).equal(equal))
}
