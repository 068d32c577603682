//! How many cases a property test draws.

use proptest::test_runner::Config;

/// `default` cases, or as many as `PROPTEST_CASES` asks for.
pub fn cases(default: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    Config { cases: asked.unwrap_or(default), max_shrink_iters: 4000, ..Config::default() }
}
