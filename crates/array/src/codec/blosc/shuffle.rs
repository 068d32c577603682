//! The byte shuffle: first all first bytes of the elements, then all second ones, and so on.
//!
//! Plain loops that the compiler turns into vector code. It may use AVX2 only where the caller has
//! looked for it, which is what the unsafe calls are about: with it the shuffle takes a quarter of
//! the time (12 instead of 3 GB/s), without it it would cost as much as the compression.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "calls of functions compiled for AVX2, once it is known to be there"
    )
)]

/// Shuffles a block of elements of `item` bytes; bytes after the last whole element stay behind.
/// Both slices have the same length.
pub(super) fn shuffle(item: usize, plain: &[u8], shuffled: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function requires.
        return unsafe { avx2::shuffle(item, plain, shuffled) };
    }
    shuffle_any(item, plain, shuffled);
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(item: usize, shuffled: &[u8], plain: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { avx2::unshuffle(item, shuffled, plain) };
    }
    unshuffle_any(item, shuffled, plain);
}

/// Turns each group of eight bytes round, as a matrix of 8 × 8 bits; bytes after the last group
/// stay as they are.
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
    #[target_feature(enable = "avx2")]
    pub(super) fn turn_bits(bytes: &mut [u8]) {
        super::turn_bits_any(bytes);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn shuffle(item: usize, plain: &[u8], shuffled: &mut [u8]) {
        super::shuffle_any(item, plain, shuffled);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn unshuffle(item: usize, shuffled: &[u8], plain: &mut [u8]) {
        super::unshuffle_any(item, shuffled, plain);
    }
}

#[inline(always)]
fn shuffle_any(item: usize, plain: &[u8], shuffled: &mut [u8]) {
    match item {
        1 => shuffled.copy_from_slice(plain),
        2 => shuffle_items::<2>(plain, shuffled),
        4 => shuffle_items::<4>(plain, shuffled),
        8 => shuffle_items::<8>(plain, shuffled),
        16 => shuffle_items::<16>(plain, shuffled),
        _ => {
            let count = plain.len() / item;
            for (at, element) in plain.chunks_exact(item).enumerate() {
                for (plane, byte) in element.iter().enumerate() {
                    shuffled[plane * count + at] = *byte;
                }
            }
            shuffled[count * item..].copy_from_slice(&plain[count * item..]);
        }
    }
}

#[inline(always)]
fn shuffle_items<const N: usize>(plain: &[u8], shuffled: &mut [u8]) {
    let (elements, rest) = plain.as_chunks::<N>();
    let (planes, tail) = shuffled.split_at_mut(elements.len() * N);
    if !elements.is_empty() {
        for (byte, plane) in planes.chunks_exact_mut(elements.len()).enumerate() {
            for (out, element) in plane.iter_mut().zip(elements) {
                *out = element[byte];
            }
        }
    }
    tail.copy_from_slice(rest);
}

#[inline(always)]
fn unshuffle_any(item: usize, shuffled: &[u8], plain: &mut [u8]) {
    match item {
        1 => plain.copy_from_slice(shuffled),
        2 => unshuffle_items::<2>(shuffled, plain),
        4 => unshuffle_items::<4>(shuffled, plain),
        8 => unshuffle_items::<8>(shuffled, plain),
        16 => unshuffle_items::<16>(shuffled, plain),
        _ => {
            let count = plain.len() / item;
            for (at, element) in plain.chunks_exact_mut(item).enumerate() {
                for (plane, byte) in element.iter_mut().enumerate() {
                    *byte = shuffled[plane * count + at];
                }
            }
            plain[count * item..].copy_from_slice(&shuffled[count * item..]);
        }
    }
}

#[inline(always)]
fn unshuffle_items<const N: usize>(shuffled: &[u8], plain: &mut [u8]) {
    let (elements, tail) = plain.as_chunks_mut::<N>();
    let count = elements.len();
    let planes: [&[u8]; N] = std::array::from_fn(|byte| &shuffled[byte * count..][..count]);
    for (at, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|byte| planes[byte][at]);
    }
    tail.copy_from_slice(&shuffled[count * N..]);
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
