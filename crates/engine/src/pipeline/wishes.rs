//! What a user wants from a conversion, and the resulting dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_array::{Cast, DType, Region, Sharding, codec};
use chunkyard_format::{ArrayNode, Dataset, Fate, Loss, Node, Source, carry_array, carry_group};
use chunkyard_labels::Ids;
use chunkyard_store::{Error, Noun, Result};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// What a user wants; an unset wish means "as it is".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wishes {
    /// Paths of arrays, or of groups for all in them; empty for everything.
    pub arrays: Vec<String>,
    /// A box of each array, as [`Region::parse`] reads it.
    pub region: Option<String>,
    /// Shape of the chunks.
    pub chunks: Option<Vec<u64>>,
    /// Shape of the shards; `Some(None)` for none.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub shards: Option<Option<Vec<u64>>>,
    /// Codecs, as [`codec::parse_shorthand`] reads them.
    pub codec: Option<String>,
    /// Name of a data type.
    pub dtype: Option<String>,
    /// Which labels the voxels of a segmentation have; unset, those that the source stores.
    pub ids: Option<Ids>,
    /// Losses that are accepted, by name.
    pub lossy: BTreeSet<String>,
    /// The group that everything goes into; `/` when empty.
    pub into: String,
    /// Decoded bytes of a pack, which is written and resumed as a whole, unless the target's own
    /// packs are larger.
    pub pack_bytes: Option<u64>,
}

/// A present value is a wish, even if it is null.
fn said<'de, D, T>(deserializer: D) -> std::result::Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// The loss of digits when a value is rounded.
const ROUNDING: &str = "rounding";
/// The loss of a pyramid whose positions cannot be kept true.
const POSITIONS: &str = "positions";

/// An array to be made, and its source.
#[derive(Debug, Clone)]
pub(super) struct ArrayWish {
    /// Path in the source.
    pub(super) source: String,
    /// The part of the source array that is wanted.
    pub(super) region: Region,
    pub(super) cast: Option<Cast>,
}

/// The dataset that is wanted, and where each of its arrays comes from.
#[derive(Debug, Clone, Default)]
pub(super) struct WantedDataset {
    pub(super) dataset: Dataset,
    pub(super) arrays: BTreeMap<String, ArrayWish>,
}

impl Wishes {
    /// Applies the wishes to a source. `name` is for an array that has none because it is the root.
    pub(super) fn apply(&self, from: &dyn Source, name: &str) -> Result<WantedDataset> {
        let source = from.dataset();
        self.refuse_losses(&source.losses)?;
        if normal(&self.into) != "/" {
            chunkyard_store::check_path(self.into.trim_matches('/'))?;
        }
        let mut wanted = WantedDataset::default();
        let mut losses = Vec::new();
        for (path, node) in &source.nodes {
            match node {
                Node::Group(group) if self.selects_group(source, path) => {
                    let fate = |array: &str| self.fate(source, array);
                    let (group, lost) = carry_group(path, group, source, &fate);
                    let loss = |what| Loss { name: POSITIONS.to_owned(), what };
                    losses.extend(lost.into_iter().map(loss));
                    wanted.dataset.insert(self.target_path(path, name), Node::Group(group));
                }
                Node::Array(array) if self.selects(path) => {
                    let target = self.target_path(path, name);
                    let (made, place) = self
                        .array(path, array, from.codecs_elsewhere(path))
                        .map_err(|error| Error::for_array(path, error))?;
                    wanted.dataset.insert(target.clone(), Node::Array(Arc::new(made)));
                    wanted.arrays.insert(target, place);
                }
                _ => {}
            }
        }
        self.refuse_losses(&losses)?;
        for asked in &self.arrays {
            let asked = normal(asked);
            if !source.nodes.keys().any(|path| is_below(path, &asked)) {
                return Err(Error::NotFound { what: Noun::Array, name: asked });
            }
        }
        if wanted.arrays.is_empty() && !self.arrays.is_empty() {
            return Err(Error::NotFound { what: Noun::Array, name: self.arrays.join(", ") });
        }
        Ok(wanted)
    }

    fn selects(&self, path: &str) -> bool {
        self.arrays.is_empty() || self.arrays.iter().any(|asked| is_below(path, &normal(asked)))
    }

    /// What becomes of an array of the source.
    fn fate(&self, source: &Dataset, path: &str) -> Fate {
        match source.array(path) {
            Ok(array) if self.selects(path) => match self.region(array) {
                Ok(region) => Fate::Kept(region.origin().to_vec()),
                // A region that does not fit is refused with the array itself.
                Err(_) => Fate::Kept(Vec::new()),
            },
            _ => Fate::Left,
        }
    }

    fn region(&self, array: &ArrayNode) -> Result<Region> {
        Ok(match &self.region {
            Some(text) => Region::parse(text, array.spec.shape())?,
            None => Region::whole(array.spec.shape()),
        })
    }

    /// A group comes along when something in it does, or when everything does.
    fn selects_group(&self, source: &Dataset, path: &str) -> bool {
        self.selects(path)
            || source.arrays().any(|(array, _)| is_below(array, path) && self.selects(array))
    }

    fn target_path(&self, path: &str, name: &str) -> String {
        let into = normal(&self.into);
        let path =
            if path == "/" && !name.is_empty() { format!("/{name}") } else { path.to_owned() };
        match (into.as_str(), path.as_str()) {
            ("/", _) => path,
            (into, "/") => into.to_owned(),
            (into, path) => format!("{into}{path}"),
        }
    }

    fn array(
        &self,
        path: &str,
        array: &ArrayNode,
        codecs_elsewhere: Option<String>,
    ) -> Result<(ArrayNode, ArrayWish)> {
        let region = self.region(array)?;
        let mut spec = carry_array(&array.spec, region.origin())?.with_shape(region.shape())?;
        // Version 2 spells keys differently; we write version 3.
        if spec.metadata().chunk_key_encoding.name() == "v2" {
            let separator = json!({"separator": "/"});
            spec = spec
                .with_chunk_key_encoding(json!({"name": "default", "configuration": separator}))?;
        }
        let mut cast = None;
        if let Some(dtype) = &self.dtype {
            let target = DType::parse(&json!(dtype)).map_err(|_| {
                Error::invalid(format!(
                    "{dtype:?} is no data type; expected a name such as uint8, int64, float32, \
                     complex64 or bool"
                ))
            })?;
            let rounding = self.lossy.contains(ROUNDING);
            if let Some(needed) = Cast::new(&spec.dtype()?, &target, rounding)? {
                let fill = needed.fill_value(&spec.metadata().fill_value)?;
                spec = spec.with_dtype(json!(dtype), fill)?;
                cast = Some(needed);
            }
        }
        if let Some(chunks) = &self.chunks {
            spec = spec.with_chunk_shape(&self.of_rank("chunks", chunks, region.rank())?)?;
        }
        if let Some(text) = self.codec.as_ref().or(codecs_elsewhere.as_ref()) {
            let codecs: Vec<Value> = codec::parse_shorthand(text, &spec.dtype()?)?;
            spec = spec.with_codecs(codecs)?;
        }
        let sharding = match &self.shards {
            None => array.sharding.clone(),
            Some(None) => None,
            Some(Some(shape)) => {
                Some(Sharding::new(&self.of_rank("shards", shape, region.rank())?))
            }
        };
        let made = ArrayNode { spec, sharding, edges: array.edges };
        // Fails now instead of after hours.
        made.packed_spec()?;
        Ok((made, ArrayWish { source: path.to_owned(), region, cast }))
    }

    fn of_rank(&self, what: &str, shape: &[u64], rank: usize) -> Result<Vec<u64>> {
        if shape.len() == rank {
            return Ok(shape.to_vec());
        }
        Err(Error::invalid(format!(
            "the {what} {shape:?} have {} dimensions, the array has {rank}; choose those that are \
             meant with --array or arrays=",
            shape.len()
        )))
    }

    /// Every loss must be accepted by its name.
    fn refuse_losses(&self, losses: &[Loss]) -> Result<()> {
        let refused: Vec<&Loss> = losses
            .iter()
            .filter(|loss| !self.lossy.contains(&loss.name))
            .filter(|loss| !loss.name.starts_with('/') || self.selects(&loss.name))
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        let lines: String =
            refused.iter().map(|loss| format!("\n  {}: {}", loss.name, loss.what)).collect();
        Err(Error::unsupported(format!(
            "converting all of it; this would be lost:{lines}\naccept each by its name, with --lossy \
             or lossy="
        )))
    }
}

/// An absolute path without a slash at the end.
fn normal(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

fn is_below(path: &str, group: &str) -> bool {
    group == "/"
        || path == group
        || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}
