//! Whether commits become slower as they become many.

use bench_measure::{Answer, Clock, Outcome, Samples};
use bytes::Bytes;
use chunkyard_engine::repo::CommitOptions;

use super::{CHUNK, create, index, spec};

const SAMPLES: u64 = 20;
const EARLY: u64 = 10;

/// Commits one chunk after another; keeps the twenty after the tenth, and the last twenty.
pub async fn history(directory: &str, commits: u64) -> Outcome {
    let repo = create(directory).await?;
    let session = repo.writable_session("main").await?;
    session.create_array("/a", spec(10_000)?).await?;
    session.commit(CommitOptions::message("array")).await?;
    let (mut early, mut late) = (Samples::default(), Samples::default());
    for at in 0..commits + SAMPLES {
        let clock = Clock::start();
        let session = repo.writable_session("main").await?;
        session.set_chunk("/a", &index(at % 10_000), Bytes::from(vec![1; CHUNK])).await?;
        session.commit(CommitOptions::message(format!("commit {at}"))).await?;
        if (EARLY..EARLY + SAMPLES).contains(&at) {
            early.add(clock);
        } else if at >= commits {
            late.add(clock);
        }
    }
    Ok(Answer::default().measure("early", &early).measure("late", &late))
}
