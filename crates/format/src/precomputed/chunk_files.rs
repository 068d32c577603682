//! The names of files that hold one chunk each: its bounds, `-16-48_0-64_128-256`.

use super::info::Scale;

/// The name of a chunk's file.
pub(super) fn name(scale: &Scale, chunk: [u64; 3]) -> String {
    let shape = scale.chunk_size();
    let mut parts = Vec::with_capacity(3);
    for (((at, shape), size), offset) in
        chunk.iter().zip(shape).zip(scale.size).zip(scale.voxel_offset)
    {
        // The metadata was checked: no sum comes near to 64 bits.
        let start = at.saturating_mul(shape);
        let end = start.saturating_add(shape).min(size);
        parts.push(format!(
            "{}-{}",
            offset.saturating_add_unsigned(start),
            offset.saturating_add_unsigned(end)
        ));
    }
    parts.join("_")
}

/// The chunk whose file has a name; `None` for the name of anything else.
pub(super) fn parse(scale: &Scale, file: &str) -> Option<[u64; 3]> {
    let mut parts = file.split('_');
    let mut chunk = [0; 3];
    let axes = chunk.iter_mut().zip(scale.chunk_size()).zip(scale.voxel_offset);
    for ((at, shape), offset) in axes {
        let part = parts.next()?;
        // A minus at the beginning is a sign.
        let end = part.get(1..)?.find('-')? + 1;
        let start: i64 = part.get(..end)?.parse().ok()?;
        let start = u64::try_from(start.checked_sub(offset)?).ok()?;
        *at = start / shape;
    }
    let inside = chunk.iter().zip(scale.grid()).all(|(at, extent)| *at < extent);
    (inside && name(scale, chunk) == file).then_some(chunk)
}
