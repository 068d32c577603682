//! Against a real DVID, against a naive model, by several writers, through deaths.

mod collisions;
mod crash;
mod dvid;
mod dvid_diff;
mod dvid_history;
mod edits;
mod hostile;
mod naive;
mod odd;
mod several_writers;
mod stateful;
mod support;
