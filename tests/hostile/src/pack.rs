//! Trailers of packs.

use chunkyard_engine::repo::hostile;

use crate::error::is_about_bytes;

/// Last eight bytes of a pack.
const MAGIC: &[u8] = b"CYPACK\x00\x01";

/// The bytes as they are, and as the index of a pack with everything around it made right.
pub(crate) fn check(data: &[u8]) {
    if let Err(error) = hostile::parse_pack(data) {
        is_about_bytes(&error);
    }
    // The first byte is the number of bytes that are chunks before the index.
    let Some((&before, rest)) = data.split_first() else { return };
    let (chunks, index) = rest.split_at(usize::from(before).min(rest.len()));
    let length = index.len() as u64 + 4;
    let pack = [chunks, index, &crc32c::crc32c(index).to_le_bytes(), &length.to_le_bytes(), MAGIC]
        .concat();
    match hostile::parse_pack(&pack) {
        Err(error) => is_about_bytes(&error),
        Ok(None) => panic!("a trailer went unseen"),
        Ok(Some(entries)) => {
            let end = chunks.len() as u64;
            assert!(entries.iter().all(|(_, _, offset, length, _)| offset + length <= end));
            let trailer = hostile::render_pack(&entries);
            assert_eq!(pack[chunks.len()..], trailer[..], "an index has one rendering");
        }
    }
}
