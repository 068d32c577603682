//! The server: everything that Chunkyard opens, over HTTP and Arrow Flight.
//!
//! ```text
//!             ┌─ http    router, errors, limits, logs, metrics ─┬─ views  /data/NAME[@REF]/zarr, /precomputed
//!  listeners ─┤          access: tokens and roles               ├─ dvid   /api/node/UUID/DATA/…
//!             │                                                 └─ jobs   /jobs, POST …/export
//!             └─ flight  start, claim, get, ack, put ───────────── jobs
//!                              │
//!                           places ──▶ engine                      names, what they stand for, opened versions
//! ```
//!
//! - A [`Config`] says what is served, to whom, and how much of the machine it may take.
//! - [`places`] turns a name and a version into something opened. Nothing outside of the configured places is ever read.
//! - Handlers translate; the engine works. [`State`] is what they share, a cheap clone.
//! - [`serve`] runs until it is told to stop, then lets requests under way end.

#![forbid(unsafe_code)]

pub mod access;
pub mod config;
mod dvid;
pub mod error;
mod flight;
mod http;
mod jobs;
pub mod metrics;
mod net;
pub mod places;
mod serve;
mod state;
mod views;

pub use config::Config;
pub use serve::{Listeners, serve};
pub use state::State;
