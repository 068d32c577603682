//! When and how a store goes wrong.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

/// How an operation goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It has no effect; it and everything after it fails: the process is killed before.
    Die,
    /// It takes effect; it and everything after it fails: the process is killed just after.
    DieAfter,
    /// It is half done, then everything fails: a put, write or patch writes a prefix, a sync or
    /// delete reaches half of its paths. An atomic operation does not happen at all.
    Tear,
    /// It takes effect and fails; what comes after works: the reply got lost.
    LoseReply,
    /// It fails without effect; what comes after works.
    FailOnce,
    /// It and this many writes after it time out, without effect so far; reads work. Just before
    /// the next write it takes effect after all, if it is a put, create, replace or link.
    Late(usize),
    /// It and everything like it fails without effect, until [`Fault::relent`] is called.
    ///
    /// [`Fault::relent`]: super::Fault::relent
    Refuse(Refusal),
    /// It takes longer.
    Stall(Duration),
    /// It waits until [`Fault::wake`] is called, before it takes effect.
    ///
    /// [`Fault::wake`]: super::Fault::wake
    Sleep,
    /// It takes effect, and waits until [`Fault::wake`] is called before it says so.
    ///
    /// [`Fault::wake`]: super::Fault::wake
    SleepAfter,
    /// The same, and then the reply is lost.
    SleepAndLose,
}

/// Why a machine says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The disk is full. Reading and deleting still work.
    NoSpace,
    /// The file system was mounted read-only, as it is after an error of the disk.
    ReadOnly,
    /// Writing is not permitted.
    Denied,
    /// Nothing can be opened. Operations that need no descriptor work.
    TooManyFiles,
}

impl Refusal {
    /// Whether an operation works all the same.
    pub(super) fn spares(self, op: &str, path: &str) -> bool {
        let reads = matches!(op, "get" | "get_ranges" | "head" | "list" | "list_dir");
        // To sync or delete no files needs nothing of the system.
        if path.is_empty() && matches!(op, "sync" | "delete") {
            return true;
        }
        match self {
            Self::NoSpace => reads || matches!(op, "delete" | "delete_dir" | "truncate"),
            Self::ReadOnly | Self::Denied => reads,
            Self::TooManyFiles => {
                matches!(
                    op,
                    "delete"
                        | "link"
                        | "rename"
                        | "exchange"
                        | "head"
                        | "write"
                        | "patch"
                        | "finish"
                )
            }
        }
    }

    /// What the system says.
    pub(super) fn error(self) -> io::Error {
        let errno = match self {
            Self::NoSpace => Errno::NOSPC,
            Self::ReadOnly => Errno::ROFS,
            Self::Denied => Errno::ACCESS,
            Self::TooManyFiles => Errno::MFILE,
        };
        errno.into()
    }
}

/// What happens to unsynced writes at death. Any of these can happen when the power fails, and a
/// correct program survives all of them. Only file systems have this state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unsynced {
    /// Nothing: the process dies and the machine lives on.
    #[default]
    Kept,
    /// Names that are not durable go back to what they were, and so do files that were changed in
    /// place.
    Reverted,
    /// Names and sizes reach the disk before contents: new files are there and empty, files that
    /// grew in place end with zeros, and what was written over the rest is not there.
    Emptied,
    /// Names go back. Of the changes of a file in place, any part has reached the disk, in any
    /// order: each write has two halves and each truncation is one piece, counted in order; a piece
    /// is on the disk if its bit is set (the 64th uses the first bit again). A test that tries all
    /// numbers below 2^pieces sees every case.
    Mixed(u64),
}

/// When and how a store goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The operation that goes wrong, counted from 0.
    pub at: usize,
    /// How it does.
    pub mode: Mode,
    /// Whether reads are counted like writes, and go wrong too.
    pub count_reads: bool,
    /// What a death does to unsynced data.
    pub unsynced: Unsynced,
}

impl Plan {
    /// Goes wrong at the `at`-th operation that changes something: put, begin and each write, patch
    /// and finish of an upload, write_at, truncate, sync, create, replace, delete, delete_dir,
    /// link, rename, exchange, lock, turn, sync_dir.
    pub fn new(at: usize, mode: Mode) -> Self {
        Self { at, mode, count_reads: false, unsynced: Unsynced::Kept }
    }

    /// Never goes wrong, only counts.
    pub fn never() -> Self {
        Self::new(usize::MAX, Mode::Die)
    }

    /// Counts reads too.
    pub fn with_reads(self) -> Self {
        Self { count_reads: true, ..self }
    }

    /// Makes a death a power cut, which loses unsynced data.
    pub fn with_power_cut(self, unsynced: Unsynced) -> Self {
        Self { unsynced, ..self }
    }
}
