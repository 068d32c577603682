//! The memory of an export, counted before it is used.
//!
//! A shard waits until there is room for what it has in hand at most; while it is written it asks for no more, except to keep
//! fetched chunks for a second sink, and it goes on without these where there is no room.

use std::sync::Arc;

use chunkyard_store::{Error, Limits, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const UNIT: u64 = 1 << 20;
/// What a block costs until its shard is complete: its rows in the indices, the footer and the minishard, and in what these
/// become.
const ROW_BYTES: u64 = 192;

/// Memory for shards under way.
#[derive(Debug)]
pub(super) struct Budget {
    /// In units of [`UNIT`].
    room: Arc<Semaphore>,
    units: u32,
    limit_bytes: u64,
    shards: u64,
}

/// A part of the budget, until it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        let limit_bytes = limits.bytes_in_flight as u64;
        // The rest is for pools, caches and the program itself.
        let units = u32::try_from(limit_bytes / UNIT * 3 / 4).unwrap_or(u32::MAX).max(1);
        let shards = limits.packs_in_flight.max(1) as u64;
        Self { room: Arc::new(Semaphore::new(units as usize)), units, limit_bytes, shards }
    }

    /// All of it.
    pub(super) fn room_bytes(&self) -> u64 {
        u64::from(self.units).saturating_mul(UNIT)
    }

    /// What a shard may keep besides.
    pub(super) fn share_bytes(&self) -> u64 {
        self.room_bytes() / (self.shards + 1)
    }

    /// Waits until there is room for a shard that has `working` bytes in hand, and about so many blocks. Without room for
    /// the bytes at any time it is [`Error::Invalid`].
    pub(super) async fn take(&self, working: u64, blocks: u64) -> Result<Taken> {
        if working > self.room_bytes() {
            return Err(Error::invalid(format!(
                "blocks and what they are made from take {} MiB at once, which does not fit the limit of {} MiB; raise \
                 it with --memory",
                working.div_ceil(UNIT),
                self.limit_bytes / UNIT
            )));
        }
        let needed = working.saturating_add(blocks.saturating_mul(ROW_BYTES));
        let units = u32::try_from(needed.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let permit = self.room.clone().acquire_many_owned(units.clamp(1, self.units)).await;
        let permit = permit.map_err(|closed| Error::store("reserve", "memory", closed))?;
        Ok(Taken { _permit: permit })
    }

    /// Takes room that is free now.
    pub(super) fn try_take(&self, bytes: u64) -> Option<Taken> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let permit = self.room.clone().try_acquire_many_owned(units).ok()?;
        Some(Taken { _permit: permit })
    }

    /// Refuses a shard with more blocks than its indices may have.
    pub(super) fn check_blocks(&self, blocks: u64) -> Result<()> {
        let most = self.room_bytes() / ROW_BYTES;
        if blocks <= most {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "a shard of more than {most} blocks, whose indices do not fit the limit of {} MiB; raise shard_bits in the \
             specification, or the limit with --memory",
            self.limit_bytes / UNIT
        )))
    }
}

#[cfg(test)]
mod tests {
    use chunkyard_store::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn shards_wait_for_room_and_what_never_fits_is_refused() {
        let limits = Limits { bytes_in_flight: 64 << 20, packs_in_flight: 2, ..Limits::default() };
        let budget = Budget::new(&limits);
        assert_eq!((budget.room_bytes() >> 20, budget.share_bytes() >> 20), (48, 16));
        let first = budget.take(40 << 20, 0).await.unwrap();
        assert!(budget.try_take(9 << 20).is_none());
        let kept = budget.try_take(8 << 20).unwrap();
        let second = budget.take(1 << 20, 0);
        let mut second = std::pin::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        drop(kept);
        second.await.unwrap();
        drop(first);
        assert_eq!(budget.take(49 << 20, 0).await.unwrap_err().kind(), ErrorKind::Invalid);
        // More rows than fit may turn out to be fewer blocks: such a shard is written alone.
        budget.take(1 << 20, u64::MAX).await.unwrap();
        budget.check_blocks(1000).unwrap();
        assert_eq!(budget.check_blocks(1 << 30).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
