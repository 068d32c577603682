//! One module per capability.

mod blz;
mod collision;
mod container;
mod container_damage;
mod convert;
mod convert_failures;
mod convert_kill;
mod convert_memory;
mod convert_refusals;
mod damage;
mod demo;
mod describe;
mod exhaustion;
mod formats;
mod help;
mod link;
mod maintain;
mod references;
mod regions;
mod round_trip;
mod s3;
mod sparse;
mod support;
mod transactions;
mod values;
