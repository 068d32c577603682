//! MurmurHash3_x86_128 of the eight little-endian bytes of a number, seed 0; the first two words of the result.

const C1: u32 = 0x239b_961b;
const C2: u32 = 0xab0e_9789;
const C3: u32 = 0x38b3_4ae5;
/// Bytes that are hashed: half a block, so there is a tail only.
const LEN: u32 = 8;

pub(super) fn murmurhash3_x86_128(key: u64) -> u64 {
    let (k1, k2) = (key as u32, (key >> 32) as u32);
    let mut h1 = k1.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2) ^ LEN;
    let mut h2 = k2.wrapping_mul(C2).rotate_left(16).wrapping_mul(C3) ^ LEN;
    let (mut h3, mut h4) = (LEN, LEN);
    mix(&mut h1, &mut h2, &mut h3, &mut h4);
    for word in [&mut h1, &mut h2, &mut h3, &mut h4] {
        *word = avalanche(*word);
    }
    mix(&mut h1, &mut h2, &mut h3, &mut h4);
    u64::from(h2) << 32 | u64::from(h1)
}

fn mix(h1: &mut u32, h2: &mut u32, h3: &mut u32, h4: &mut u32) {
    *h1 = h1.wrapping_add(*h2).wrapping_add(*h3).wrapping_add(*h4);
    for word in [h2, h3, h4] {
        *word = word.wrapping_add(*h1);
    }
}

fn avalanche(mut word: u32) -> u32 {
    word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}
