//! One loop per pair of number types.

use half::{bf16, f16};

use super::number::{Bool, Number, To};

/// Elements that pass through the buffer of a complex conversion at a time.
const STAGE_ITEMS: usize = 512;

/// Converts all elements; returns the position of the first that cannot be converted, if any.
type Loop = fn(&[u8], &mut [u8]) -> Option<usize>;

/// A conversion between numbers, real or complex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    parts: Loop,
    shape: Shape,
    source_part_bytes: usize,
    target_part_bytes: usize,
}

/// Which of the two types is a pair of parts.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Real,
    Complex,
    RealToComplex,
    ComplexToReal,
}

/// Evaluates an expression with `$type` standing for the number type of a name.
macro_rules! with_type {
    ($name:expr, $type:ident => $value:expr) => {
        with_type!(@arms $name, $type => $value,
            "bool" Bool, "int8" i8, "int16" i16, "int32" i32, "int64" i64,
            "uint8" u8, "uint16" u16, "uint32" u32, "uint64" u64)
    };
    (@float $name:expr, $type:ident => $value:expr) => {
        with_type!(@arms $name, $type => $value,)
    };
    (@arms $name:expr, $type:ident => $value:expr, $($text:literal $number:ty),*) => {
        match $name {
            $($text => { type $type = $number; Some($value) })*
            "float16" => { type $type = f16; Some($value) }
            "bfloat16" => { type $type = bf16; Some($value) }
            "float32" => { type $type = f32; Some($value) }
            "float64" => { type $type = f64; Some($value) }
            _ => None,
        }
    };
}

impl Numbers {
    /// The conversion between two types, if both are numbers.
    pub(super) fn between(source: &str, target: &str, rounding: bool) -> Option<Self> {
        let ((source, source_pair), (target, target_pair)) = (part(source), part(target));
        let exact = || with_type!(source, S => with_type!(target, T => exactly::<S, T> as Loop));
        let near = || with_type!(@float source, S => with_type!(@float target, T => nearly::<S, T> as Loop));
        // Only floats are ever rounded.
        let rounded = if rounding { near().flatten() } else { None };
        let size = |name| with_type!(name, T => size_of::<<T as Number>::Bytes>());
        Some(Self {
            parts: rounded.or_else(|| exact().flatten())?,
            shape: match (source_pair, target_pair) {
                (false, false) => Shape::Real,
                (true, true) => Shape::Complex,
                (false, true) => Shape::RealToComplex,
                (true, false) => Shape::ComplexToReal,
            },
            source_part_bytes: size(source)?,
            target_part_bytes: size(target)?,
        })
    }

    /// Converts all elements; returns the position of the first that cannot be converted, if any.
    pub(super) fn convert(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        match self.shape {
            Shape::Real => (self.parts)(source, target),
            Shape::Complex => (self.parts)(source, target).map(|part| part / 2),
            Shape::RealToComplex => self.widen(source, target),
            Shape::ComplexToReal => self.narrow(source, target),
        }
    }

    fn widen(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let (from, to) = (self.source_part_bytes, self.target_part_bytes);
        let mut stage = [0; STAGE_ITEMS * 8];
        let blocks = source.chunks(STAGE_ITEMS * from).zip(target.chunks_mut(STAGE_ITEMS * 2 * to));
        for (block, (source, target)) in blocks.enumerate() {
            let real = &mut stage[..source.len() / from * to];
            if let Some(at) = (self.parts)(source, real) {
                return Some(block * STAGE_ITEMS + at);
            }
            match to {
                4 => interleave::<4>(real, target),
                _ => interleave::<8>(real, target),
            }
        }
        None
    }

    fn narrow(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let (from, to) = (self.source_part_bytes, self.target_part_bytes);
        let mut stage = [0; STAGE_ITEMS * 8];
        let blocks = source.chunks(STAGE_ITEMS * 2 * from).zip(target.chunks_mut(STAGE_ITEMS * to));
        for (block, (source, target)) in blocks.enumerate() {
            let real = &mut stage[..source.len() / 2];
            let imaginary = match from {
                4 => take_real::<4>(source, real),
                _ => take_real::<8>(source, real),
            };
            let refused = (self.parts)(real, target);
            let first = [refused, imaginary].into_iter().flatten().min();
            if let Some(at) = first {
                return Some(block * STAGE_ITEMS + at);
            }
        }
        None
    }
}

/// The type of a part of a complex type, or the type itself; and whether it is complex.
fn part(name: &str) -> (&str, bool) {
    match name {
        "complex64" => ("float32", true),
        "complex128" => ("float64", true),
        real => (real, false),
    }
}

/// Turns real numbers into complex ones.
fn interleave<const N: usize>(real: &[u8], complex: &mut [u8]) {
    let pairs = complex.as_chunks_mut::<N>().0.as_chunks_mut::<2>().0;
    for (pair, real) in pairs.iter_mut().zip(real.as_chunks::<N>().0) {
        *pair = [*real, [0; N]];
    }
}

/// The real parts of complex numbers, and the position of the first that is not real.
fn take_real<const N: usize>(complex: &[u8], real: &mut [u8]) -> Option<usize> {
    let pairs = complex.as_chunks::<N>().0.as_chunks::<2>().0;
    for (real, pair) in real.as_chunks_mut::<N>().0.iter_mut().zip(pairs) {
        *real = pair[0];
    }
    // A zero of either sign: the sign is the highest bit of the last byte.
    let is_zero = |part: &[u8; N]| match part.split_last() {
        Some((last, rest)) => last & 0x7f == 0 && rest.iter().all(|&byte| byte == 0),
        None => true,
    };
    pairs.iter().position(|pair| !is_zero(&pair[1]))
}

fn exactly<S: Number + To<T>, T: Number>(source: &[u8], target: &mut [u8]) -> Option<usize> {
    convert::<S, T>(source, target, S::exactly)
}

fn nearly<S: Number + To<T>, T: Number>(source: &[u8], target: &mut [u8]) -> Option<usize> {
    convert::<S, T>(source, target, S::nearly)
}

#[inline(always)]
fn convert<S: Number, T: Number>(
    source: &[u8],
    target: &mut [u8],
    cast: impl Fn(S) -> (T, bool),
) -> Option<usize> {
    let source = S::items(source);
    let mut sound = true;
    for (from, to) in source.iter().zip(T::items_mut(target)) {
        let (value, same) = cast(S::from_bytes(*from));
        *to = value.into_bytes();
        sound &= same;
    }
    // The position is only searched if there is one, so that the loop above has no branch.
    if sound { None } else { source.iter().position(|from| !cast(S::from_bytes(*from)).1) }
}

/// The value of an element, for a message.
pub(super) fn display(name: &str, bytes: &[u8]) -> String {
    fn show<T: Number>(bytes: &[u8]) -> String {
        T::items(bytes).first().map(|item| T::from_bytes(*item).to_string()).unwrap_or_default()
    }
    let (part, pair) = part(name);
    let show = |bytes: &[u8]| with_type!(part, T => show::<T>(bytes)).unwrap_or_default();
    if pair {
        let (real, imaginary) = bytes.split_at(bytes.len() / 2);
        format!("{} + {}i", show(real), show(imaginary))
    } else {
        show(bytes)
    }
}
