//! Mutation logs of a DVID server.

use chunkyard_engine::labels::dvid_log::{Records, Replay};
use chunkyard_engine::repo::hostile::FILE;

use crate::error::is_about_bytes;

pub(crate) fn check(data: &[u8]) {
    let mut records = Records::new(FILE, data);
    let read = (&mut records).filter(Result::is_ok).count() as u64;
    match Replay::of(FILE, data) {
        Err(error) => is_about_bytes(&error),
        Ok(replay) => {
            assert_eq!((replay.records, replay.torn_at), (read, records.torn_at()));
            // Everything before a torn record counts, and nothing else.
            let whole = replay.torn_at.map_or(data.len(), |torn| torn as usize);
            let again =
                Replay::of(FILE, &data[..whole]).expect("the whole records can be read again");
            assert_eq!((again.records, again.torn_at), (replay.records, None));
            assert_eq!(again.mapping, replay.mapping);
        }
    }
}
