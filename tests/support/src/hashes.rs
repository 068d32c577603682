//! Short hashes, as the recorded answers of other programs have them.

use sha2::{Digest, Sha256};

/// The first eight bytes of a SHA-256, in hexadecimal digits.
pub fn hash_of_bytes(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The same of numbers, little-endian.
pub fn hash_of_voxels(voxels: &[u64]) -> String {
    let mut bytes = vec![0; 8 * voxels.len()];
    for (place, voxel) in bytes.chunks_exact_mut(8).zip(voxels) {
        place.copy_from_slice(&voxel.to_le_bytes());
    }
    hash_of_bytes(&bytes)
}
