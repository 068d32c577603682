//! The file `info`: what a volume is, and its scales.
//!
//! Members that we do not know stay as they are. What we know is strict: a volume that is read differently from how it was
//! meant is worse than one that is refused.

use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::json::{EXTENT_MAX, Members, Wrong, extent, found, listed, triple, word, wrong};
use super::sharding::Sharding;

/// What `@type` says.
const TYPE: &str = "neuroglancer_multiscale_volume";

/// Scales of a volume at most: each takes half the voxels along an axis at least, or is one of few variants.
const SCALES_MAX: usize = 4096;

/// Channels of a volume at most.
const CHANNELS_MAX: u64 = 1 << 31;

/// The content of the file `info`.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// What is in the volume.
    pub kind: VolumeKind,
    /// The type of a voxel.
    pub data_type: VoxelType,
    /// Values of a voxel.
    pub num_channels: u64,
    /// The same volume at several resolutions, the finest first by convention.
    pub scales: Vec<Scale>,
    /// All other members.
    pub rest: Map<String, Value>,
}

/// A volume at one resolution. Axes are x, y, z.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// The directory of its chunks, relative to the volume.
    pub key: String,
    /// Voxels along each axis.
    pub size: [u64; 3],
    /// Coordinates of the first voxel; may be negative.
    pub voxel_offset: [i64; 3],
    /// Nanometres per voxel.
    pub resolution: [f64; 3],
    /// Shapes of chunks. Each is a complete copy of the data; we read and write the first.
    pub chunk_sizes: Vec<[u64; 3]>,
    /// How a chunk is encoded.
    pub encoding: Encoding,
    /// How chunks share files; `None`: each is a file.
    pub sharding: Option<Sharding>,
    /// All other members.
    pub rest: Map<String, Value>,
}

/// What is in a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeKind {
    /// Intensities.
    Image,
    /// Labels.
    Segmentation,
}

/// The type of a voxel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoxelType {
    /// 8 bits.
    Uint8,
    /// 8 bits, signed.
    Int8,
    /// 16 bits.
    Uint16,
    /// 16 bits, signed.
    Int16,
    /// 32 bits.
    Uint32,
    /// 32 bits, signed.
    Int32,
    /// 64 bits.
    Uint64,
    /// A float of 32 bits.
    Float32,
}

/// How a chunk is encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// Little-endian voxels, x fastest.
    Raw,
    /// Labels in blocks, each with a table.
    CompressedSegmentation {
        /// Voxels of a block.
        block: [u64; 3],
    },
    /// A picture, lossy.
    Jpeg {
        /// 1 to 100, where it is known: readers do not need it.
        quality: Option<u64>,
    },
    /// A picture.
    Png,
    /// One that is known and not ours, by its name.
    Other(String),
}

/// The name of the encoding for labels.
const COMPRESSED_SEGMENTATION: &str = "compressed_segmentation";
const BLOCK_SIZE: &str = "compressed_segmentation_block_size";
const JPEG_QUALITY: &str = "jpeg_quality";

impl Info {
    /// Reads the file `info`, whose path is for messages.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        Self::of(bytes).map_err(|Wrong { what, expected, found }| Error::Corrupt {
            file: path.to_owned(),
            what,
            expected,
            found,
        })
    }

    /// Reads the same document as an argument, which the caller can correct.
    pub fn parse_argument(name: &str, bytes: &[u8]) -> Result<Self> {
        Self::of(bytes).map_err(|Wrong { what, expected, found }| {
            Error::invalid(format!("{name}: {what}: expected {expected}, found {found}"))
        })
    }

    fn of(bytes: &[u8]) -> Result<Self, Wrong> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| Wrong {
            what: "info".to_owned(),
            expected: "JSON".to_owned(),
            found: error.to_string(),
        })?;
        let mut members = Members::of("", &document)?;
        members.word_or("@type", &[(TYPE, ())], ())?;
        let kind = members.word("type", VolumeKind::WORDS)?;
        let data_type = members.word("data_type", VoxelType::WORDS)?;
        let channels = members.need("num_channels", "a number of channels")?;
        let num_channels =
            extent(&channels, 1).filter(|channels| *channels <= CHANNELS_MAX).ok_or_else(|| {
                members.wrong("num_channels", "a number from 1 to 2147483648", found(&channels))
            })?;
        let listed = members.need("scales", "a list of scales")?;
        let values = listed
            .as_array()
            .filter(|scales| (1..=SCALES_MAX).contains(&scales.len()))
            .ok_or_else(|| wrong("scales", "a list of 1 to 4096 scales", &listed))?;
        let scales = values.iter().enumerate();
        let scales = scales.map(|(at, value)| Scale::parse(&format!("scales[{at}]"), value));
        Ok(Self {
            kind,
            data_type,
            num_channels,
            scales: scales.collect::<Result<_, _>>()?,
            rest: members.rest(),
        })
    }

    /// The file `info`.
    pub fn render(&self) -> Vec<u8> {
        let mut members = Map::new();
        members.insert("@type".to_owned(), TYPE.into());
        members.insert("type".to_owned(), word(VolumeKind::WORDS, self.kind).into());
        members.insert("data_type".to_owned(), self.data_type.name().into());
        members.insert("num_channels".to_owned(), self.num_channels.into());
        members.insert("scales".to_owned(), self.scales.iter().map(Scale::render).collect());
        add_rest(&mut members, &self.rest);
        let mut text = format!("{:#}", Value::Object(members));
        text.push('\n');
        text.into_bytes()
    }
}

impl Scale {
    fn parse(at: &str, value: &Value) -> Result<Self, Wrong> {
        let mut members = Members::of(at, value)?;
        let key = members.text("key")?;
        let size = members.triple("size", "three extents", |value| extent(value, 0))?;
        let voxel_offset = match members.take("voxel_offset") {
            None => [0; 3],
            Some(value) => triple(&value, offset).ok_or_else(|| {
                members.wrong("voxel_offset", "three coordinates", listed(&value))
            })?,
        };
        let resolution = members.triple("resolution", "three positive numbers", |value| {
            value.as_f64().filter(|step| step.is_finite() && *step > 0.0)
        })?;
        let shapes = members.need("chunk_sizes", "a list of shapes")?;
        let chunk_sizes = shapes.as_array().and_then(|shapes| {
            let shapes = shapes.iter().map(|shape| triple(shape, |value| extent(value, 1)));
            shapes.collect::<Option<Vec<_>>>().filter(|shapes| !shapes.is_empty())
        });
        let chunk_sizes = chunk_sizes.ok_or_else(|| {
            members.wrong("chunk_sizes", "a list of shapes of three extents each", found(&shapes))
        })?;
        let encoding = Encoding::parse(&mut members)?;
        let sharding = members.take("sharding").map(|value| {
            Sharding::parse(&value)
                .map_err(|wrong| Wrong { what: format!("{at}.{}", wrong.what), ..wrong })
        });
        let sharding = sharding.transpose()?;
        if sharding.is_some() && chunk_sizes.len() != 1 {
            let found = format!("{} shapes", chunk_sizes.len());
            return Err(members.wrong("chunk_sizes", "one shape, because it is sharded", found));
        }
        Ok(Self {
            key,
            size,
            voxel_offset,
            resolution,
            chunk_sizes,
            encoding,
            sharding,
            rest: members.rest(),
        })
    }

    fn render(&self) -> Value {
        let mut members = Map::new();
        members.insert("key".to_owned(), self.key.clone().into());
        members.insert("size".to_owned(), json!(self.size));
        members.insert("voxel_offset".to_owned(), json!(self.voxel_offset));
        members.insert("resolution".to_owned(), self.resolution.map(number).to_vec().into());
        members.insert("chunk_sizes".to_owned(), json!(self.chunk_sizes));
        members.insert("encoding".to_owned(), self.encoding.name().into());
        if let Encoding::CompressedSegmentation { block } = &self.encoding {
            members.insert(BLOCK_SIZE.to_owned(), json!(block));
        }
        if let Encoding::Jpeg { quality: Some(quality) } = self.encoding {
            members.insert(JPEG_QUALITY.to_owned(), quality.into());
        }
        if let Some(sharding) = &self.sharding {
            members.insert("sharding".to_owned(), sharding.render());
        }
        add_rest(&mut members, &self.rest);
        Value::Object(members)
    }

    /// The shape of a chunk.
    pub fn chunk_size(&self) -> [u64; 3] {
        self.chunk_sizes.first().copied().unwrap_or([1; 3])
    }

    /// Number of chunks along each axis.
    pub fn grid(&self) -> [u64; 3] {
        let chunk = self.chunk_size();
        let mut grid = self.size;
        grid.iter_mut().zip(chunk).for_each(|(extent, chunk)| *extent = extent.div_ceil(chunk));
        grid
    }
}

impl VolumeKind {
    const WORDS: &[(&str, Self)] = &[("image", Self::Image), ("segmentation", Self::Segmentation)];
}

impl VoxelType {
    const WORDS: &[(&str, Self)] = &[
        ("uint8", Self::Uint8),
        ("int8", Self::Int8),
        ("uint16", Self::Uint16),
        ("int16", Self::Int16),
        ("uint32", Self::Uint32),
        ("int32", Self::Int32),
        ("uint64", Self::Uint64),
        ("float32", Self::Float32),
    ];

    /// Its name, which is also Zarr's.
    pub fn name(self) -> &'static str {
        word(Self::WORDS, self)
    }

    /// The type with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == name).map(|(_, known)| *known)
    }

    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Uint8 | Self::Int8 => 1,
            Self::Uint16 | Self::Int16 => 2,
            Self::Uint32 | Self::Int32 | Self::Float32 => 4,
            Self::Uint64 => 8,
        }
    }
}

impl Encoding {
    fn parse(members: &mut Members) -> Result<Self, Wrong> {
        // An encoding that is left out is `raw`.
        let name = match members.take("encoding") {
            None => return Ok(Self::Raw),
            Some(Value::String(name)) => name,
            Some(other) => return Err(members.wrong("encoding", "a name", found(&other))),
        };
        Ok(match name.as_str() {
            "raw" => Self::Raw,
            "jpeg" => {
                let quality = |value: &Value| value.as_u64().filter(|n| (1..=100).contains(n));
                Self::Jpeg { quality: members.take(JPEG_QUALITY).as_ref().and_then(quality) }
            }
            "png" => Self::Png,
            COMPRESSED_SEGMENTATION => {
                let extents = "three extents";
                let block = members.triple(BLOCK_SIZE, extents, |value| extent(value, 1))?;
                Self::CompressedSegmentation { block }
            }
            _ => Self::Other(name),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Raw => "raw",
            Self::CompressedSegmentation { .. } => COMPRESSED_SEGMENTATION,
            Self::Jpeg { .. } => "jpeg",
            Self::Png => "png",
            Self::Other(name) => name,
        }
    }
}

fn offset(value: &Value) -> Option<i64> {
    value.as_i64().filter(|offset| offset.unsigned_abs() <= EXTENT_MAX)
}

/// A number, without a fraction where it is whole.
fn number(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < (1u64 << 53) as f64 {
        true => json!(value as i64),
        false => json!(value),
    }
}

/// Adds members that are not there yet.
fn add_rest(members: &mut Map<String, Value>, rest: &Map<String, Value>) {
    for (name, value) in rest {
        if !members.contains_key(name) {
            members.insert(name.clone(), value.clone());
        }
    }
}
