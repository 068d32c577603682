//! The inputs kept in `fuzz/seeds` and `fuzz/regressions`.

mod make;
mod run;
