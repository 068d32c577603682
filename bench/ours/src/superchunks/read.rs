//! Everything is read at once; then single rows and chunks, by one client and by four.

use bench_measure::{Answer, Clock, Idle, Options, Outcome, Samples};
use chunkyard_array::{Buffer, Region};
use chunkyard_engine::format::Reader;

use super::{CHUNK, ROW, Rows, open};

const READS: u64 = 220;
const WARM_UP: u64 = 20;
const CLIENTS: u64 = 4;

/// Everything, into fresh and into reused memory. The first read of each checks the data.
pub async fn read(options: &Options) -> Outcome {
    let rows = Rows::load(options)?;
    let reader = open(options).await?.reader("/")?;
    let whole = Region::new([0], [rows.len()])?;
    let idle = Idle::now();
    let fresh = reader.read_region(&whole).await?;
    let memory = idle.above();
    let mut reused = Buffer::zeroed(rows.elements.len())?;
    reused = reader.read_region_into(&whole, reused).await?;
    let equal = fresh[..] == rows.elements[..] && reused[..] == rows.elements[..];
    drop((rows, fresh));
    let (mut of_fresh, mut of_reused) = (Samples::default(), Samples::default());
    for _ in 0..options.number("repeats", 3)? {
        let clock = Clock::start();
        let read = reader.read_region(&whole).await?;
        of_fresh.add(clock);
        drop(read);
        let clock = Clock::start();
        reused = reader.read_region_into(&whole, reused).await?;
        of_reused.add(clock);
    }
    let answer = Answer::default().measure("fresh", &of_fresh).measure("reused", &of_reused);
    Ok(answer.fact("memory", memory).equal(equal))
}

/// Single rows, and chunks into reused memory: by one client, and by four at once.
pub async fn random(options: &Options) -> Outcome {
    let rows = Rows::load(options)?;
    let reader = open(options).await?.reader("/")?;
    let per_chunk = (CHUNK / ROW) as u64;
    let chunks = rows.len() / per_chunk;
    let (mut one_row, mut one_chunk, mut equal) = (Samples::default(), Samples::default(), true);
    let mut memory = vec![0; CHUNK];
    for at in 0..READS {
        let start = (at * 7_919 + 13) * 104_729 % rows.len();
        let clock = Clock::start();
        let row = reader.read_region(&Region::new([start], [1])?).await?;
        if at >= WARM_UP {
            one_row.add(clock);
        }
        equal &= row[..] == rows.part(start, 1)[..];
        let start = at * 617 % chunks * per_chunk;
        let clock = Clock::start();
        memory = reader.read_region_into(&Region::new([start], [per_chunk])?, memory).await?;
        if at >= WARM_UP {
            one_chunk.add(clock);
        }
        equal &= memory[..] == rows.part(start, per_chunk)[..];
    }
    let mut answer = Answer::default().measure("row", &one_row).measure("chunk", &one_chunk);
    for (name, clients) in [("one-client", 1), ("four-clients", CLIENTS)] {
        let mut shared = Samples::default();
        for _ in 0..3 {
            let clock = Clock::start();
            let readers =
                (0..clients).map(|from| tokio::spawn(client(reader.clone(), from, chunks)));
            for reader in readers.collect::<Vec<_>>() {
                reader.await??;
            }
            shared.add_shared(clock, clients * READS);
        }
        answer = answer.measure(name, &shared);
    }
    Ok(answer.equal(equal))
}

async fn client(reader: Reader, from: u64, chunks: u64) -> Result<(), String> {
    let per_chunk = (CHUNK / ROW) as u64;
    let mut memory = vec![0; CHUNK];
    for at in 0..READS {
        let start = (at * 617 + from * 331) % chunks * per_chunk;
        let region = Region::new([start], [per_chunk]).map_err(|error| error.to_string())?;
        let read = reader.read_region_into(&region, memory).await;
        memory = read.map_err(|error| error.to_string())?;
    }
    Ok(())
}
