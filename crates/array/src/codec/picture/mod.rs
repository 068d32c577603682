//! Chunks of images as pictures: PNG, which loses nothing, and JPEG, which does.
//!
//! Specification: the encodings `png` and `jpeg` of the Neuroglancer precomputed format. A chunk has the axes z, y and x, or channels
//! before these. Its picture has a pixel per voxel, x fastest, then y and z, with the channels as samples of the pixel; how
//! the voxels are broken into lines does not matter to a reader. PNG takes 1 to 4 channels of `uint8` or `uint16`, JPEG 1 or 3
//! of `uint8`. Compatible implementations: neuroglancer, TensorStore, cloud-volume.
//!
//! ```json
//! {"name": "neuroglancer.png"}
//! {"name": "neuroglancer.jpeg", "configuration": {"quality": 75}}
//! ```
//!
//! `quality`, 1 to 100, says how a JPEG is written; readers do not need it.

mod jpeg;
mod png;
mod zarr;

use std::fmt::Display;

use zarrs::metadata::v3::MetadataV3;

pub(super) use self::zarr::register;
use crate::{DType, Error, Result};

/// The name of the codec that writes PNG.
pub const PNG: &str = "neuroglancer.png";
/// The name of the codec that writes JPEG.
pub const JPEG: &str = "neuroglancer.jpeg";

/// The quality of a JPEG where the caller does not say, as elsewhere.
const QUALITY: u8 = 75;

/// Bytes of a picture besides its pixels, at most: heads, tables and checksums.
const HEAD_BYTES_MAX: usize = 1 << 16;

/// A file format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Png,
    Jpeg { quality: u8 },
}

impl Form {
    /// The form that a codec writes, if it is one of these.
    fn of(codec: &MetadataV3) -> Option<Result<Self>> {
        match codec.name() {
            PNG => Some(Ok(Self::Png)),
            JPEG => {
                let given = codec.configuration().and_then(|members| members.get("quality"));
                Some(given.map_or(Ok(QUALITY), quality).map(|quality| Self::Jpeg { quality }))
            }
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Png => PNG,
            Self::Jpeg { .. } => JPEG,
        }
    }

    /// Pixels along a side of a picture, at most.
    fn side_max(self) -> usize {
        match self {
            Self::Png => (1 << 31) - 1,
            Self::Jpeg { .. } => (1 << 16) - 1,
        }
    }
}

fn quality(given: &serde_json::Value) -> Result<u8> {
    let number = given.as_u64().and_then(|number| u8::try_from(number).ok());
    number
        .filter(|number| (1..=100).contains(number))
        .ok_or_else(|| Error::invalid(format!("{JPEG} takes a quality of 1 to 100, not {given}")))
}

/// How the voxels of a chunk become pixels.
#[derive(Clone, Copy, Debug)]
struct Layout {
    form: Form,
    channels: usize,
    /// Pixels along a line, and lines.
    size: [usize; 2],
    /// Bytes of a sample, 1 or 2.
    item: usize,
}

impl Layout {
    /// The layout, if the codec is one of these.
    fn of(codec: &MetadataV3, dtype: &DType, shape: &[u64]) -> Option<Result<Self>> {
        Some(Form::of(codec)?.and_then(|form| Self::new(form, dtype.name(), shape)))
    }

    fn new(form: Form, dtype: &str, shape: &[u64]) -> Result<Self> {
        let name = form.name();
        let item = match (form, dtype) {
            (_, "uint8") => 1,
            (Form::Png, "uint16") => 2,
            (Form::Png, _) => {
                let what = format!("{name} takes uint8 or uint16, not {dtype}");
                return Err(Error::invalid(what));
            }
            _ => return Err(Error::invalid(format!("{name} takes uint8, not {dtype}"))),
        };
        let (channels, space) = match *shape {
            [z, y, x] => (1, [z, y, x]),
            [channels, z, y, x] => (channels, [z, y, x]),
            _ => {
                return Err(Error::invalid(format!(
                    "{name} takes chunks with the axes z, y and x, and maybe channels before these, not with {}",
                    shape.len()
                )));
            }
        };
        let taken: &[u64] = match form {
            Form::Png => &[1, 2, 3, 4],
            Form::Jpeg { .. } => &[1, 3],
        };
        if !taken.contains(&channels) {
            let what = format!("{name} takes {taken:?} channels, not {channels}");
            return Err(Error::invalid(what));
        }
        let too_large = || {
            Error::invalid(format!(
                "{name} takes no chunk of {space:?} voxels: a side of a picture has at most {} pixels",
                form.side_max()
            ))
        };
        let number = |extent: u64| usize::try_from(extent).map_err(|_| too_large());
        let [z, y, x] = [number(space[0])?, number(space[1])?, number(space[2])?];
        let sizes = [[Some(x), y.checked_mul(z)], [x.checked_mul(y), Some(z)]];
        let fits = |side: usize| (1..=form.side_max()).contains(&side);
        let size = sizes.into_iter().find_map(|[width, height]| {
            Some([width.filter(|side| fits(*side))?, height.filter(|side| fits(*side))?])
        });
        let layout =
            Self { form, channels: number(channels)?, size: size.ok_or_else(too_large)?, item };
        layout.bytes().ok_or_else(too_large)?;
        Ok(layout)
    }

    fn pixels(&self) -> usize {
        self.size.iter().product()
    }

    /// Bytes of the chunk, if they can be counted.
    fn bytes(&self) -> Option<usize> {
        let [width, height] = self.size;
        let samples = width.checked_mul(height)?.checked_mul(self.channels)?;
        samples.checked_mul(self.item).filter(|bytes| *bytes <= isize::MAX as usize / 4)
    }

    /// The most bytes that a picture has: more than its pixels where nothing becomes smaller.
    fn encoded_bytes_max(&self) -> usize {
        HEAD_BYTES_MAX + 4 * self.pixels() * self.channels * self.item
    }

    /// The picture of a chunk, whose samples have the byte order of the machine.
    fn encode(&self, chunk: &[u8]) -> Result<Vec<u8>> {
        let pixels = self.interleaved(chunk);
        match self.form {
            Form::Png => png::encode(self, &pixels),
            Form::Jpeg { quality } => jpeg::encode(self, &pixels, quality),
        }
    }

    /// The chunk of a picture.
    fn decode(&self, picture: &[u8]) -> Result<Vec<u8>> {
        let pixels = match self.form {
            Form::Png => png::decode(self, picture)?,
            Form::Jpeg { .. } => jpeg::decode(self, picture)?,
        };
        Ok(self.apart(&pixels))
    }

    /// The samples of a pixel side by side, the higher byte first, as files have them.
    fn interleaved(&self, chunk: &[u8]) -> Vec<u8> {
        if self.item == 1 && self.channels == 1 {
            return chunk.to_vec();
        }
        let mut out = vec![0; chunk.len()];
        for (from, to) in self.moves() {
            if let (Some(from), Some(to)) = (chunk.get(from), out.get_mut(to)) {
                to.copy_from_slice(from);
                self.swap(to);
            }
        }
        out
    }

    /// The reverse.
    fn apart(&self, pixels: &[u8]) -> Vec<u8> {
        let mut out = vec![0; pixels.len()];
        for (to, from) in self.moves() {
            if let (Some(from), Some(to)) = (pixels.get(from), out.get_mut(to)) {
                to.copy_from_slice(from);
                self.swap(to);
            }
        }
        out
    }

    /// Where each sample is in the chunk, and in the picture.
    fn moves(&self) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> {
        let (channels, pixels, item) = (self.channels, self.pixels(), self.item);
        let at = move |number: usize| number * item..(number + 1) * item;
        (0..channels).flat_map(move |channel| {
            (0..pixels)
                .map(move |pixel| (at(channel * pixels + pixel), at(pixel * channels + channel)))
        })
    }

    fn swap(&self, sample: &mut [u8]) {
        if self.item > 1 && cfg!(target_endian = "little") {
            sample.reverse();
        }
    }

    /// Refuses a picture of another size, before any of it is unpacked.
    fn check(&self, width: usize, height: usize, channels: usize) -> Result<()> {
        let same = width.checked_mul(height) == Some(self.pixels());
        if same && channels == self.channels {
            return Ok(());
        }
        let expected = format!("{} pixels of {} channels", self.pixels(), self.channels);
        Err(self.corrupt(expected, format!("{width} × {height} pixels of {channels} channels")))
    }

    fn corrupt(&self, expected: impl Display, found: impl Display) -> Error {
        let what = match self.form {
            Form::Png => "picture (PNG)",
            Form::Jpeg { .. } => "picture (JPEG)",
        };
        Error::corrupt(what, expected.to_string(), found.to_string())
    }

    fn unsound(&self, error: impl Display) -> Error {
        self.corrupt("a sound picture", error)
    }
}

/// The codec as typed on a command line, if it is one of these.
pub(super) fn shorthand(text: &str) -> Result<Option<serde_json::Value>> {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    match (name, argument) {
        ("png", None) => Ok(Some(serde_json::json!({"name": PNG}))),
        ("png", Some(extra)) => {
            Err(Error::invalid(format!("codec '{text}': '{extra}' is one argument too many")))
        }
        ("jpeg", argument) => {
            let argument = argument.map_or(Ok(u64::from(QUALITY)), str::parse);
            let quality = argument.ok().and_then(|number| u8::try_from(number).ok());
            let Some(quality) = quality.filter(|number| (1..=100).contains(number)) else {
                let found = text.trim_start_matches("jpeg:");
                return Err(Error::invalid(format!(
                    "codec '{text}': a quality is 1 to 100, not {found}"
                )));
            };
            let configuration = serde_json::json!({"quality": quality});
            Ok(Some(serde_json::json!({"name": JPEG, "configuration": configuration})))
        }
        _ => Ok(None),
    }
}

/// Refuses a chain that the array cannot have, with a reason that `zarrs` has no error for.
pub(super) fn check(codecs: &[MetadataV3], dtype: &DType, shape: &[u64]) -> Result<()> {
    let layout = codecs.first().and_then(|first| Layout::of(first, dtype, shape));
    layout.transpose().map(drop)
}

#[cfg(test)]
mod tests;
