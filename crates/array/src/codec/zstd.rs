//! Zstandard frames, with the contexts of this thread.
//!
//! A context is some hundred kilobytes: making one per chunk costs more than a small chunk itself.

use std::cell::RefCell;
use std::io;

use zarrs::metadata::v3::MetadataV3;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, compress_bound};

use super::wrong_length;
use crate::{Error, Result};

/// How to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zstd {
    pub(super) level: i32,
    pub(super) checksum: bool,
}

impl Zstd {
    /// The codec, if the metadata describes one.
    pub(super) fn recognise(codec: &MetadataV3) -> Option<Self> {
        if codec.name() != "zstd" {
            return None;
        }
        let configuration = codec.configuration()?;
        let level = configuration.get("level")?.as_i64()?;
        let checksum = configuration.get("checksum").is_some_and(|value| value == true);
        Some(Self { level: i32::try_from(level).ok()?, checksum })
    }

    /// Appends a frame to `out`.
    pub(super) fn compress_onto(self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let compress = |context: &mut Compressor<'_>| {
            let start = out.len();
            out.reserve(compress_bound(decoded.len()));
            let mut end = io::Cursor::new(&mut *out);
            end.set_position(start as u64);
            context.compress_to_buffer(decoded, &mut end)
        };
        self.with_context(compress)
            .map_err(|cause| Error::invalid("zstd cannot encode a chunk").because(cause))?;
        Ok(())
    }

    /// A frame at the start of `out`, and its length; `None` if there is no room for one.
    pub(super) fn compress_into(self, decoded: &[u8], out: &mut [u8]) -> Option<usize> {
        self.with_context(|context| context.compress_to_buffer(decoded, out)).ok()
    }

    /// The context of this thread, made anew if the last one was for other frames.
    fn with_context<T>(
        self,
        work: impl FnOnce(&mut Compressor<'static>) -> io::Result<T>,
    ) -> io::Result<T> {
        thread_local! {
            static CONTEXT: RefCell<Option<(Zstd, Compressor<'static>)>> =
                const { RefCell::new(None) };
        }
        CONTEXT.with_borrow_mut(|slot| {
            let (_, context) = match slot {
                Some(kept) if kept.0 == self => kept,
                _ => {
                    let mut context = Compressor::new(self.level)?;
                    context.set_parameter(CParameter::ChecksumFlag(self.checksum))?;
                    slot.insert((self, context))
                }
            };
            work(context)
        })
    }
}

/// Decompresses frames that hold exactly `out.len()` bytes. The frames' claims about their size are
/// not believed: there is no room but `out`.
pub(super) fn decompress_into(frames: &[u8], out: &mut [u8]) -> Result<()> {
    let expected = out.len();
    let written = decompress(frames, out).map_err(|cause| {
        let expected = format!("zstd frames of {expected} bytes");
        Error::corrupt("chunk", expected, cause.to_string()).because(cause)
    })?;
    if written == expected { Ok(()) } else { Err(wrong_length(expected, written)) }
}

/// Decompresses frames into `out` and says how much of it they fill.
pub(super) fn decompress(frames: &[u8], out: &mut [u8]) -> io::Result<usize> {
    thread_local! {
        static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(Decompressor::new()?),
        };
        context.decompress_to_buffer(frames, out)
    })
}
