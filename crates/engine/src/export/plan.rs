//! What an export will do: everything that another process needs to do a part of it.

use std::any::Any;
use std::sync::Arc;

use chunkyard_format::precomputed::Info;
use chunkyard_format::{OpenOptions, Place, Source, Version};
use chunkyard_labels::Ids;
use chunkyard_store::{Error, Result, Store, publish};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arrow::ArrowOptions;
use super::geometry::Level;
use super::segmentation::Segmentation;
use super::spec::{self, Wanted};
use crate::block_table::TableSource;
use crate::open::recognise;
use crate::pipeline::refuse_overlap;

/// The file of the plan.
pub const PLAN: &str = "export.json";
/// The file of the specification.
pub const SPEC: &str = "spec.json";
/// The version of plans that are written here.
const VERSION: u32 = 1;

/// What an export writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Emit {
    /// Arrow shards.
    Arrow,
    /// A Neuroglancer volume.
    Precomputed,
    /// Block tables.
    Table,
}

/// What is to be exported, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// URL of the source.
    pub source: String,
    /// How it is opened, the version included.
    pub open: OpenOptions,
    /// The specification; chosen if there is none.
    pub spec: Option<Vec<u8>>,
    /// The array, or the group of scales, if the source holds several.
    pub array: Option<String>,
    /// How many scales; as many as specification and source have if not given.
    pub scales: Option<usize>,
    /// What labels are.
    pub ids: Ids,
    /// What is written.
    pub emit: Vec<Emit>,
    /// How Arrow shards are written.
    pub arrow: ArrowOptions,
    /// How many voxels become one, along x, y and z.
    pub factor: [u64; 3],
}

impl Default for Request {
    fn default() -> Self {
        Self {
            source: String::new(),
            open: OpenOptions::default(),
            spec: None,
            array: None,
            scales: None,
            ids: Ids::Bodies,
            emit: vec![Emit::Arrow],
            arrow: ArrowOptions::default(),
            factor: [1; 3],
        }
    }
}

/// What an export will do. Two exports with equal plans write equal shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the form of a plan.
    pub version: u32,
    /// URL of the source.
    pub source: String,
    /// The version of the source, for formats that keep several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_version: Option<Version>,
    /// What tells this state of the source from a later one.
    pub identity: String,
    /// What tells the bodies of the supervoxels from others, which may change while the blocks do not; none if every
    /// supervoxel is its own body. Known when the source is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// What labels are.
    pub ids: Ids,
    /// What is written.
    pub emit: Vec<Emit>,
    /// How Arrow shards are written.
    pub arrow: ArrowOptions,
    /// The arrays of the scales; none for a scale without voxels.
    pub levels: Vec<Option<Level>>,
    /// The specification, with the scales that are exported.
    pub spec: Value,
}

impl Plan {
    /// Opens the source of a request and plans. Nothing is written.
    pub async fn prepare(request: &Request, target: &Store) -> Result<(Self, Arc<dyn Source>)> {
        let place = Place::new(&request.source, &request.open.store)?;
        let format = recognise(&place).await?;
        let source = format.open(&place, &request.open).await?;
        Ok((Self::of(&source, &place, request, target)?, source))
    }

    /// Plans the export of an open source. It is [`Error::Invalid`] if source and target lie in each other.
    pub fn of(
        source: &Arc<dyn Source>,
        place: &Place,
        request: &Request,
        target: &Store,
    ) -> Result<Self> {
        refuse_overlap(&**source, place, target.url())?;
        spec::check_factor(request.factor)?;
        request.arrow.check()?;
        let mut emit = request.emit.clone();
        emit.sort_unstable();
        emit.dedup();
        if emit.is_empty() {
            return Err(Error::invalid(
                "there is nothing to write: name arrow, precomputed or table",
            ));
        }
        if request.scales == Some(0) {
            return Err(Error::invalid("an export has at least one scale, not 0"));
        }
        let any: &dyn Any = &**source;
        let table = any.downcast_ref::<TableSource>();
        let column = table.map(|_| TableSource::group(request.ids == Ids::Supervoxels));
        let path = request.array.as_deref().or(column);
        let segmentation = Segmentation::find(&**source, path, request.factor)?;
        let most = request.scales.unwrap_or(usize::MAX).min(segmentation.levels.len());
        // The tables of a shard make a shard of the volume that they were written for.
        let known = table.filter(|_| request.factor == [1; 3]).map(TableSource::info);
        let mut info = match (&request.spec, known) {
            (Some(bytes), _) => Info::parse_argument(spec::NAME, bytes)?,
            (None, Some(known)) => known.clone(),
            (None, None) => spec::choose(&segmentation, most)?,
        };
        // A scale that is not exported may be wrong as well, and then all of it is suspect.
        let wanted = Wanted {
            arrow: emit.contains(&Emit::Arrow),
            precomputed: emit.contains(&Emit::Precomputed),
            table: emit.contains(&Emit::Table),
        };
        spec::check(&info, wanted)?;
        info.scales.truncate(most);
        let levels = spec::levels(&segmentation, info.scales.len());
        Ok(Self {
            version: VERSION,
            source: place.url().to_owned(),
            source_version: source.version().or_else(|| request.open.version.clone()),
            identity: source.identity(),
            mapping: None,
            ids: request.ids,
            emit,
            arrow: request.arrow.clone(),
            levels,
            spec: serde_json::from_slice(&info.render()).map_err(unreadable)?,
        })
    }

    /// The specification.
    pub fn info(&self) -> Result<Info> {
        Info::parse_argument("the plan of the export", self.spec.to_string().as_bytes())
    }

    /// Whether something is written.
    pub fn emits(&self, what: Emit) -> bool {
        self.emit.contains(&what)
    }

    /// Reads the plan of a target; `None` if it has none.
    pub async fn read(target: &Store) -> Result<Option<Self>> {
        let bytes = match target.get(PLAN).await {
            Ok(object) => object.bytes,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Self::parse(&target.object_url(PLAN), &bytes).map(Some)
    }

    /// Reads a plan; `file` is for messages.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(bytes).map_err(|error| Error::Corrupt {
            file: file.to_owned(),
            what: "plan".to_owned(),
            expected: "the plan of an export".to_owned(),
            found: error.to_string(),
        })?;
        match plan.version {
            VERSION => Ok(plan),
            newer => Err(Error::unsupported(format!("{file}: a plan of version {newer}"))),
        }
    }

    /// The plan as it is written.
    pub fn render(&self) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self).map_err(unreadable)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Claims a target for this plan: writes it, or finds it there. The target of another export is refused.
    pub async fn claim(&self, target: &Store) -> Result<()> {
        match Self::read(target).await? {
            Some(there) => there.refuse_other(self, target),
            None => {
                let mut spec = serde_json::to_vec_pretty(&self.spec).map_err(unreadable)?;
                spec.push(b'\n');
                let spec = (SPEC.to_owned(), spec.into());
                publish::publish(target, vec![spec]).await?;
                publish::publish(target, vec![(PLAN.to_owned(), self.render()?.into())]).await
            }
        }
    }

    /// Refuses a source that is not the plan's.
    pub fn refuse_other_source(&self, place: &Place) -> Result<()> {
        match self.source == place.url() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "the export is of {}, not of {}",
                self.source,
                place.url()
            ))),
        }
    }

    /// Refuses a plan that is not this one, and says what differs.
    fn refuse_other(&self, wanted: &Self, target: &Store) -> Result<()> {
        let differs = [
            ("source", self.source != wanted.source || self.levels != wanted.levels),
            ("version of the source", self.source_version != wanted.source_version),
            ("state of the source", self.identity != wanted.identity),
            ("mapping of supervoxels to bodies", self.mapping != wanted.mapping),
            ("specification", self.spec != wanted.spec),
            ("choice of ids", self.ids != wanted.ids),
            ("choice of what is written", self.emit != wanted.emit),
            ("form of Arrow shards", self.arrow != wanted.arrow),
        ];
        let names: Vec<&str> =
            differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} holds another export, with another {}; name another target, or delete that one",
            target.url(),
            names.join(" and another ")
        )))
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::invalid(format!("a plan that cannot be written: {error}"))
}
