//! The rows and columns that a command selects.

use chunkyard_engine::format::superchunk::{Blz, Column, names};
use chunkyard_engine::{Error, Noun, Result};

/// Rows from `start`, every `step`-th, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) step: u64,
    pub(super) count: u64,
}

impl Span {
    /// `10:20:2`, `-5:`, `7`, as in Python, of this many rows; steps forward only.
    pub(super) fn parse(text: &str, len: u64) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "{text:?} selects no rows; expected start:end or start:end:step, such as 10:20 or -5:"
            ))
        };
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let number = |part: &str| match part {
            "" => Ok(None),
            part => part.parse::<i64>().map(Some).map_err(|_| wrong()),
        };
        let (start, end, step) = match parts.as_slice() {
            [row] => {
                let row = number(row)?.ok_or_else(wrong)?;
                let at =
                    if row < 0 { len.checked_sub(row.unsigned_abs()) } else { Some(row as u64) };
                let at = at.filter(|at| *at < len);
                let start = at.ok_or_else(|| Error::invalid(format!("row {row} of {len}")))?;
                return Ok(Self { start, step: 1, count: 1 });
            }
            [start, end] => (number(start)?, number(end)?, None),
            [start, end, step] => (number(start)?, number(end)?, number(step)?),
            _ => return Err(wrong()),
        };
        let step = u64::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0);
        let step = step.ok_or_else(wrong)?;
        let within = |at: i64| match u64::try_from(at) {
            Ok(at) => at.min(len),
            Err(_) => len.saturating_sub(at.unsigned_abs()),
        };
        let (start, end) = (start.map_or(0, within), end.map_or(len, within));
        Ok(Self { start, step, count: end.saturating_sub(start).div_ceil(step) })
    }

    /// All rows.
    pub(super) fn all(len: u64) -> Self {
        Self { start: 0, step: 1, count: len }
    }

    /// The end, after the last row.
    pub(super) fn end(self) -> u64 {
        match self.count.checked_sub(1) {
            Some(last) => self.start + last * self.step + 1,
            None => self.start,
        }
    }

    /// Whether a row is one of these.
    pub(super) fn has(self, row: u64) -> bool {
        row >= self.start && row < self.end() && (row - self.start).is_multiple_of(self.step)
    }
}

/// The columns of these names, in that order; all if none is named. A field of fields means all of
/// its columns.
pub(super) fn columns(dataset: &Blz, wanted: &[String]) -> Result<Vec<Column>> {
    let all = dataset.columns();
    if wanted.is_empty() {
        return Ok(all.to_vec());
    }
    let mut chosen = Vec::new();
    for name in wanted {
        let path = names::field_path(name);
        let below = format!("{path}/");
        let found =
            all.iter().filter(|column| *column.path == path || column.path.starts_with(&below));
        let before = chosen.len();
        chosen.extend(found.cloned());
        if chosen.len() == before {
            let known: Vec<_> = all.iter().map(crate::rows::title_of).collect();
            let name = format!("{name}; there are {}", known.join(", "));
            return Err(Error::NotFound { what: Noun::Column, name });
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_selected_as_in_python() {
        for (text, start, step, count) in [
            (":", 0, 1, 10),
            ("2:5", 2, 1, 3),
            ("-3:", 7, 1, 3),
            (":-8", 0, 1, 2),
            ("1:9:3", 1, 3, 3),
            ("::4", 0, 4, 3),
            ("5:2", 5, 1, 0),
            ("8:99", 8, 1, 2),
            ("7", 7, 1, 1),
            ("-1", 9, 1, 1),
        ] {
            assert_eq!(Span::parse(text, 10).unwrap(), Span { start, step, count }, "{text}");
        }
        for bad in ["", "a", "1:2:0", "1:2:-1", "1:2:3:4", "10", "-11", "1.5:"] {
            assert!(Span::parse(bad, 10).is_err(), "{bad}");
        }
        let some = Span::parse("1:9:3", 10).unwrap();
        let rows: Vec<u64> = (0..10).filter(|row| some.has(*row)).collect();
        assert_eq!((rows, some.end()), (vec![1, 4, 7], 8));
    }
}
