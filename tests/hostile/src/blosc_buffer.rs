//! Blosc-1 buffers by themselves, as in superchunk files: whole, in ranges, with slack.

use chunkyard_array::codec::blosc::{
    HEADER_BYTES, Header, choose, decode_into, decode_range, encode_onto, with_slack,
};

use crate::error::is_about_buffer;

/// Larger buffers are not decoded: callers check the size before they decode.
const DECODED_BYTES_MAX: u64 = 1 << 20;

/// A buffer and maybe more bytes after it.
pub(crate) fn check(data: &[u8]) {
    let header = match Header::parse(data) {
        Ok(header) => header,
        Err(error) => return is_about_buffer(&error),
    };
    assert!(header.encoded_bytes >= HEADER_BYTES as u64 && header.item > 0, "{header:?}");
    if header.decoded_bytes > DECODED_BYTES_MAX {
        return;
    }
    let len = header.decoded_bytes as usize;
    let mut plain = vec![0; len];
    let whole = decode_into(data, &mut plain);
    // A range does not look at the blocks that it does not want.
    for range in [0..len / 3, len / 3..len / 2 + len % 2, len..len] {
        let mut some = vec![0; range.len()];
        match decode_range(data, range.clone(), &mut some) {
            Ok(()) if whole.is_ok() => assert_eq!(some, plain[range]),
            Ok(()) => {}
            Err(error) => {
                assert!(whole.is_err(), "{range:?} of a buffer that is sound: {error}");
                is_about_buffer(&error);
            }
        }
    }
    match whole {
        Ok(()) => sound(&data[..header.encoded_bytes as usize], header.item, &plain),
        Err(error) => is_about_buffer(&error),
    }
}

/// Holds for a buffer that can be decoded.
fn sound(buffer: &[u8], item: u8, plain: &[u8]) {
    let params = choose(plain, item).expect("any bytes can be tried");
    let mut again = Vec::new();
    encode_onto(&params, plain, &mut again).expect("decoded bytes can be encoded");
    assert!(again.len() <= plain.len() + HEADER_BYTES);
    let mut slack = buffer.to_vec();
    assert_eq!(with_slack(&mut slack, 9).is_ok_and(|made| made), slack.len() > buffer.len());
    for buffer in [&again, &slack] {
        let mut found = vec![1; plain.len()];
        decode_into(buffer, &mut found).expect("an encoded buffer can be decoded");
        assert_eq!(found, plain);
    }
}
