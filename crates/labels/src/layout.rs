//! What a labelmap is made of: the group, its arrays and its tables. docs/formats/labels.md has it in full.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::SIZE_MAX;
use chunkyard_repo::TableSpec;
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The attribute that makes a group a labelmap.
pub(crate) const ATTRIBUTE: &str = "chunkyard_labelmap";
/// The version of the layout that is written here.
const VERSION: u64 = 1;
/// Scales at most: a volume of 2^64 voxels along an axis has no more.
const SCALES_MAX: usize = 32;

/// The tables of a labelmap.
pub(crate) const MAPPING: &str = "mapping";
pub(crate) const INDEX: &str = "index";
pub(crate) const BODIES: &str = "bodies";
pub(crate) const SUPERVOXELS: &str = "supervoxels";
pub(crate) const MUTATIONS: &str = "mutations";
pub(crate) const HISTORY: &str = "history";
/// All of them, in the order in which documents list them.
pub const TABLES: [&str; 6] = [MAPPING, INDEX, BODIES, SUPERVOXELS, MUTATIONS, HISTORY];

/// Shape, blocks and scales of a labelmap. Axes are z, y, x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Voxels along each axis.
    pub shape: [u64; 3],
    /// Voxels of a block along each axis.
    pub block: [u32; 3],
    /// How many arrays there are, each of half the resolution of the one before.
    pub scales: usize,
    /// Size of a voxel along each axis.
    pub voxel_size: [f64; 3],
    /// The unit of `voxel_size`, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Where the first voxel is in the space that the volume is a part of, in voxels of full resolution. Everything
    /// else here counts from that voxel.
    #[serde(default, skip_serializing_if = "is_nowhere")]
    pub origin: [i64; 3],
}

fn is_nowhere(origin: &[i64; 3]) -> bool {
    *origin == [0; 3]
}

impl Layout {
    /// A labelmap of this shape with blocks of 64 voxels, and as many scales as it takes until one block
    /// holds all.
    pub fn new(shape: [u64; 3]) -> Self {
        let mut layout = Self {
            shape,
            block: [64; 3],
            scales: 1,
            voxel_size: [1.0; 3],
            unit: None,
            origin: [0; 3],
        };
        layout.scales = layout.scales_that_help();
        layout
    }

    /// With blocks of another size, and the scales that follow.
    #[must_use]
    pub fn with_block(mut self, block: [u32; 3]) -> Self {
        self.block = block;
        self.scales = self.scales_that_help();
        self
    }

    fn scales_that_help(&self) -> usize {
        let fits = |scale: usize| {
            let shape = self.shape_at(scale);
            shape.iter().zip(self.block).all(|(&extent, block)| extent <= u64::from(block))
        };
        (0..SCALES_MAX).find(|&scale| fits(scale)).map_or(SCALES_MAX, |last| last + 1)
    }

    /// Refuses what no labelmap can be.
    pub fn check(&self) -> Result<()> {
        if self.shape.contains(&0) {
            return Err(Error::invalid(format!(
                "a labelmap of the shape {:?} has no voxels",
                self.shape
            )));
        }
        // Positions in tables are 32-bit numbers of blocks, and a downsampled block is made of eight.
        let legal = |edge: u32| edge >= 16 && edge.is_multiple_of(16) && edge <= SIZE_MAX;
        if !self.block.into_iter().all(legal) {
            return Err(Error::invalid(format!(
                "blocks of a labelmap have a multiple of 16 voxels along each axis, from 16 to {SIZE_MAX}, not {:?}",
                self.block
            )));
        }
        if self.blocks_at(0).iter().any(|&blocks| u32::try_from(blocks).is_err()) {
            return Err(Error::invalid(format!(
                "a labelmap of the shape {:?} has too many blocks",
                self.shape
            )));
        }
        if self.scales == 0 || self.scales > SCALES_MAX {
            return Err(Error::invalid(format!(
                "a labelmap has 1 to {SCALES_MAX} scales, not {}",
                self.scales
            )));
        }
        if self.voxel_size.iter().any(|size| !size.is_finite() || *size <= 0.0) {
            return Err(Error::invalid(format!("a voxel cannot be {:?} large", self.voxel_size)));
        }
        Ok(())
    }

    /// Voxels along each axis at a scale.
    pub fn shape_at(&self, scale: usize) -> [u64; 3] {
        self.shape.map(|extent| extent.div_ceil(1 << scale))
    }

    /// Blocks along each axis at a scale.
    pub fn blocks_at(&self, scale: usize) -> [u64; 3] {
        let shape = self.shape_at(scale);
        std::array::from_fn(|axis| shape[axis].div_ceil(self.block[axis].into()))
    }

    /// Voxels of a block along x, y and z, as the codec counts them.
    pub(crate) fn block_xyz(&self) -> [u32; 3] {
        let [z, y, x] = self.block;
        [x, y, z]
    }

    /// Voxels of a block.
    pub(crate) fn block_voxels(&self) -> usize {
        self.block.iter().map(|&edge| edge as usize).product()
    }

    /// The array of a scale.
    pub(crate) fn array(&self, scale: usize) -> Result<ArraySpec> {
        let chunk = self.block.map(u64::from);
        let codecs = vec![
            json!({"name": chunkyard_array::codec::label_block::NAME}),
            json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}}),
        ];
        let spec = ArraySpec::builder(&self.shape_at(scale), &chunk, "uint64")
            .fill_value(0)
            .codecs(codecs)
            .dimension_names(["z", "y", "x"])
            .build()?;
        Ok(spec)
    }

    /// The attributes of the group: what it is, and its scales in the words of OME-Zarr 0.5.
    pub(crate) fn attributes(&self) -> Result<Map<String, Value>> {
        let mut own =
            serde_json::to_value(self).map_err(|error| Error::invalid(error.to_string()))?;
        if let Some(own) = own.as_object_mut() {
            own.insert("version".into(), json!(VERSION));
        }
        let axis = |name: &str| match &self.unit {
            Some(unit) => json!({"name": name, "type": "space", "unit": unit}),
            None => json!({"name": name, "type": "space"}),
        };
        let dataset = |scale: usize| {
            let factor = (1u64 << scale) as f64;
            let size = self.voxel_size.map(|size| size * factor);
            // The middle of the first voxel of a scale lies in the middle of those it stands for.
            let shift: [f64; 3] = std::array::from_fn(|axis| {
                self.voxel_size[axis] * (self.origin[axis] as f64 + (factor - 1.0) / 2.0)
            });
            json!({"path": array_name(scale), "coordinateTransformations": [
                {"type": "scale", "scale": size}, {"type": "translation", "translation": shift}]})
        };
        let datasets: Vec<Value> = (0..self.scales).map(dataset).collect();
        let multiscales = json!({"axes": [axis("z"), axis("y"), axis("x")], "datasets": datasets});
        Ok(Map::from_iter([
            (ATTRIBUTE.to_owned(), own),
            ("ome".to_owned(), json!({"version": "0.5", "multiscales": [multiscales]})),
        ]))
    }

    /// Reads what [`Layout::attributes`] wrote; `None` if the group is no labelmap.
    pub(crate) fn parse(path: &str, attributes: &Map<String, Value>) -> Result<Option<Self>> {
        let Some(own) = attributes.get(ATTRIBUTE) else { return Ok(None) };
        let version = own.get("version").and_then(Value::as_u64);
        if let Some(newer) = version.filter(|version| *version > VERSION) {
            return Err(Error::unsupported(format!("{path} is a labelmap of version {newer}")));
        }
        let corrupt = |found: String| Error::Corrupt {
            file: path.to_owned(),
            what: format!("attribute {ATTRIBUTE}"),
            expected: "shape, block, scales and voxel_size of a labelmap".into(),
            found,
        };
        let layout: Self =
            serde_json::from_value(own.clone()).map_err(|error| corrupt(error.to_string()))?;
        layout.check().map_err(|error| corrupt(error.to_string()))?;
        Ok(Some(layout))
    }
}

/// The name of the array of a scale.
pub(crate) fn array_name(scale: usize) -> String {
    format!("s{scale}")
}

/// The columns of a table.
pub(crate) fn table(name: &str) -> Result<TableSpec> {
    let list = |name: &str, item: DataType| {
        Field::new(name, DataType::List(Arc::new(Field::new("item", item, true))), false)
    };
    let id = |name: &str| Field::new(name, DataType::UInt64, false);
    let position = |name: &str| Field::new(name, DataType::UInt32, false);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let bounds = || ["z0", "y0", "x0", "z1", "y1", "x1"].map(id);
    let (fields, key) = match name {
        MAPPING => (vec![id("supervoxel"), id("body")], 1),
        INDEX => (
            vec![
                id("body"),
                position("z"),
                position("y"),
                position("x"),
                list("supervoxels", DataType::UInt64),
                list("counts", DataType::UInt32),
                list("boxes", DataType::UInt64),
            ],
            4,
        ),
        BODIES => {
            let mut fields = vec![id("body"), id("voxels"), id("supervoxels")];
            fields.extend(bounds());
            fields.push(id("mutation"));
            (fields, 1)
        }
        SUPERVOXELS => {
            let mut fields = vec![id("supervoxel"), id("voxels"), id("body")];
            fields.extend(bounds());
            (fields, 1)
        }
        MUTATIONS => (
            vec![
                id("mutation"),
                text("kind"),
                id("body"),
                id("other"),
                list("bodies", DataType::UInt64),
                list("supervoxels", DataType::UInt64),
                Field::new("time_ms", DataType::Int64, false),
                text("user"),
                text("note"),
            ],
            1,
        ),
        _ => {
            let fields = ["supervoxel", "mutation", "before", "after", "origin"];
            (fields.map(id).to_vec(), 2)
        }
    };
    TableSpec::new(Arc::new(Schema::new(fields)), key)
}
