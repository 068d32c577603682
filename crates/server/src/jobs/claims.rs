//! Which worker holds which task, as far as this server has handed it out. Nothing here waits or writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chunkyard_engine::job::Claim;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::document::{Marker, Task, Unit};

/// The time over which a rate is taken.
const RATE: Duration = Duration::from_secs(60);
/// Workers that are remembered at most.
const WORKERS_MAX: usize = 4096;

/// Why a stream ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The worker has asked for the same claim again.
    Replaced,
    /// The claim is no longer the worker's.
    Lost,
    /// The job was cancelled.
    Cancelled,
}

/// The tasks of a job that this server holds.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: BTreeMap<u64, Held>,
    /// Tasks whose worker never heard of them.
    returned: Vec<(Claim, Arc<Task>, Instant)>,
    workers: HashMap<String, Known>,
    acked: Vec<(Instant, u64)>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) last_error: Option<String>,
}

/// A task that a worker holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) epoch: u32,
    pub(crate) worker: String,
    pub(crate) task: Arc<Task>,
    seen: Instant,
    /// Units that were sent to their end, by the stream that is open or was last.
    sent: Vec<Marker>,
    pub(crate) sent_bytes: Arc<AtomicU64>,
    streams: u64,
    end: Option<watch::Sender<Option<End>>>,
    /// Locked while the claim is acknowledged or given back: until it is known how that ended, nothing else may be done about it.
    gate: Arc<Mutex<()>>,
}

/// A claim that has expired.
#[derive(Debug)]
pub(crate) struct Expired {
    pub(crate) claim: Claim,
    /// Its worker, unless that one never heard of it.
    pub(crate) worker: Option<String>,
    pub(crate) task: Arc<Task>,
    _gate: Option<OwnedMutexGuard<()>>,
}

/// A worker as this server knows it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) acked: u64,
    pub(crate) seen: Instant,
    pub(crate) seen_ms: i64,
}

/// A stream of a claim that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) task: Arc<Task>,
    /// The number of the stream among those of the claim.
    pub(crate) number: u64,
    pub(crate) end: watch::Receiver<Option<End>>,
    pub(crate) sent_bytes: Arc<AtomicU64>,
}

/// What an ack says, against what was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The same.
    Equal,
    /// Something else; the words are for the worker.
    Differs(String),
}

impl Claims {
    /// Notes a task that is the worker's from now on.
    pub(crate) fn hold(&mut self, claim: &Claim, task: Arc<Task>, worker: &str, now: Instant) {
        let held = Held {
            epoch: claim.epoch,
            worker: worker.to_owned(),
            task,
            seen: now,
            sent: Vec::new(),
            sent_bytes: Arc::default(),
            streams: 0,
            end: None,
            gate: Arc::default(),
        };
        self.held.insert(claim.task, held);
    }

    /// A worker is alive.
    pub(crate) fn greet(&mut self, worker: &str, now: Instant, now_ms: i64) {
        if !self.workers.contains_key(worker) && self.workers.len() >= WORKERS_MAX {
            let oldest = self.workers.iter().min_by_key(|(_, known)| known.seen);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.workers.remove(&oldest);
            }
        }
        let known = self.workers.entry(worker.to_owned());
        let known = known.or_insert(Known { acked: 0, seen: now, seen_ms: now_ms });
        (known.seen, known.seen_ms) = (now, now_ms);
    }

    /// The claim of a worker, which has just shown that it lives.
    pub(crate) fn get(
        &mut self,
        worker: &str,
        task: u64,
        epoch: u32,
        now: Instant,
    ) -> Option<&mut Held> {
        let held = self.held.get_mut(&task)?;
        let own = held.epoch == epoch && held.worker == worker;
        held.seen = if own { now } else { held.seen };
        own.then_some(held)
    }

    /// Begins a stream, and ends the one that the claim had.
    pub(crate) fn begin(&mut self, worker: &str, task: u64, epoch: u32) -> Option<Begun> {
        let held = self.get(worker, task, epoch, Instant::now())?;
        held.stop(End::Replaced);
        held.sent.clear();
        held.streams += 1;
        let (sender, end) = watch::channel(None);
        held.end = Some(sender);
        let (task, sent_bytes) = (held.task.clone(), held.sent_bytes.clone());
        Some(Begun { task, number: held.streams, end, sent_bytes })
    }

    /// Notes a unit that a stream has sent to its end.
    pub(crate) fn sent(&mut self, task: u64, epoch: u32, stream: u64, marker: Marker) {
        if let Some(held) = self.held.get_mut(&task)
            && (held.epoch, held.streams) == (epoch, stream)
        {
            held.sent.push(marker);
        }
    }

    /// Takes a task out: it is no longer a worker's. Its stream ends.
    pub(crate) fn take(&mut self, task: u64, epoch: u32, why: End) -> Option<Held> {
        if self.held.get(&task)?.epoch != epoch {
            return None;
        }
        let mut held = self.held.remove(&task)?;
        held.stop(why);
        Some(held)
    }

    /// What must be locked while a claim is acknowledged or given back.
    pub(crate) fn gate(&self, task: u64, epoch: u32) -> Option<Arc<Mutex<()>>> {
        self.held.get(&task).filter(|held| held.epoch == epoch).map(|held| held.gate.clone())
    }

    /// Takes all tasks out.
    pub(crate) fn clear(&mut self, why: End) {
        self.returned.clear();
        for held in self.held.values_mut() {
            held.stop(why);
        }
        self.held.clear();
    }

    /// Keeps a task whose worker never heard of it, for the next one that asks.
    pub(crate) fn give_back(&mut self, task: u64, epoch: u32, now: Instant) {
        if let Some(held) = self.take(task, epoch, End::Lost) {
            self.returned.push((Claim { task, epoch }, held.task, now));
        }
    }

    /// A task that was given back so.
    pub(crate) fn returned(&mut self) -> Option<(Claim, Arc<Task>)> {
        self.returned.pop().map(|(claim, task, _)| (claim, task))
    }

    /// The claims whose workers have shown no sign of life since a time. Those of workers stay until they are given up, but nothing
    /// else can be done with them meanwhile.
    pub(crate) fn expire(&mut self, before: Instant) -> Vec<Expired> {
        let mut gone = Vec::new();
        for (&task, held) in &mut self.held {
            if held.seen >= before {
                continue;
            }
            // One that is just being acknowledged has shown a sign of life.
            let Ok(gate) = held.gate.clone().try_lock_owned() else { continue };
            held.stop(End::Lost);
            gone.push(Expired {
                claim: Claim { task, epoch: held.epoch },
                worker: Some(held.worker.clone()),
                task: held.task.clone(),
                _gate: Some(gate),
            });
        }
        for (claim, task, since) in std::mem::take(&mut self.returned) {
            match since < before {
                true => gone.push(Expired { claim, worker: None, task, _gate: None }),
                false => self.returned.push((claim, task, since)),
            }
        }
        gone
    }

    /// An expired claim that could not be given up stays for the next attempt.
    pub(crate) fn keep(&mut self, expired: Expired, now: Instant) {
        if expired.worker.is_none() {
            self.returned.push((expired.claim, expired.task, now));
        }
    }

    /// Counts what a worker has acknowledged.
    pub(crate) fn count(&mut self, worker: &str, shards: &[Marker], now: Instant) {
        let bytes = shards.iter().map(Marker::bytes).sum::<u64>();
        self.rows += shards.iter().map(Marker::rows).sum::<u64>();
        self.bytes += bytes;
        self.acked.retain(|(at, _)| now.saturating_duration_since(*at) <= RATE);
        self.acked.push((now, bytes));
        if let Some(known) = self.workers.get_mut(worker) {
            known.acked += shards.len() as u64;
        }
    }

    /// Bytes acknowledged per second, over the last minute.
    pub(crate) fn rate(&self, now: Instant) -> f64 {
        let recent = self.acked.iter().filter(|(at, _)| now.saturating_duration_since(*at) <= RATE);
        recent.map(|(_, bytes)| *bytes as f64).sum::<f64>() / RATE.as_secs_f64()
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.held.iter().map(|(task, held)| (*task, held))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.returned.is_empty()
    }

    /// Workers and their claims, by name.
    pub(crate) fn workers(&self) -> Vec<(String, Known, u64)> {
        let claims = |name: &str| self.held.values().filter(|held| held.worker == name).count();
        let all = self.workers.iter();
        let mut all: Vec<_> =
            all.map(|(name, known)| (name.clone(), known.clone(), claims(name) as u64)).collect();
        all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        all
    }
}

impl Held {
    fn stop(&mut self, why: End) {
        if let Some(end) = self.end.take() {
            end.send_replace(Some(why));
        }
    }

    /// How long the claim lasts without another sign of life.
    pub(crate) fn left(&self, lease: Duration, now: Instant) -> Duration {
        lease.saturating_sub(now.saturating_duration_since(self.seen))
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Compares what a worker acknowledges with what was sent.
    pub(crate) fn compare(&self, acked: &[Marker]) -> Compared {
        let units = self.task.units();
        if acked.len() != units.len() {
            return Compared::Differs(format!(
                "all {} of the task are acknowledged together, not {}",
                units.len(),
                acked.len()
            ));
        }
        for unit in units {
            let is_of = |marker: &&Marker| marker.unit() == unit;
            let name = name(&unit);
            let Some(acked) = acked.iter().find(is_of) else {
                return Compared::Differs(format!("{name} of the task is not acknowledged"));
            };
            let Some(sent) = self.sent.iter().find(is_of) else {
                return Compared::Differs(format!("{name} was not sent to its end"));
            };
            if sent != acked {
                return Compared::Differs(format!("{name}: sent {sent:?}, acknowledged {acked:?}"));
            }
        }
        Compared::Equal
    }
}

fn name(unit: &Unit) -> String {
    match unit {
        Unit::Blocks { scale, shard } => format!("shard {shard} of scale {scale}"),
        Unit::Index { part } => format!("part {part} of the index"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::document::IndexPart;

    fn task(part: u64) -> Arc<Task> {
        Arc::new(Task::Index(IndexPart { part, first: 1, last: 9, weight: 3 }))
    }

    fn marker(part: u64, crc32c: u32) -> Marker {
        Marker::Index { part, rows: 3, bytes: 60, crc32c }
    }

    #[test]
    fn only_the_holder_of_the_claim_may_do_anything_with_it() {
        let (mut claims, now) = (Claims::default(), Instant::now());
        claims.hold(&Claim { task: 7, epoch: 2 }, task(1), "a", now);
        assert!(claims.get("a", 7, 2, now).is_some());
        for (worker, task, epoch) in [("b", 7, 2), ("a", 7, 1), ("a", 7, 3), ("a", 8, 2)] {
            assert!(claims.get(worker, task, epoch, now).is_none());
            assert!(claims.begin(worker, task, epoch).is_none());
        }
    }

    #[test]
    fn an_ack_is_compared_with_what_the_last_stream_sent() {
        let (mut claims, now) = (Claims::default(), Instant::now());
        claims.hold(&Claim { task: 7, epoch: 0 }, task(1), "a", now);
        let differs = |claims: &mut Claims, acked: &[Marker]| {
            claims.get("a", 7, 0, now).unwrap().compare(acked) != Compared::Equal
        };
        assert!(differs(&mut claims, &[marker(1, 5)]), "nothing was sent");
        let first = claims.begin("a", 7, 0).unwrap();
        claims.sent(7, 0, first.number, marker(1, 5));
        assert!(!differs(&mut claims, &[marker(1, 5)]));
        assert!(differs(&mut claims, &[marker(1, 6)]));
        assert!(differs(&mut claims, &[marker(2, 5)]));
        assert!(differs(&mut claims, &[]));
        assert!(differs(&mut claims, &[marker(1, 5), marker(1, 5)]));
        let second = claims.begin("a", 7, 0).unwrap();
        assert_eq!(*first.end.borrow(), Some(End::Replaced));
        claims.sent(7, 0, first.number, marker(1, 5));
        assert!(differs(&mut claims, &[marker(1, 5)]), "the second stream has sent nothing yet");
        claims.sent(7, 0, second.number, marker(1, 5));
        assert!(!differs(&mut claims, &[marker(1, 5)]));
    }

    #[test]
    fn a_claim_without_a_sign_of_life_expires_once() {
        let (mut claims, now) = (Claims::default(), Instant::now());
        let lease = Duration::from_secs(60);
        claims.hold(&Claim { task: 1, epoch: 0 }, task(1), "a", now);
        claims.hold(&Claim { task: 2, epoch: 0 }, task(2), "b", now);
        claims.hold(&Claim { task: 3, epoch: 0 }, task(3), "c", now);
        let stream = claims.begin("a", 1, 0).unwrap();
        claims.give_back(3, 0, now);
        let later = now + lease * 2;
        claims.get("b", 2, 0, later).unwrap();
        let gone = claims.expire(later - lease);
        let tasks: Vec<u64> = gone.iter().map(|expired| expired.claim.task).collect();
        assert_eq!(tasks, [1, 3]);
        assert_eq!(*stream.end.borrow(), Some(End::Lost));
        assert!(claims.gate(1, 0).unwrap().try_lock().is_err(), "an ack has to wait");
        assert!(claims.expire(later - lease).is_empty());
        assert!(claims.returned().is_none());
        for expired in gone {
            claims.keep(expired, later);
        }
        assert!(claims.returned().is_some());
    }
}
