//! The byte shuffle: first all first bytes of the elements, then all second ones, and so on.
//!
//! Plain loops that the compiler turns into vector code. It may use AVX2 only where the caller has
//! checked for it, hence the unsafe calls: with it the shuffle takes a quarter of the time (12
//! instead of 3 GB/s), without it it would cost as much as the compression.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "calls of functions compiled for AVX2, once it is known to be there"
    )
)]

/// Elements that are shuffled together, so that they stay close to the processor while it takes one
/// byte of each after the other.
const TILE: usize = 1024;

/// Shuffles a block of elements of `item` bytes; bytes after the last whole element stay behind.
/// Both slices have the same length.
pub(super) fn shuffle(item: usize, plain: &[u8], shuffled: &mut [u8]) {
    let count = plain.len() / item;
    let (plain, rest) = plain.split_at(count * item);
    let (shuffled, tail) = shuffled.split_at_mut(count * item);
    tail.copy_from_slice(rest);
    spread(item, plain, Planes { stride: count, at: 0 }, shuffled);
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(item: usize, shuffled: &[u8], plain: &mut [u8]) {
    let count = plain.len() / item;
    let (shuffled, rest) = shuffled.split_at(count * item);
    let (plain, tail) = plain.split_at_mut(count * item);
    tail.copy_from_slice(rest);
    gather(item, shuffled, Planes { stride: count, at: 0 }, plain);
}

/// Where the bytes of some elements lie: the n-th bytes from `n * stride + at` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes {
    pub(super) stride: usize,
    pub(super) at: usize,
}

impl Planes {
    #[inline(always)]
    fn plane(self, byte: usize, count: usize) -> std::ops::Range<usize> {
        let start = byte * self.stride + self.at;
        start..start + count
    }
}

/// Puts the bytes of whole elements of `item` bytes into their planes.
pub(super) fn spread(item: usize, elements: &[u8], place: Planes, planes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function requires.
        return unsafe { avx2::spread(item, elements, place, planes) };
    }
    spread_any(item, elements, place, planes);
}

/// Undoes [`spread`].
pub(super) fn gather(item: usize, planes: &[u8], place: Planes, elements: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::gather(item, planes, place, elements) };
    }
    gather_any(item, planes, place, elements);
}

/// Transposes each group of eight bytes, as a matrix of 8 × 8 bits; bytes after the last group stay
/// as they are.
pub(super) fn turn_bits(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::turn_bits(bytes) };
    }
    turn_bits_any(bytes);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::Planes;

    #[target_feature(enable = "avx2")]
    pub(super) fn spread(item: usize, elements: &[u8], place: Planes, planes: &mut [u8]) {
        super::spread_any(item, elements, place, planes);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn gather(item: usize, planes: &[u8], place: Planes, elements: &mut [u8]) {
        super::gather_any(item, planes, place, elements);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn turn_bits(bytes: &mut [u8]) {
        super::turn_bits_any(bytes);
    }
}

#[inline(always)]
fn spread_any(item: usize, elements: &[u8], place: Planes, planes: &mut [u8]) {
    match item {
        1 => planes[place.plane(0, elements.len())].copy_from_slice(elements),
        2 => spread_items::<2>(elements, place, planes),
        4 => spread_items::<4>(elements, place, planes),
        8 => spread_items::<8>(elements, place, planes),
        16 => spread_items::<16>(elements, place, planes),
        _ => {
            for (at, element) in elements.chunks_exact(item).enumerate() {
                for (byte, value) in element.iter().enumerate() {
                    planes[byte * place.stride + place.at + at] = *value;
                }
            }
        }
    }
}

#[inline(always)]
fn spread_items<const N: usize>(elements: &[u8], place: Planes, planes: &mut [u8]) {
    for (tile, elements) in elements.as_chunks::<N>().0.chunks(TILE).enumerate() {
        let place = Planes { at: place.at + tile * TILE, ..place };
        for byte in 0..N {
            let plane = &mut planes[place.plane(byte, elements.len())];
            for (out, element) in plane.iter_mut().zip(elements) {
                *out = element[byte];
            }
        }
    }
}

#[inline(always)]
fn gather_any(item: usize, planes: &[u8], place: Planes, elements: &mut [u8]) {
    match item {
        1 => elements.copy_from_slice(&planes[place.plane(0, elements.len())]),
        2 => gather_items::<2>(planes, place, elements),
        4 => gather_items::<4>(planes, place, elements),
        8 => gather_items::<8>(planes, place, elements),
        16 => gather_items::<16>(planes, place, elements),
        _ => {
            for (at, element) in elements.chunks_exact_mut(item).enumerate() {
                for (byte, value) in element.iter_mut().enumerate() {
                    *value = planes[byte * place.stride + place.at + at];
                }
            }
        }
    }
}

#[inline(always)]
fn gather_items<const N: usize>(planes: &[u8], place: Planes, elements: &mut [u8]) {
    let elements = elements.as_chunks_mut::<N>().0;
    let count = elements.len();
    let planes: [&[u8]; N] = std::array::from_fn(|byte| &planes[place.plane(byte, count)]);
    for (at, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|byte| planes[byte][at]);
    }
}

#[inline(always)]
fn turn_bits_any(bytes: &mut [u8]) {
    for group in bytes.as_chunks_mut::<8>().0 {
        let mut bits = u64::from_le_bytes(*group);
        // Squares of one, two and four bits beside the diagonal change places with each other.
        for (shift, upper) in
            [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
        {
            let change = (bits ^ (bits >> shift)) & upper;
            bits ^= change ^ (change << shift);
        }
        *group = bits.to_le_bytes();
    }
}
