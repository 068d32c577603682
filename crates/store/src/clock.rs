//! Wall clock, in milliseconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time as people write it, complete, so that it can be given back: `2026-01-31 12:00:05.123Z`.
pub fn text(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S.%3fZ").to_string(),
        Err(_) => format!("{ms} ms since 1970"),
    }
}

/// Now.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
