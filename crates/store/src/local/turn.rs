//! Turns: locks that are handed on in order, and that a holder cannot keep for ever.
//!
//! A lock alone is not fair. The kernel wakes all waiters, and the process that just released the
//! lock asks again before any of them is awake. So there are two locks: the *door* and the *room*.
//! A process waits for the door, holds it while it waits for the room, and releases it once inside.
//! A process that leaves the room finds the door taken by the next.
//!
//! And a lock alone is not safe to wait for: its holder may be stopped, or its machine may hang. A
//! turn says until when it is meant to last, by the time of modification of its file. One that
//! lasts longer is *broken*: the file is unlinked, and later processes use a new one. The work of
//! the old holder goes on, because only the order depends on turns.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::durable::Directories;
use super::lock::{exclusive, is_still, open, unlocked};
use super::{File, blocking};
use crate::backend::Lock;
use crate::error::Result;

const OP: &str = "take a turn";
/// How long a turn lasts at least before it is broken, whatever it says.
const ROOM_PATIENCE: Duration = Duration::from_secs(1);
/// The next in line may wait that long for the room, and must not lose the door meanwhile.
const DOOR_PATIENCE: Duration = Duration::from_secs(2);
/// How long a turn lasts at most before it is broken, whatever it says: clocks are set, too.
const PATIENCE_MAX: Duration = Duration::from_secs(30);
/// How often a waiting process checks whether it waits in vain.
const TICK: Duration = Duration::from_millis(100);

/// Which of the two locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Door,
    Room,
}

/// A turn that is wanted.
#[derive(Debug)]
pub(super) struct TurnRequest {
    pub(super) door: File,
    pub(super) room: File,
    pub(super) directories: Arc<Directories>,
    /// How long the caller means to keep it.
    pub(super) hold: Duration,
}

impl TurnRequest {
    /// Waits for the turn.
    pub(super) async fn take(self) -> Result<Lock> {
        let wanted = Arc::new(self);
        let now = wanted.clone();
        let at_once = move || {
            let Some(door) = now.try_lock(Gate::Door)? else { return Ok((None, None)) };
            Ok((Some(door), now.try_lock(Gate::Room)?))
        };
        let (door, room) = blocking(OP, at_once).await?;
        let door = match door {
            Some(door) => door,
            None => wanted.wait(Gate::Door).await?,
        };
        let room = match room {
            Some(room) => room,
            None => wanted.wait(Gate::Room).await?,
        };
        drop(door);
        Ok(Lock::new(room))
    }

    fn file(&self, gate: Gate) -> &File {
        match gate {
            Gate::Door => &self.door,
            Gate::Room => &self.room,
        }
    }

    fn open(&self, gate: Gate) -> Result<fs::File> {
        open(self.file(gate), &self.directories)
    }

    fn try_lock(&self, gate: Gate) -> Result<Option<fs::File>> {
        let held = self.open(gate)?;
        match held.try_lock() {
            Ok(()) => self.granted(gate, held),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(unlocked(self.file(gate), error)),
        }
    }

    /// A granted lock is worth nothing if its file lost its name meanwhile.
    fn granted(&self, gate: Gate, held: fs::File) -> Result<Option<fs::File>> {
        let file = self.file(gate);
        if !is_still(file, &held).map_err(|error| unlocked(file, error))? {
            return Ok(None);
        }
        let hold = match gate {
            Gate::Room => self.hold,
            // The next in line may have to wait for as long as the turn before lasts.
            Gate::Door => {
                let room = fs::symlink_metadata(&self.room.path).ok();
                let left = room.map(|found| Seen::of(&found).left()).unwrap_or_default();
                left.min(PATIENCE_MAX) + DOOR_PATIENCE
            }
        };
        stamp(&held, hold);
        Ok(Some(held))
    }

    /// Waits for one of the two locks, and breaks it if it does not change hands.
    async fn wait(self: &Arc<Self>, gate: Gate) -> Result<fs::File> {
        loop {
            if let Some(held) = self.wait_for_this(gate).await? {
                return Ok(held);
            }
        }
    }

    /// Waits for the lock file that has the name now. `None` when that file loses the name.
    async fn wait_for_this(self: &Arc<Self>, gate: Gate) -> Result<Option<fs::File>> {
        let failed = |error| unlocked(self.file(gate), error);
        let wanted = self.clone();
        let opened = move || {
            let file = wanted.open(gate)?;
            let found = file.metadata().map_err(|error| unlocked(wanted.file(gate), error))?;
            Ok((file, Seen::of(&found)))
        };
        let (file, mut seen) = blocking(OP, opened).await?;
        let mut answer = in_a_thread(file).map_err(failed)?;
        let mut since = Instant::now();
        loop {
            if let Ok(answer) = timeout(TICK, &mut answer).await {
                let ended = |_| Err(io::Error::other("the thread that waits has ended"));
                let held = answer.unwrap_or_else(ended).map_err(failed)?;
                let wanted = self.clone();
                return blocking(OP, move || wanted.granted(gate, held)).await;
            }
            let wanted = self.clone();
            match blocking(OP, move || look(wanted.file(gate))).await? {
                Some(now) if now == seen => {}
                Some(now) if now.is_same_file(&seen) => (seen, since) = (now, Instant::now()),
                _ => return Ok(None),
            }
            let patience = match gate {
                Gate::Door => DOOR_PATIENCE,
                Gate::Room => ROOM_PATIENCE,
            };
            let waited = since.elapsed();
            if waited >= patience && (seen.left().is_zero() || waited >= PATIENCE_MAX) {
                let wanted = self.clone();
                blocking(OP, move || break_off(wanted.file(gate), &seen)).await?;
                return Ok(None);
            }
        }
    }
}

/// Says until when a turn is meant to last, which also shows that it has begun.
fn stamp(held: &fs::File, hold: Duration) {
    if held.set_modified(SystemTime::now() + hold).is_err() {
        // Only the owner may set a file's modification time; any writer may set it to «now».
        let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let now = Timestamps { last_access: now(), last_modification: now() };
        // Without it a turn looks older than it is and is broken too soon, which does no harm.
        futimens(held, &now).ok();
    }
}

/// The file that has the name of a lock.
fn look(file: &File) -> Result<Option<Seen>> {
    match fs::symlink_metadata(&file.path) {
        Ok(found) => Ok(Some(Seen::of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unlocked(file, error)),
    }
}

/// Takes the name away from a lock file, unless another file has it by now. A file that gets the
/// name between the look and the deletion loses it too: then two processes have a turn at once,
/// which does no harm.
fn break_off(file: &File, seen: &Seen) -> Result<()> {
    if !look(file)?.is_some_and(|now| now.is_same_file(seen)) {
        return Ok(());
    }
    match fs::remove_file(&file.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unlocked(file, error)),
        _ => Ok(()),
    }
}

/// Waits in a thread of its own: the kernel cannot be asked to stop waiting, a runtime waits for
/// the threads of its pool when it ends, and the pool has room for some hundreds only. If the lock
/// is no longer wanted when it is granted, it is released.
fn in_a_thread(wanted: fs::File) -> io::Result<oneshot::Receiver<io::Result<fs::File>>> {
    let (grant, granted) = oneshot::channel();
    let waiting = move || {
        let answer = exclusive(&wanted).map(|()| wanted);
        // An answer that is not wanted comes back, and the file is closed with it.
        drop(grant.send(answer));
    };
    std::thread::Builder::new().name("turn".into()).stack_size(128 << 10).spawn(waiting)?;
    Ok(granted)
}

/// What a lock file looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    device: u64,
    inode: u64,
    until: SystemTime,
}

impl Seen {
    fn of(found: &fs::Metadata) -> Self {
        let until = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { device: found.dev(), inode: found.ino(), until }
    }

    /// For how long it is still meant to be held.
    fn left(&self) -> Duration {
        self.until.duration_since(SystemTime::now()).unwrap_or_default()
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}
