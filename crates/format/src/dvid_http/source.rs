//! An open labelmap: its arrays, where its chunks are, and what else the server says about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::codec::label_block::{self, value};
use chunkyard_array::{Attributes, ChunkIndex, Grid, GroupSpec, Region};
use chunkyard_store::dvid_http::{Address, DvidBackend, DvidClient, Instance, Stream};
use chunkyard_store::{ChunkRef, Error, Fetcher, Limits, Noun, Options, Remotes, Result, Store};
use futures::stream::{self, StreamExt};
use serde_json::json;

use super::info::{Info, corrupt};
use super::level::Level;
use super::repos::{self, Node as Version, Repo};
use super::walk;
use crate::{ChunkStream, Dataset, Locate, Node, Occupied, Source};

/// The most bytes of the description of a data instance.
const INFO_BYTES_MAX: usize = 16 << 20;
/// Labels whose sizes are asked for in one request.
const SIZES_PER_REQUEST: usize = 10_000;

/// A labelmap of a DVID server at one version. Only descriptions have been read.
#[derive(Debug)]
pub struct DvidSource {
    backend: Arc<DvidBackend>,
    info: Info,
    repo: Repo,
    version: Version,
    dataset: Dataset,
    levels: BTreeMap<String, Level>,
    fetcher: Fetcher,
}

impl DvidSource {
    /// Opens the labelmap at a URL, `dvid+http://host:port/version/data`.
    pub async fn open(url: &str, options: &Options) -> Result<Self> {
        let address = Address::parse(url)?;
        let client = DvidClient::new(&address.server, options)?;
        let (repo, version) = repos::resolve(&client, &address.version).await?;
        let (uuid, data): (Arc<str>, Arc<str>) =
            (version.uuid.as_str().into(), address.data.into());
        // The version is fixed from here on, even if the branch moves.
        let joined = repo.is_joined(&version);
        let (block_shape, record_bytes_max) = ([0; 3], 0);
        let mut instance = Instance { uuid, data, block_shape, record_bytes_max, joined };
        let described = instance.url(&client, &["info"], "");
        let info = Info::parse(&client.get(&described, None, INFO_BYTES_MAX).await?)?;
        let [x, y, z] = info.block_size;
        instance.block_shape = [z, y, x];
        instance.record_bytes_max = block_bytes_max(info.block_size)?;

        let mut dataset = Dataset::default();
        dataset.insert("/", Node::Group(GroupSpec::new(provenance(&instance, &info))));
        let mut levels = BTreeMap::new();
        for scale in 0..=info.max_level {
            let (path, level) = (format!("/s{scale}"), Level::new(&info, scale)?);
            dataset.insert(path.clone(), Node::Array(level.node.clone()));
            levels.insert(path, level);
        }
        let backend = Arc::new(DvidBackend::new(client, instance));
        let store = Store::from_backend(url.trim_end_matches('/'), backend.clone());
        let nowhere = Arc::new(Remotes::new(Vec::new(), Options::default()));
        let fetcher = Fetcher::new(store, nowhere, options.limits, true);
        Ok(Self { backend, info, repo, version, dataset, levels, fetcher })
    }

    /// What the server says about the data.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The version that is read.
    pub fn node(&self) -> &Version {
        &self.version
    }

    /// The repository that it is a version of.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// How the server is reached.
    pub fn client(&self) -> &DvidClient {
        self.backend.client()
    }

    /// The body of each supervoxel that is not its own body, in no order; 0 says that the id is retired. A stream that ends
    /// with an error has to be begun anew.
    pub fn mapping(&self) -> Stream<(u64, u64)> {
        self.backend.mapping()
    }

    /// All bodies from `start` on, ascending. With `sizes` also the voxels of each, for which the server reads every index.
    pub fn labels(&self, start: u64, sizes: bool) -> Stream<(u64, Option<u64>)> {
        self.backend.labels(start, sizes)
    }

    /// The label indices of bodies, in the order asked, as the protocol buffers that the server keeps (`LabelIndex`); `None`
    /// for a body that is not there.
    pub fn indices(&self, labels: Vec<u64>) -> Result<Stream<(u64, Option<Bytes>)>> {
        let bytes_max = self.limits().bytes_in_flight;
        let unwrap = move |(label, stored): (u64, Option<Bytes>)| {
            let Some(stored) = stored else { return Ok((label, None)) };
            let plain = value::unwrap(&stored, bytes_max).map_err(|error| {
                corrupt(&format!("index of label {label}"), "a value of DVID", error)
            })?;
            Ok((label, Some(Bytes::from(plain.into_owned()))))
        };
        Ok(self.backend.indices(labels)?.map(move |found| found.and_then(unwrap)).boxed())
    }

    /// The voxels of bodies, in the order asked; with `supervoxels`, of supervoxels.
    pub async fn sizes(&self, labels: &[u64], supervoxels: bool) -> Result<Vec<u64>> {
        let client = self.client();
        let query = if supervoxels { "supervoxels=true" } else { "" };
        let url = self.backend.instance().url(client, &["sizes"], query);
        let mut sizes = Vec::with_capacity(labels.len());
        for batch in labels.chunks(SIZES_PER_REQUEST) {
            let body = json!(batch).to_string().into();
            // A number has at most twenty digits and a comma.
            let answer = client.get(&url, Some(body), batch.len() * 24 + 1024).await?;
            let found: Vec<u64> = serde_json::from_slice(&answer)
                .map_err(|error| corrupt("sizes", "a list of numbers", error))?;
            if found.len() != batch.len() {
                return Err(corrupt(
                    "sizes",
                    "one for each label",
                    format!("{} for {}", found.len(), batch.len()),
                ));
            }
            sizes.extend(found);
        }
        Ok(sizes)
    }

    fn limits(&self) -> &Limits {
        self.client().limits()
    }

    fn level(&self, path: &str) -> Result<&Level> {
        let missing = || Error::NotFound { what: Noun::Array, name: path.to_owned() };
        self.levels.get(path).ok_or_else(missing)
    }
}

/// The most bytes of a block as it is sent: gzip adds little to what it cannot compress.
fn block_bytes_max(block_size: [u32; 3]) -> Result<u32> {
    let plain = label_block::encoded_bytes_max(block_size)?;
    let packed = plain.saturating_add(plain / 64).saturating_add(1024);
    Ok(u32::try_from(packed).unwrap_or(u32::MAX))
}

/// Where the data is from, for those who find it elsewhere later.
fn provenance(instance: &Instance, info: &Info) -> Attributes {
    let of = json!({"uuid": &*instance.uuid, "data": &*instance.data, "data_uuid": info.data_uuid});
    Attributes::from_iter([("dvid".to_owned(), of)])
}

#[async_trait]
impl Locate for DvidSource {
    /// Where chunks would be. Whether they are there only the server knows, and says when they are fetched.
    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let level = self.level(array)?;
        let reference = |chunk: &ChunkIndex| {
            let path = level.block(chunk)?.to_string().into();
            Some(ChunkRef::Whole { path })
        };
        Ok(chunks.iter().map(reference).collect())
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

impl Source for DvidSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let Info { data_uuid, .. } = &self.info;
        let Version { uuid, locked, updated, .. } = &self.version;
        match locked {
            true => format!("dvid {data_uuid} {uuid} locked"),
            false => {
                let mutation = self.repo.mutation_id;
                format!("dvid {data_uuid} {uuid} open, mutation {mutation}, updated {updated}")
            }
        }
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        match self.level(array) {
            Err(error) => stream::once(async { Err(error) }).boxed(),
            Ok(level) => match level.chunks_in(within) {
                None => stream::empty().boxed(),
                Some(chunks) => walk::chunks(&self.backend, level, chunks),
            },
        }
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let level = self.level(array)?;
        let cell: Vec<u64> =
            level.grid.chunk_shape().iter().map(|edge| edge.saturating_mul(walk::CELL)).collect();
        let grid = Grid::new(level.grid.array_shape(), &cell)?;
        Ok(Occupied::Cells { grid, cells: walk::cells(&self.backend, level) })
    }

    fn cautions(&self) -> Vec<String> {
        let Version { uuid, locked, .. } = &self.version;
        let mut cautions = Vec::new();
        if !locked {
            cautions.push(format!(
                "version {uuid} of the DVID server is not locked: it may change while it is read"
            ));
        }
        if self.backend.instance().joined {
            cautions.push(format!(
                "version {uuid} was joined from several: a block that more than one of them changed \
                 cannot be read from old DVID servers, and newer ones leave it out without a word"
            ));
        }
        cautions
    }
}
