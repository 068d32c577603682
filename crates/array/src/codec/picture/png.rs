//! Pictures that lose nothing.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};

use super::Layout;
use crate::{Error, Result};

/// Bytes that the decoder may take besides the pixels: lines, tables, and what else a file may hold.
const SPARE_BYTES: usize = 1 << 20;

pub(super) fn encode(layout: &Layout, pixels: &[u8]) -> Result<Vec<u8>> {
    let failed = |error: png::EncodingError| Error::invalid(format!("a picture (PNG): {error}"));
    let side = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let [width, height] = layout.size.map(side);
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(match layout.channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(if layout.item == 2 { BitDepth::Sixteen } else { BitDepth::Eight });
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

pub(super) fn decode(layout: &Layout, picture: &[u8]) -> Result<Vec<u8>> {
    let unsound = |error: png::DecodingError| layout.unsound(error);
    let bytes = layout.pixels() * layout.channels * layout.item;
    let limits = Limits { bytes: bytes.saturating_add(SPARE_BYTES) };
    let mut decoder = Decoder::new_with_limits(Cursor::new(picture), limits);
    // Other programs may write few colours with a palette, or with less than a byte.
    decoder.set_transformations(Transformations::EXPAND);
    decoder.ignore_checksums(false);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let head = decoder.read_header_info().map_err(unsound)?;
    // Colours of a palette are known later.
    let (width, height) = (head.width as usize, head.height as usize);
    layout.check(width, height, layout.channels)?;
    let mut reader = decoder.read_info().map_err(unsound)?;
    let (color, depth) = reader.output_color_type();
    layout.check(width, height, color.samples())?;
    let item = if depth == BitDepth::Sixteen { 2 } else { 1 };
    if item != layout.item {
        let bits = |item: usize| format!("samples of {} bits", 8 * item);
        return Err(layout.corrupt(bits(layout.item), bits(item)));
    }
    let mut pixels = vec![0; bytes];
    reader.next_frame(&mut pixels).map_err(unsound)?;
    reader.finish().map_err(unsound)?;
    Ok(pixels)
}
