//! Pictures that are small and not exact.

use jpeg_encoder::{ColorType, Encoder};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Layout;
use crate::{Error, Result};

pub(super) fn encode(layout: &Layout, pixels: &[u8], quality: u8) -> Result<Vec<u8>> {
    let failed =
        |error: &dyn std::fmt::Display| Error::invalid(format!("a picture (JPEG): {error}"));
    let side = |number: usize| u16::try_from(number).map_err(|error| failed(&error));
    let [width, height] = layout.size;
    let color = if layout.channels == 3 { ColorType::Rgb } else { ColorType::Luma };
    let mut out = Vec::new();
    Encoder::new(&mut out, quality)
        .encode(pixels, side(width)?, side(height)?, color)
        .map_err(|error| failed(&error))?;
    Ok(out)
}

pub(super) fn decode(layout: &Layout, picture: &[u8]) -> Result<Vec<u8>> {
    let side = layout.form.side_max();
    let space = if layout.channels == 3 { ColorSpace::RGB } else { ColorSpace::Luma };
    // Strict: a picture that is cut short is an error, and not gray from there on.
    let options = DecoderOptions::default()
        .set_max_width(side)
        .set_max_height(side)
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(picture), options);
    decoder.decode_headers().map_err(|error| layout.unsound(error))?;
    let Some(info) = decoder.info() else {
        return Err(layout.corrupt("a sound picture", "one without a size"));
    };
    layout.check(info.width.into(), info.height.into(), info.components.into())?;
    let mut pixels = vec![0; layout.pixels() * layout.channels];
    decoder.decode_into(&mut pixels).map_err(|error| layout.unsound(error))?;
    Ok(pixels)
}
