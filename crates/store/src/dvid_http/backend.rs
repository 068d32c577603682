//! The blocks of a labelmap at a version, as objects `s<scale>/<z>_<y>_<x>`; read-only.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use url::Url;

use super::blocks::{Asked, Blocks};
use super::client::DvidClient;
use super::course::Stream;
use super::indices::{IndexRecords, Indices};
use super::labels::Labels;
use super::mapping::Mapping;
use super::name::BlockName;
use crate::backend::{Backend, Created, Dir, Kind, Links, Meta, Object, Replaced, Version, no};
use crate::error::{Error, Noun, Result};
use crate::guard::Guard;
use crate::local::{check_range, short};
use crate::path::check_path;
use crate::upload::Upload;

/// Blocks of one request. The server keeps a place for each, and all that it has read but not sent.
const BLOCKS_PER_REQUEST: usize = 256;

/// Bytes of the list of blocks in a URL: many web servers and proxies take 8 KiB in all.
const LIST_BYTES_MAX: usize = 6 << 10;

/// Fewer blocks than this are asked for by name, even if they fill a box.
const BOX_BLOCKS_MIN: usize = 4;

/// A labelmap of a server at a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The full UUID of the version.
    pub uuid: Arc<str>,
    /// The name of the data.
    pub data: Arc<str>,
    /// Voxels of a block along z, y and x.
    pub block_shape: [u32; 3],
    /// The most bytes of a block as the server sends it.
    pub record_bytes_max: u32,
    /// Whether the version comes from a join, so that a block may have two values. A server (DVID 1.0.0) that is asked for
    /// such a block by name says that it is not there; asked for a box, it says that it cannot answer.
    pub joined: bool,
}

impl Instance {
    /// The URL of a request about this data.
    pub fn url(&self, client: &DvidClient, path: &[&str], query: &str) -> Url {
        client.url(&[&["api", "node", &self.uuid, &self.data], path].concat(), query)
    }

    /// The URL of a request for blocks: as they are stored, and with supervoxels in them.
    pub(super) fn blocks_url(&self, client: &DvidClient, scale: u8, asked: &Asked) -> Url {
        let stored = format!("compression=blocks&supervoxels=true&scale={scale}");
        match asked {
            Asked::List(blocks) => {
                let names = blocks.iter().map(list_entry).collect::<Vec<_>>().join(",");
                self.url(client, &["specificblocks"], &format!("blocks={names}&{stored}"))
            }
            Asked::Box { start, size } => {
                let voxels = |axis: usize| i64::from(self.block_shape[axis]);
                let extent = |axis: usize| i64::from(size[axis]) * voxels(axis);
                let offset = |axis: usize| i64::from(start[axis]) * voxels(axis);
                let text = |of: &dyn Fn(usize) -> i64| format!("{}_{}_{}", of(2), of(1), of(0));
                self.url(client, &["blocks", &text(&extent), &text(&offset)], &stored)
            }
        }
    }
}

/// A block in a list of them.
fn list_entry([z, y, x]: &[i32; 3]) -> String {
    format!("{x},{y},{z}")
}

/// The store of the blocks of a labelmap, and what else the server says about it.
#[derive(Debug, Clone)]
pub struct DvidBackend {
    client: DvidClient,
    instance: Instance,
}

impl DvidBackend {
    /// The store of a labelmap. Nothing is asked yet.
    pub fn new(client: DvidClient, instance: Instance) -> Self {
        Self { client, instance }
    }

    /// How the server is reached.
    pub fn client(&self) -> &DvidClient {
        &self.client
    }

    /// The labelmap.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The stored blocks of one scale among those asked for, in no order, in one request.
    pub fn blocks(&self, scale: u8, asked: Asked) -> Stream<([i32; 3], Bytes)> {
        self.client.follow(Blocks::new(self.instance.clone(), scale, asked))
    }

    /// Whether any block of a box is stored. The answer is not read further than the first.
    pub async fn is_occupied(&self, scale: u8, start: [i32; 3], size: [u32; 3]) -> Result<bool> {
        Ok(self.blocks(scale, Asked::Box { start, size }).try_next().await?.is_some())
    }

    /// The label indices of bodies as the server stores them, in the order asked; `None` for a body that is not there.
    /// Label 0 is refused.
    pub fn indices(&self, labels: Vec<u64>) -> Result<Stream<(u64, Option<Bytes>)>> {
        let records = IndexRecords::new(labels, self.client.limits().bytes_in_flight as u64)?;
        Ok(self.client.follow(Indices { instance: self.instance.clone(), records }))
    }

    /// All bodies from `start` on, ascending; with the voxels of each, which makes the server read every index.
    pub fn labels(&self, start: u64, sizes: bool) -> Stream<(u64, Option<u64>)> {
        self.client.follow(Labels::new(self.instance.clone(), start, sizes))
    }

    /// The mapping of supervoxels to bodies, in no order. If the answer breaks off after its beginning, the stream ends with
    /// an error, and the caller begins anew: the order may be another next time.
    pub fn mapping(&self) -> Stream<(u64, u64)> {
        self.client.follow(Mapping::new(self.instance.clone()))
    }

    /// Blocks of one scale, in as few requests as the bounds allow.
    async fn fetch(&self, scale: u8, blocks: &[[i32; 3]]) -> Result<HashMap<[i32; 3], Bytes>> {
        let mut found = HashMap::with_capacity(blocks.len());
        for asked in split(blocks, self.instance.joined) {
            let mut stored = self.blocks(scale, asked);
            while let Some((block, bytes)) = stored.try_next().await? {
                found.insert(block, bytes);
            }
        }
        Ok(found)
    }

    fn refused<T>(&self, op: &str, path: &str) -> Result<T> {
        Err(no(Kind::ReadOnly, op, path))
    }
}

/// Blocks in requests, each within the bounds of one; with `boxes` by boxes alone.
fn split(blocks: &[[i32; 3]], boxes: bool) -> Vec<Asked> {
    let sorted: BTreeSet<[i32; 3]> = blocks.iter().copied().collect();
    let (mut requests, mut current, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
    for block in sorted {
        let length = list_entry(&block).len() + 1;
        if current.len() == BLOCKS_PER_REQUEST || bytes + length > LIST_BYTES_MAX {
            requests.push(std::mem::take(&mut current));
            bytes = 0;
        }
        current.insert(block);
        bytes += length;
    }
    requests.push(current);
    let mut asked = Vec::with_capacity(requests.len());
    for blocks in requests.into_iter().filter(|blocks| !blocks.is_empty()) {
        let few = blocks.len() < BOX_BLOCKS_MIN && !boxes;
        let list = Asked::List(blocks);
        match if few { list } else { list.as_box() } {
            Asked::List(blocks) if boxes => asked.extend(runs(&blocks)),
            other => asked.push(other),
        }
    }
    asked
}

/// Blocks that follow one another along x, as boxes.
fn runs(blocks: &BTreeSet<[i32; 3]>) -> Vec<Asked> {
    let mut runs: Vec<([i32; 3], u32)> = Vec::new();
    for &[z, y, x] in blocks {
        match runs.last_mut() {
            Some(([last_z, last_y, first], length))
                if [*last_z, *last_y] == [z, y]
                    && first.checked_add_unsigned(*length) == Some(x) =>
            {
                *length += 1;
            }
            _ => runs.push(([z, y, x], 1)),
        }
    }
    runs.into_iter().map(|(start, length)| Asked::Box { start, size: [1, 1, length] }).collect()
}

fn missing(path: &str) -> Error {
    Error::NotFound { what: Noun::Object, name: path.to_owned() }
}

#[async_trait]
impl Backend for DvidBackend {
    fn kind(&self) -> Kind {
        Kind::ReadOnly
    }

    fn objects_per_call(&self) -> usize {
        BLOCKS_PER_REQUEST
    }

    async fn get(&self, path: &str) -> Result<Object> {
        let found = self.get_all(&[path.into()]).await?.pop().flatten();
        let bytes = found.ok_or_else(|| missing(path))?;
        let (path, size) = (path.to_owned(), bytes.len() as u64);
        let meta = Meta { path, size, modified_ms: 0, etag: None, version: None };
        Ok(Object { bytes, meta })
    }

    async fn get_all(&self, paths: &[Arc<str>]) -> Result<Vec<Option<Bytes>>> {
        let mut scales: HashMap<u8, Vec<[i32; 3]>> = HashMap::new();
        let mut names = Vec::with_capacity(paths.len());
        for path in paths {
            check_path(path)?;
            let name = BlockName::parse(path);
            if let Some(BlockName { scale, zyx }) = name {
                scales.entry(scale).or_default().push(zyx);
            }
            names.push(name);
        }
        let mut found = HashMap::with_capacity(scales.len());
        for (scale, blocks) in scales {
            found.insert(scale, self.fetch(scale, &blocks).await?);
        }
        let bytes = |name: BlockName| found.get(&name.scale)?.get(&name.zyx).cloned();
        Ok(names.into_iter().map(|name| name.and_then(bytes)).collect())
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        let Object { bytes, meta } = self.get(path).await?;
        if let Some(guard) = guard {
            guard.check(path, &meta)?;
        }
        let part = |range: &Range<u64>| {
            check_range(path, range, meta.size)?;
            let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            let (start, end) = place.ok_or_else(|| short(path, range, meta.size))?;
            Ok(bytes.slice(start..end))
        };
        ranges.iter().map(part).collect()
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        Ok(self.get(path).await?.meta)
    }

    async fn put(&self, path: &str, _bytes: Vec<Bytes>) -> Result<()> {
        self.refused("put", path)
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.refused("write", path)
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        paths.iter().try_for_each(|path| check_path(path))
    }

    async fn create(&self, path: &str, _bytes: Bytes) -> Result<Created> {
        self.refused("create", path)
    }

    async fn replace(&self, path: &str, _bytes: Bytes, _expected: &Version) -> Result<Replaced> {
        self.refused("conditional replace", path)
    }

    async fn list_links(
        &self,
        prefix: &str,
        _links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        self.refused("list", prefix)
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        self.refused("list", prefix)
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        self.refused("delete", paths.first().map_or("nothing", String::as_str))
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        self.refused("delete", prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn instance() -> Instance {
        let block_shape = [64, 32, 16];
        Instance {
            uuid: "ab".into(),
            data: "seg".into(),
            block_shape,
            record_bytes_max: 1000,
            joined: false,
        }
    }

    #[test]
    fn requests_name_blocks_or_a_box_of_voxels() {
        let server = Url::parse("http://host:8000").unwrap();
        let client = DvidClient::new(&server, &Options::default()).unwrap();
        let url = |asked| instance().blocks_url(&client, 2, &asked).to_string();
        let list = Asked::List([[3, 2, 1], [-1, 0, 0]].into());
        assert_eq!(
            url(list),
            "http://host:8000/api/node/ab/seg/specificblocks?blocks=0,0,-1,1,2,3\
             &compression=blocks&supervoxels=true&scale=2"
        );
        assert_eq!(
            url(Asked::Box { start: [-1, 0, 3], size: [1, 2, 3] }),
            "http://host:8000/api/node/ab/seg/blocks/48_64_64/48_0_-64\
             ?compression=blocks&supervoxels=true&scale=2"
        );
    }

    #[test]
    fn requests_are_bounded_and_together_ask_for_each_block_once() {
        let mut blocks: Vec<[i32; 3]> = (0..3000).map(|n| [n / 100, n % 100, n * 7]).collect();
        blocks.extend((0..600).map(|n| [i32::MIN + n, i32::MIN, i32::MIN + 2 * n]));
        blocks.extend_from_within(..50);
        let requests = split(&blocks, false);
        let mut seen = BTreeSet::new();
        for request in &requests {
            let Asked::List(list) = request else { panic!("{request:?} is no list") };
            let text: Vec<String> = list.iter().map(list_entry).collect();
            assert!(list.len() <= BLOCKS_PER_REQUEST && text.join(",").len() <= LIST_BYTES_MAX);
            assert!(list.iter().all(|block| seen.insert(*block)), "asked twice");
        }
        assert_eq!(seen, blocks.iter().copied().collect());
        assert!(requests.len() < 20, "{} requests", requests.len());
        assert!(split(&[], false).is_empty());
    }

    #[test]
    fn a_full_box_is_asked_for_as_one() {
        let blocks: Vec<[i32; 3]> = (0..64).map(|n| [n / 16, n / 4 % 4, n % 4 - 2]).collect();
        assert_eq!(split(&blocks, false), [Asked::Box { start: [0, 0, -2], size: [4, 4, 4] }]);
        let few = split(&blocks[..2], false);
        assert!(matches!(&few[..], [Asked::List(_)]), "{few:?}");
    }

    #[test]
    fn where_a_list_may_deceive_there_are_boxes_alone() {
        let blocks = [[0, 0, -1], [0, 0, 0], [0, 0, 2], [0, 1, 3], [0, 0, i32::MAX]];
        let run = |start, length| Asked::Box { start, size: [1, 1, length] };
        let expected =
            [run([0, 0, -1], 2), run([0, 0, 2], 1), run([0, 0, i32::MAX], 1), run([0, 1, 3], 1)];
        assert_eq!(split(&blocks, true), expected);
        assert_eq!(split(&blocks[..1], true), [run([0, 0, -1], 1)]);
    }
}
