//! A volume as a dataset, and a dataset as a volume.
//!
//! Each scale is an array, `/` and its key; the group above has the scales as a pyramid. What `info` has no place for goes
//! into a member of our own, `chunkyard`, which others keep: attributes, the names of dimensions, their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec, Sharding as Shards};
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::axes::{Axes, Axis};
use super::codecs;
use super::info::{Info, Scale, VolumeKind, VoxelType};
use super::shard_grid::ShardGrid;
use crate::{
    ArrayNode, Dataset, Edges, Multiscale, Node, Resolution, Space, Survey, check_node_path,
};

/// The member of `info`, and of a scale, that is ours.
const OURS: &str = "chunkyard";
/// The attribute that has the members of `info`, or of a scale, that we do not know.
pub(super) const THEIRS: &str = "precomputed";
pub(super) const TYPE: &str = "type";
const ATTRIBUTES: &str = "attributes";
const AXES: &str = "axes";
const GROUPS: &str = "groups";
const NAMES: &str = "dimension_names";

/// The volume of a dataset that went through [`express`](super::express::express), and the arrays of its scales.
#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) info: Info,
    /// By path, the number of the scale and how its array lies in it.
    pub(super) arrays: BTreeMap<String, (usize, Axes)>,
}

impl Volume {
    /// The volume that a dataset is.
    pub(super) fn of(dataset: &Dataset) -> Result<Self> {
        let survey = Survey::of(dataset);
        let paths = scale_paths(dataset, &survey)?;
        let theirs = root(dataset).get(THEIRS).and_then(Value::as_object).cloned();
        let mut rest = theirs.unwrap_or_default();
        let kind = match rest.shift_remove(TYPE).as_ref().and_then(Value::as_str) {
            Some("image") => Some(VolumeKind::Image),
            Some("segmentation") => Some(VolumeKind::Segmentation),
            _ => None,
        };
        let mut shared: Option<(VoxelType, u64)> = None;
        let (mut scales, mut arrays) = (Vec::new(), BTreeMap::new());
        for path in paths {
            let array = dataset.array(&path)?;
            let in_array = |error| Error::for_array(&path, error);
            let (axes, data_type) = understood(&array.spec).map_err(in_array)?;
            let num_channels = axes.channel(array.spec.shape(), 1);
            if *shared.get_or_insert((data_type, num_channels)) != (data_type, num_channels) {
                return Err(Error::unsupported(format!(
                    "{path}: all scales of a precomputed volume have one data type and number of channels, and this \
                     has {} and {num_channels}",
                    data_type.name()
                )));
            }
            let space = survey.space(&path);
            scales.push(scale(&path, array, &axes, kind, space).map_err(in_array)?);
            arrays.insert(path, (arrays.len(), axes));
        }
        let (data_type, num_channels) =
            shared.ok_or_else(|| Error::unsupported("a precomputed volume without arrays"))?;
        let kind = kind.unwrap_or(match data_type {
            VoxelType::Uint32 | VoxelType::Uint64 => VolumeKind::Segmentation,
            _ => VolumeKind::Image,
        });
        let mut volume =
            Self { info: Info { kind, data_type, num_channels, scales, rest }, arrays };
        volume.keep_the_rest(dataset)?;
        Ok(volume)
    }

    /// Notes what the volume alone does not say of a dataset.
    fn keep_the_rest(&mut self, dataset: &Dataset) -> Result<()> {
        let said = read(&self.info)?.dataset;
        for (path, (number, axes)) in &self.arrays {
            let Some(scale) = self.info.scales.get_mut(*number) else { continue };
            let mut ours = Map::new();
            if *axes != Axes::of_volume(self.info.num_channels) {
                ours.insert(AXES.to_owned(), axes.render());
            }
            let (wanted, said) = (&dataset.array(path)?.spec, said.array(path)?);
            if wanted.dimension_names() != said.spec.dimension_names() || !ours.is_empty() {
                ours.insert(NAMES.to_owned(), json!(wanted.dimension_names()));
            }
            let mut attributes = wanted.plain_attributes();
            attributes.shift_remove(THEIRS);
            let mut known = said.spec.plain_attributes();
            known.shift_remove(THEIRS);
            if attributes != known {
                ours.insert(ATTRIBUTES.to_owned(), Value::Object(attributes));
            }
            if !ours.is_empty() {
                scale.rest.insert(OURS.to_owned(), Value::Object(ours));
            }
        }
        let mut groups = Map::new();
        for (path, group) in dataset.groups() {
            let mut attributes = group.plain_attributes();
            let known = match said.nodes.get(path) {
                Some(Node::Group(group)) => group.plain_attributes(),
                _ => Attributes::new(),
            };
            if attributes != known {
                attributes.shift_remove(THEIRS);
                groups.insert(path.to_owned(), Value::Object(attributes));
            }
        }
        if !groups.is_empty() {
            self.info.rest.insert(OURS.to_owned(), json!({GROUPS: groups}));
        }
        Ok(())
    }
}

/// A volume as a dataset.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) dataset: Dataset,
    pub(super) arrays: BTreeMap<String, (usize, Axes)>,
}

/// The dataset that a volume is.
pub(super) fn read(info: &Info) -> Result<Read> {
    let (mut dataset, mut arrays) = (Dataset::default(), BTreeMap::new());
    let mut levels = Vec::with_capacity(info.scales.len());
    let mut described = Vec::new();
    for (number, scale) in info.scales.iter().enumerate() {
        let path = path_of(scale)?;
        if arrays.contains_key(&path) {
            return Err(Error::unsupported(format!("two scales with the key {}", scale.key)));
        }
        let ours = scale.rest.get(OURS);
        let kept = ours.and_then(|ours| Axes::parse(ours.get(AXES)?));
        let fits = |axes: &Axes| {
            let (sizes, channels) = (scale.size, info.num_channels);
            let back = axes.xyz(&axes.arrange(sizes, channels), 1);
            back == sizes && axes.channel(&axes.arrange(sizes, channels), 1) == channels
        };
        let axes = kept.filter(fits).unwrap_or_else(|| Axes::of_volume(info.num_channels));
        let node = array(info, scale, &axes).map_err(|error| Error::for_array(&path, error))?;
        let space = space_of(scale, &axes);
        levels.push(Resolution {
            path: path.clone(),
            scale: space.scale(),
            translation: Some(axes.arrange(
                [0, 1, 2].map(|axis: usize| {
                    let (offset, step) = (scale.voxel_offset.get(axis), scale.resolution.get(axis));
                    offset.copied().unwrap_or(0) as f64 * step.copied().unwrap_or(1.0)
                }),
                0.0,
            )),
        });
        if described.is_empty() {
            described = space
                .axes
                .iter()
                .cloned()
                .map(|axis| crate::Axis { scale: None, ..axis })
                .collect();
        }
        dataset.insert(path.clone(), Node::Array(Arc::new(node)));
        arrays.insert(path, (number, axes));
    }
    let same_rank = levels.iter().all(|level| {
        level.translation.as_ref().is_some_and(|place| place.len() == described.len())
    });
    let mut attributes = Attributes::new();
    if same_rank {
        let pyramid = Multiscale {
            group: "/".to_owned(),
            name: None,
            version: None,
            axes: described,
            levels,
        };
        attributes.insert("ome".to_owned(), pyramid.render()?);
    }
    let mut theirs = Map::new();
    theirs.insert(
        TYPE.to_owned(),
        match info.kind {
            VolumeKind::Image => "image".into(),
            VolumeKind::Segmentation => "segmentation".into(),
        },
    );
    theirs.extend(
        info.rest.iter().filter(|(name, _)| *name != OURS).map(|(n, v)| (n.clone(), v.clone())),
    );
    let kept = info.rest.get(OURS).and_then(|ours| ours.get(GROUPS)?.as_object());
    if let Some(Value::Object(root)) = kept.and_then(|groups| groups.get("/")) {
        attributes = root.clone();
    }
    attributes.insert(THEIRS.to_owned(), Value::Object(theirs));
    dataset.insert("/", Node::Group(GroupSpec::new(attributes)));
    for (path, attributes) in kept.into_iter().flatten().filter(|(path, _)| *path != "/") {
        let named = path.strip_prefix('/').is_some_and(|path| check_node_path(path).is_ok());
        if let (true, Value::Object(attributes), false) =
            (named, attributes, matches!(dataset.nodes.get(path), Some(Node::Array(_))))
        {
            dataset.insert(path.clone(), Node::Group(GroupSpec::new(attributes.clone())));
        }
    }
    Ok(Read { dataset, arrays })
}

/// The attributes of the root.
fn root(dataset: &Dataset) -> Attributes {
    match dataset.nodes.get("/") {
        Some(Node::Group(group)) => group.plain_attributes(),
        _ => Attributes::new(),
    }
}

/// The arrays that are the scales of a volume, the finest first.
fn scale_paths(dataset: &Dataset, survey: &Survey) -> Result<Vec<String>> {
    let all: Vec<String> = dataset.arrays().map(|(path, _)| path.to_owned()).collect();
    if all.len() <= 1 {
        return Ok(all);
    }
    for pyramid in &survey.multiscales {
        let levels: Vec<String> = pyramid.levels.iter().map(|level| level.path.clone()).collect();
        if levels.len() == all.len() && all.iter().all(|path| levels.contains(path)) {
            return Ok(levels);
        }
    }
    Err(Error::unsupported(format!(
        "{} arrays as one precomputed volume: it holds one array, or the levels of one pyramid; choose with --array \
         or arrays=",
        all.len()
    )))
}

/// How an array lies in a volume, and the type of its voxels.
pub(super) fn understood(spec: &ArraySpec) -> Result<(Axes, VoxelType)> {
    let rank = spec.shape().len();
    let names = spec.dimension_names().unwrap_or_default();
    let axes = Axes::of_array(names, rank).filter(|_| rank > 0).ok_or_else(|| {
        Error::unsupported(format!(
            "{rank} dimensions in a precomputed volume, which has x, y, z and channels"
        ))
    })?;
    let dtype = spec.dtype()?;
    let data_type = VoxelType::named(dtype.name()).ok_or_else(|| {
        Error::unsupported(format!(
            "{} in a precomputed volume, which has integers of 8, 16 and 32 bits, uint64 and float32; give another \
             type with --dtype",
            dtype.name()
        ))
    })?;
    Ok((axes, data_type))
}

fn scale(
    path: &str,
    node: &ArrayNode,
    axes: &Axes,
    kind: Option<VolumeKind>,
    space: Option<&Space>,
) -> Result<Scale> {
    let spec = &node.spec;
    let grid = node.grid()?;
    let chunk = axes.xyz(grid.chunk_shape(), 1);
    let origin = space.and_then(|space| space.origin.as_ref());
    let steps: Vec<f64> = match space {
        Some(space) => space.axes.iter().map(nanometres).collect(),
        None => vec![1.0; spec.shape().len()],
    };
    let theirs = spec.attributes().get(THEIRS).and_then(Value::as_object).cloned();
    let made = Scale {
        key: path.trim_start_matches('/').to_owned(),
        size: axes.xyz(spec.shape(), 1),
        voxel_offset: origin.map_or([0; 3], |origin| axes.xyz(origin, 0)),
        resolution: axes.xyz(&steps, 1.0),
        chunk_sizes: vec![chunk],
        encoding: codecs::encoding(spec, axes, kind != Some(VolumeKind::Image))?,
        sharding: None,
        rest: theirs.unwrap_or_default(),
    };
    let sharding = codecs::sharding(node, &made, axes)?;
    Ok(Scale { sharding, ..made })
}

/// The distance of neighbouring voxels along an axis.
pub(super) fn nanometres(axis: &crate::Axis) -> f64 {
    let step = axis.scale.unwrap_or(1.0);
    match axis.unit.as_deref().unwrap_or_default() {
        "angstrom" | "Å" => step / 10.0,
        "picometer" | "pm" => step / 1e3,
        "micrometer" | "micron" | "microns" | "um" | "µm" | "μm" => step * 1e3,
        "millimeter" | "mm" => step * 1e6,
        "centimeter" | "cm" => step * 1e7,
        "meter" | "m" => step * 1e9,
        // Nanometres, or a number without a unit.
        _ => step,
    }
}

/// The path of a scale's array.
pub(super) fn path_of(scale: &Scale) -> Result<String> {
    let key = scale.key.trim_matches('/').trim_start_matches("./");
    if key.is_empty() || check_node_path(key).is_err() {
        return Err(Error::unsupported(format!(
            "a scale with the key {:?}: expected a directory in the volume",
            scale.key
        )));
    }
    Ok(format!("/{key}"))
}

fn array(info: &Info, scale: &Scale, axes: &Axes) -> Result<ArrayNode> {
    let shape = axes.arrange(scale.size, info.num_channels);
    let chunk_shape = axes.arrange(scale.chunk_size(), info.num_channels);
    let ours = scale.rest.get(OURS);
    let mut attributes = Attributes::new();
    let kept = ours.and_then(|ours| ours.get(ATTRIBUTES)?.as_object());
    attributes.extend(kept.cloned().unwrap_or_default());
    let theirs: Map<String, Value> = scale
        .rest
        .iter()
        .filter(|(name, _)| *name != OURS)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !theirs.is_empty() {
        attributes.insert(THEIRS.to_owned(), Value::Object(theirs));
    }
    let spec = ArraySpec::builder(&shape, &chunk_shape, info.data_type.name())
        .codecs(codecs::chain(scale, axes, info.data_type))
        .dimension_names(axes.iter().map(Axis::name))
        .attributes(attributes)
        .build()?;
    let mut spec = match kept {
        // They were true when they were written, and say what is not to be had from the volume.
        Some(_) => spec,
        None => space_of(scale, axes).render(&spec)?,
    };
    if let Some(names) = ours.and_then(|ours| ours.get(NAMES)) {
        let names = names.as_array().map(|names| {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        let names = names.filter(|names| names.len() == shape.len());
        spec = spec.with_dimension_names(names.as_deref())?;
    }
    Ok(ArrayNode { spec, sharding: shards(scale, axes, info.num_channels)?, edges: Edges::Clipped })
}

/// The shape of a shard, where shards are boxes. It has all channels, as a chunk has.
pub(super) fn shards(scale: &Scale, axes: &Axes, num_channels: u64) -> Result<Option<Shards>> {
    let Some(grid) = ShardGrid::of(scale)? else { return Ok(None) };
    let Ok(boxes) = grid.boxes() else { return Ok(None) };
    let mut shape = scale.chunk_size();
    for (extent, cell) in shape.iter_mut().zip(boxes.cell()) {
        let Some(product) = extent.checked_mul(cell.max(1)) else { return Ok(None) };
        *extent = product;
    }
    Ok(Some(Shards::new(&axes.arrange(shape, num_channels))))
}

/// Where the voxels of a scale lie.
fn space_of(scale: &Scale, axes: &Axes) -> Space {
    let steps = axes.arrange(scale.resolution.map(Some), None);
    let described = axes.iter().zip(steps).map(|(axis, step)| crate::Axis {
        name: Some(axis.name().to_owned()),
        kind: Some(if axis == Axis::Channel { "channel" } else { "space" }.to_owned()),
        unit: step.map(|_| "nanometer".to_owned()),
        scale: Some(step.unwrap_or(1.0)),
    });
    Space {
        axes: described.collect(),
        translation: None,
        origin: Some(axes.arrange(scale.voxel_offset, 0)),
    }
}
