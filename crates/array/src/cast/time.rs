//! Times in another unit.
//!
//! NumPy's `datetime64` and `timedelta64` are 64-bit integers that count units, such as 25 s. A
//! factor converts one unit to another, except between months and days: a month has no fixed
//! length.

use super::number::Number as _;
use crate::DType;

/// NumPy's "not a time".
const NAT: i64 = i64::MIN;

/// How many units of the target one unit of the source is, as a fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    times: i64,
    over: i64,
}

impl Ratio {
    /// The ratio between two types, if both are points in time or both are durations, and their
    /// units have one.
    pub(super) fn between(source: &DType, target: &DType) -> Option<Self> {
        let known = matches!(source.name(), "numpy.datetime64" | "numpy.timedelta64");
        if !known || source.name() != target.name() {
            return None;
        }
        let ((source_scale, source_unit), (target_scale, target_unit)) =
            (unit(source)?, unit(target)?);
        if source_scale != target_scale {
            return None;
        }
        let common = gcd(source_unit, target_unit);
        let terms = [source_unit / common, target_unit / common].map(i64::try_from);
        // Between units that far apart only zero is a whole number of both; this divisor divides
        // only one other value, which is NaT.
        let [Ok(times), Ok(over)] = terms else { return Some(Self { times: 1, over: NAT }) };
        Some(Self { times, over })
    }

    /// Converts all elements; returns the position of the first that cannot be converted, if any.
    pub(super) fn convert(self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let source = i64::items(source);
        for (at, (from, to)) in source.iter().zip(i64::items_mut(target)).enumerate() {
            match self.apply(i64::from_bytes(*from)) {
                Some(value) => *to = value.into_bytes(),
                None => return Some(at),
            }
        }
        None
    }

    fn apply(self, value: i64) -> Option<i64> {
        if value == NAT {
            return Some(NAT);
        }
        // In lowest terms, only multiples of the denominator come out whole.
        let whole = match self.over {
            1 => value,
            over if value % over == 0 => value / over,
            _ => return None,
        };
        whole.checked_mul(self.times).filter(|&value| value != NAT)
    }
}

/// What units are counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Months,
    Attoseconds,
}

/// The unit of a type of times.
fn unit(dtype: &DType) -> Option<(Scale, i128)> {
    const SECOND: i128 = 1_000_000_000_000_000_000;
    let configuration = dtype.metadata().configuration()?;
    let (scale, length) = match configuration.get("unit")?.as_str()? {
        "Y" => (Scale::Months, 12),
        "M" => (Scale::Months, 1),
        "W" => (Scale::Attoseconds, 7 * 86_400 * SECOND),
        "D" => (Scale::Attoseconds, 86_400 * SECOND),
        "h" => (Scale::Attoseconds, 3_600 * SECOND),
        "m" => (Scale::Attoseconds, 60 * SECOND),
        "s" => (Scale::Attoseconds, SECOND),
        "ms" => (Scale::Attoseconds, SECOND / 1_000),
        "us" | "μs" => (Scale::Attoseconds, SECOND / 1_000_000),
        "ns" => (Scale::Attoseconds, 1_000_000_000),
        "ps" => (Scale::Attoseconds, 1_000_000),
        "fs" => (Scale::Attoseconds, 1_000),
        "as" => (Scale::Attoseconds, 1),
        // "generic" counts an unknown unit.
        _ => return None,
    };
    let factor = configuration.get("scale_factor")?.as_u64().filter(|&factor| factor > 0)?;
    Some((scale, length.checked_mul(i128::from(factor))?))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
