//! Calls into code that panics on hostile bytes.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is expected and becomes an error.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call in which a panic is not our bug: the panic becomes its text, and nothing is
/// printed. The data that the call works on must not be used after a panic.
///
/// A panic reaches the process's hook before it can be caught, and the usual hook prints it. So the
/// first call installs a hook that keeps such panics from the existing one.
pub fn quietly<T>(call: impl FnOnce() -> T) -> Result<T, Option<String>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                usual(info);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(call));
    EXPECTED.set(before);
    caught.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_panic_becomes_its_text_and_what_comes_after_is_not_silenced() {
        assert_eq!(quietly(|| 1), Ok(1));
        let text =
            quietly(|| quietly(|| panic!("inner {}", 1)).map_or_else(|text| text, |()| None));
        assert_eq!(text, Ok(Some("inner 1".to_owned())));
        assert_eq!(quietly(|| panic!("outer")), Err::<(), _>(Some("outer".to_owned())));
        assert!(!EXPECTED.get());
        assert!(catch_unwind(|| EXPECTED.get()).is_ok_and(|expected| !expected));
    }
}
