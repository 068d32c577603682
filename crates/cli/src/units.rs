//! Sizes, times and durations as people read and type them.
//!
//! Times are UTC on the way out, and on the way in unless they carry an offset: what the log of one
//! machine shows means the same on another.

use std::time::Duration;

use anyhow::Result;
use chunkyard_engine::Error;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// `1.5 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= 1023.95 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// A number of bytes such as `512MiB`, `2G` or `1000000`. Units are powers of 1024, as memory is
/// counted; `kB`, `MB`, `GB` and `TB` are powers of 1000.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match text.get(digits.len()..).unwrap_or_default().trim() {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err("expected a number and a unit, such as 512MiB or 2G".into()),
    };
    let number: u64 = digits.parse().map_err(|_| format!("'{digits}' is no whole number"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too much"))
}

/// `1 chunk`, `2 chunks`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

/// `2026-01-31 12:00:05.123Z`: complete, so that it can be copied to `--as-of`.
pub(crate) fn time(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S.%3fZ").to_string(),
        Err(_) => format!("{ms} ms since 1970"),
    }
}

/// The current time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A time: RFC 3339, a date and time or a date alone (UTC), or milliseconds since 1970.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(ms) = text.parse::<i64>() {
        return Ok(ms);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(DateTime::from));
    civil
        .and_then(|civil| civil.to_zoned(TimeZone::UTC))
        .map(|zoned| zoned.timestamp().as_millisecond())
        .map_err(|_| {
            "expected a time such as 2026-01-31T12:00:00Z, \"2026-01-31 12:00\" (UTC), 2026-01-31, \
             or milliseconds since 1970"
                .into()
        })
}

/// A duration such as `90s`, `24h` or `30d`, in milliseconds.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match text.get(digits.len()..).unwrap_or_default().trim() {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        _ => return Err("expected a number and a unit (ms, s, m, h, d, w), such as 24h".into()),
    };
    let number: u32 = digits.parse().map_err(|_| format!("'{digits}' is no sensible number"))?;
    i64::from(number).checked_mul(factor).ok_or_else(|| format!("'{text}' is too long"))
}

/// An age (`30d`) or a time, as a time.
pub(crate) fn parse_limit(text: &str) -> Result<i64, String> {
    match parse_duration(text) {
        Ok(age) => Ok(now_ms().saturating_sub(age)),
        Err(_) => parse_time(text).map_err(|why| format!("expected an age such as 30d; or {why}")),
    }
}

/// `KEY=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

/// `100,100`.
pub(crate) fn parse_shape(text: &str) -> Result<Vec<u64>> {
    let extents = text.split(',').map(|part| part.trim().parse::<u64>().ok()).collect();
    let extents: Option<Vec<u64>> = extents;
    Ok(extents.ok_or_else(|| {
        Error::invalid(format!("'{text}' is no shape; expected numbers such as 100,100"))
    })?)
}

/// `0.5 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn lasting(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..100 => format!("{seconds} s"),
        100..6000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `100 × 200`, as shapes are printed.
pub(crate) fn shape(extents: &[u64]) -> String {
    match extents {
        [] => "scalar".into(),
        extents => extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × "),
    }
}

/// The first characters of an id, enough to be unambiguous in practice and easy to copy.
pub(crate) fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_never_four_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("512MiB", 512 << 20),
            ("2G", 2 << 30),
            (" 3 kB ", 3000),
            ("1GB", 1_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "MiB", "-1", "1.5G", "1 parsec", "99999999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_duration_is_printed_in_fitting_units() {
        let lasting = |ms| lasting(Duration::from_millis(ms));
        assert_eq!(lasting(60), "0.1 s");
        assert_eq!(lasting(59_900), "59 s");
        assert_eq!(lasting(200_000), "3 min 20 s");
        assert_eq!(lasting(7_500_000), "2 h 5 min");
    }

    #[test]
    fn a_printed_time_is_read_back_exactly() {
        for ms in [0, 1, 1_769_860_805_123, -1] {
            assert_eq!(parse_time(&time(ms)), Ok(ms), "{}", time(ms));
        }
    }

    #[test]
    fn times_are_accepted_in_four_forms() {
        let noon = 1_769_860_800_000;
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31 12:00",
            "2026-01-31T13:00:00+01:00",
            "1769860800000",
        ] {
            assert_eq!(parse_time(text), Ok(noon), "{text}");
        }
        assert_eq!(parse_time("2026-01-31"), Ok(noon - 12 * 3_600_000));
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("24h"), Ok(86_400_000));
        assert_eq!(parse_duration("2 w"), Ok(14 * 86_400_000));
        for bad in ["", "24", "h", "-1d", "1y", "99999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shapes_and_pairs_are_checked() {
        assert_eq!(parse_shape("100, 20").unwrap(), [100, 20]);
        assert!(parse_shape("100,,2").is_err() && parse_shape("-1").is_err());
        assert_eq!(parse_pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(parse_pair("=b").is_err() && parse_pair("a").is_err());
    }
}
