//! Where the tests' object stores are: in memory, or in a bucket of a real server.
//!
//! `CHUNKYARD_TEST_S3` names the bucket; the server and its credentials are in the variables that
//! every S3 client reads (`AWS_*`). Each test takes a fresh prefix. `make test-s3` sets all this for a
//! server of its own.
//!
//! These tests do not use the bucket even if there is one, because they test something else:
//!
//! - tests of a directory (`Place::Local`, `directory()`): links, torn and unsynced files, files
//!   touched behind the store's back, golden files; the long ones are left out altogether;
//! - `repo::stress::killed_processes_lose_nothing`, where processes share a disk; `s3::committers` has
//!   processes that share a bucket;
//! - `repo::virtual_chunks`, as to the files pointed into: they are local, the repository is not;
//! - `store::web`, which has a server of its own.
//!
//! Tests that repeat something many times do it less often, see `repo::support::repetitions`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The bucket's name, if the tests are to use one.
pub fn name() -> Option<String> {
    std::env::var("CHUNKYARD_TEST_S3").ok().filter(|name| !name.is_empty())
}

/// An unused place in the bucket.
pub fn fresh_url() -> Option<String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    Some(format!("s3://{}/{}-{now}-{number}", name()?, std::process::id()))
}
