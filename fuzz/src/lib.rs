//! From libFuzzer to the checks of `chunkyard-hostile`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// What the last panic said. Most are the Parquet or codec library's, and are caught where they are
/// called: only one that arrives here is a finding.
static SAID: Mutex<String> = Mutex::new(String::new());

/// Runs a target; a broken promise aborts the process, which is how libFuzzer learns of it.
pub fn run(name: &str, data: &[u8]) {
    static HOOK: Once = Once::new();
    // libFuzzer's own hook aborts at every panic, caught or not.
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let trace = std::backtrace::Backtrace::capture();
            let said = format!("{info}\n{trace}");
            *SAID.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }));
    });
    let Some(target) = chunkyard_hostile::find(name) else {
        eprintln!("there is no target {name}");
        std::process::abort();
    };
    if catch_unwind(AssertUnwindSafe(|| (target.check)(data))).is_err() {
        eprintln!("{}", SAID.lock().unwrap_or_else(PoisonError::into_inner));
        std::process::abort();
    }
}
