//! What the tests of several crates share: stores to work in, a bucket, deaths, noise, a web server.
#![expect(clippy::unwrap_used, reason = "a test that can't have its place has failed")]

pub mod bucket;
mod cases;
pub mod dvid;
mod dvid_stores;
mod hashes;
mod places;
pub mod web;

use chunkyard_store::fault::{Mode, Unsynced};

pub use self::cases::cases;
pub use self::dvid_stores::{DVID_STORES, dvid_store, dvid_testdata, unpack_store};
pub use self::hashes::{hash_of_bytes, hash_of_voxels};
pub use self::places::{
    AllPlaces, Place, Scratch, create_only, directory, duplicate, memory, repetitions, scratch,
    tick,
};

/// Every way to die, with everything that it may lose.
pub fn deaths() -> Vec<(Mode, Unsynced)> {
    let modes = [Mode::Die, Mode::DieAfter, Mode::Tear];
    let losses = [Unsynced::Kept, Unsynced::Reverted, Unsynced::Emptied];
    modes.into_iter().flat_map(|mode| losses.map(|loss| (mode, loss))).collect()
}

/// Bytes that no codec makes smaller, the same for the same seed.
pub fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(step).collect()
}
