//! Ids that are chosen: of new bodies, supervoxels and mutations.
//!
//! Two processes cannot ask each other, and a branch does not know the ids of another. So an id is the time in
//! microseconds since 2020, its last ten bits drawn at random: it stays below 2^53 until the year 2305, so it is
//! exact in every language, and a coarse clock does not give the same one twice. A clock can be behind, so an id is
//! also greater than the last one: the order of mutations is that of their ids.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chunkyard_store::{Error, Result, Uid};

/// 2020, in seconds since 1970.
const START: Duration = Duration::from_secs(1_577_836_800);
/// Random bits of an id, the last ones.
const RANDOM: u64 = (1 << 10) - 1;
/// The end of the integers that all languages have.
const END: u64 = 1 << 53;

/// The least id that is chosen now.
pub(super) fn least() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let since = since.and_then(|now| now.checked_sub(START)).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(END) & !RANDOM
}

/// An id of now that is greater than the last one.
pub(super) fn after(last: u64) -> Result<u64> {
    let [low, high, ..] = *Uid::fresh()?.as_bytes();
    let random = u64::from(u16::from_le_bytes([low, high])) & RANDOM;
    let id = least().max(last.saturating_add(1)).saturating_add(random);
    match id < END {
        true => Ok(id.max(1)),
        false => Err(Error::unsupported(format!(
            "a new id after {last}: ids that are chosen stay below 2^53, where every language has them exactly"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_whatever_the_clock_says() {
        let mut last = least() + (1 << 40);
        for _ in 0..100 {
            let id = after(last).unwrap();
            assert!(id > last && id <= last + 1 + RANDOM, "{id} after {last}");
            last = id;
        }
    }

    #[test]
    fn no_id_leaves_the_integers_of_other_languages() {
        assert_eq!(after(END - 2 - RANDOM).unwrap() >> 53, 0);
        for last in [END - 1, u64::MAX] {
            let error = after(last).unwrap_err();
            assert!(error.to_string().contains("2^53"), "{error}");
        }
    }

    #[test]
    fn two_processes_at_one_time_take_different_ids() {
        // All follow the same id, so only the random bits tell them apart.
        let last = least() + (1 << 40);
        let ids: std::collections::BTreeSet<u64> = (0..512).map(|_| after(last).unwrap()).collect();
        assert!(ids.len() > 2, "{ids:?}");
    }
}
