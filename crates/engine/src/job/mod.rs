//! Work that many processes share: a directory on any store, and nothing else between them.
//!
//! ```text
//!  JOB/job.json                 kind and specification of the work, number of tasks; created once, last
//!  JOB/tasks/ID, ID.ends        the tasks, one after the other, and where each ends
//!  JOB/steps/TASK.N             what became of a task, step by step: each object is created once
//!  JOB/again/TASK.N             put before a step N > 0 that may be something else than the end
//!  JOB/workers/ID.json          a worker: where it runs, and a count that grows while it lives
//! ```
//!
//! The steps of a task are a chain. Step 0 is a claim. The step after a claim is its end (`done`, with a result), a
//! failure, or the claim of another worker that takes over; the step after a failure is a claim; after `done` there is
//! none. A step is created if it is absent, by [`store::atomic`](crate::store::atomic), so of several workers one
//! succeeds. The number of a claim is its *epoch*: only the worker that holds epoch `n` wants to create `done` as step
//! `n + 1`, and if another one has taken over by then, that step is taken and the late worker is refused.
//!
//! No clock takes part in this. A lease only says when taking over is worth a try: a worker is given up when its count
//! has stood still for the time of a lease, measured by the observer alone, or when its process is known to be gone.
//! A wrong guess costs work done twice, of which one half is refused.
//!
//! The last task is the [end](Work::finish): it can be claimed when all others are done, by the same rules. The
//! argument is in `docs/design/017-jobs.md`.

mod board;
mod conversion;
mod document;
mod entry;
mod export;
mod identity;
mod lease;
mod run;
mod status;
mod steps;
mod tasks;
mod worker;

#[cfg(test)]
mod tests;

pub use self::conversion::{CONVERT, ConversionJob, ConversionWork};
pub use self::document::{Job, Planned};
pub use self::export::{EXPORT, ExportJob, ExportWork};
pub use self::run::{Summary, Work, WorkerOptions, run};
pub use self::status::{Open, OpenTask, Status, WorkerStatus};
pub use self::worker::{Claim, Next, Worker};
