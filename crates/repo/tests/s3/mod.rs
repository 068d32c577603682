//! The engine against a real S3 server, and through a network that loses things.
//!
//! All of it needs the server that `make test-s3` starts, so all of it is ignored otherwise. That
//! target also runs the tests of `repo` and `store` in the server's bucket.

mod committers;
mod compare_and_swap;
mod faults;
mod proxy;
mod requests;

use chunkyard_store::{Options, Store};

use chunkyard_test_support::bucket;

/// An unused place in the bucket.
fn fresh_url() -> String {
    bucket::fresh_url().expect("CHUNKYARD_TEST_S3 names no bucket; run `make test-s3`")
}

fn open(url: &str, values: &[(&str, &str)]) -> Store {
    let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Store::open(url, &Options { values: values.collect(), ..Options::default() }).unwrap()
}
