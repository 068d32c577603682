//! An open store: its repositories, and the blocks, indices and logs of their labelmaps.

use std::collections::BTreeSet;

use bytes::Bytes;
use chunkyard_store::{Error, ErrorKind, Noun, Options, Result, Store};
use futures::TryStreamExt;
use serde::Serialize;

use super::blocks::{Blocks, BlocksBuilder};
use super::dag::{Resolver, Stored};
use super::index::LabelIndex;
use super::keys::{self, Key};
use super::left_out;
use super::numbers;
use super::repo::{Instance, Repo};
use super::url::DvidUrl;
use crate::badger::{Badger, BadgerOptions, Entry, KeyRange};
use crate::{Finding, Place};

/// The class of metadata that describes repositories.
const REPO_CLASS: u8 = 4;
/// Where DVID's configurations put mutation logs, beside the store.
const LOGS: &str = "mutlog";
/// Bytes of a file with the answer to `GET /api/repos/info`.
const INFO_BYTES_MAX: u64 = 1 << 30;
/// Label indices fetched at once.
const INDICES_AT_ONCE: usize = 4096;

/// How a store is opened.
#[derive(Debug, Clone, Default)]
pub struct DvidOptions {
    /// How stores are reached.
    pub store: Options,
    /// Whether damaged parts are left out and [listed](Badger::skipped).
    pub skip_corrupt: bool,
}

/// A store that DVID wrote.
#[derive(Debug, Clone)]
pub struct DvidStore {
    badger: Badger,
    repos: Vec<Repo>,
    logs: Option<Store>,
    url: String,
    cautions: Vec<String>,
}

/// What a labelmap is at a version, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InstanceInfo {
    /// The instance.
    pub instance: Instance,
    /// The UUID of the version.
    pub version: String,
    /// Each scale.
    pub scales: Vec<ScaleInfo>,
    /// How many blocks have no value because two parents changed them.
    pub conflicts: usize,
}

/// A scale of a labelmap, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScaleInfo {
    /// The scale.
    pub scale: usize,
    /// Blocks that are stored.
    pub blocks: u64,
    /// Bytes of their values.
    pub stored_bytes: u64,
    /// The first voxel along z, y, x.
    pub start: [i64; 3],
    /// One after the last voxel.
    pub end: [i64; 3],
}

impl DvidStore {
    /// Whether a directory is a Badger store with DVID's metadata in it.
    pub async fn probe(store: &Store) -> Result<bool> {
        if !Badger::probe(store).await? {
            return Ok(false);
        }
        let badger =
            Badger::open_with(store, &BadgerOptions { skip_corrupt: true, at: None }).await?;
        let described = entries(&badger, &keys::meta_prefix(REPO_CLASS)).await?;
        // What a damaged part held is not known: opening says what is wrong.
        Ok(!described.is_empty() || !badger.skipped().is_empty())
    }

    /// Opens the store that a URL names.
    pub async fn open(url: &DvidUrl, options: &DvidOptions) -> Result<Self> {
        let store = Store::open(&url.directory, &options.store)?;
        let info = match &url.info {
            None => None,
            Some(path) => Some(read_file(path, &options.store).await?),
        };
        let logs = match &url.log {
            Some(path) => Some(Store::open(path, &options.store)?),
            None => beside(&store, &options.store).await?,
        };
        let mut opened = Self::open_store(&store, logs, info.as_deref(), options).await?;
        if let Some(number) = url.instance {
            opened.set_number(url, number)?;
        }
        Ok(opened)
    }

    /// Says which number in keys the data of a URL has.
    fn set_number(&mut self, url: &DvidUrl, number: u32) -> Result<()> {
        let root = match self.repos.as_slice() {
            [one] => one.root.clone(),
            _ => self.find(url.uuid.as_deref())?.0.root.clone(),
        };
        let Some(repo) = self.repos.iter_mut().find(|repo| repo.root == root) else {
            return Ok(());
        };
        let name = repo.labelmap(url.data.as_deref())?.name.clone();
        let meant = repo.instances.iter_mut().filter(|instance| instance.name == name);
        for instance in meant {
            if let Some(known) = instance.id.filter(|known| *known != number) {
                return Err(Error::invalid(format!(
                    "instance={number}: the store says that {name:?} has the number {known}"
                )));
            }
            instance.id = Some(number);
        }
        Ok(())
    }

    /// Opens a store, with its logs and the answer to `GET /api/repos/info` if they are known.
    pub async fn open_store(
        store: &Store,
        logs: Option<Store>,
        info: Option<&[u8]>,
        options: &DvidOptions,
    ) -> Result<Self> {
        let badger_options = BadgerOptions { skip_corrupt: options.skip_corrupt, at: None };
        let badger = Badger::open_with(store, &badger_options).await?;
        let mut cautions = badger.cautions().to_vec();
        let stored = stored_repos(&badger).await;
        let repos = match (info, stored) {
            (None, Ok(repos)) => repos,
            (None, Err(error)) if error.kind() == ErrorKind::Corrupt => {
                return Err(Error::Corrupt {
                    file: store.url().to_owned(),
                    what: "metadata of DVID".into(),
                    expected: "repositories; otherwise give the answer of DVID to GET /api/repos/info by info="
                        .into(),
                    found: error.to_string(),
                });
            }
            (None, Err(error)) => return Err(error),
            (Some(info), stored) => {
                let mut repos = Repo::parse_json("info", info)?;
                match &stored {
                    Ok(stored) => adopt_ids(&mut repos, stored),
                    Err(error) => cautions.push(format!("metadata of the store: {error}")),
                }
                cautions.extend(numbers::settle(&mut repos, &badger).await?);
                repos
            }
        };
        if let Some(part) = badger.skipped().into_iter().next()
            && repos.is_empty()
        {
            return Err(Error::Corrupt {
                file: part.file,
                what: "metadata of DVID".into(),
                expected: "a repository, or the answer of DVID to GET /api/repos/info by info="
                    .into(),
                found: part.error,
            });
        }
        if repos.is_empty() {
            return Err(Error::NotFound {
                what: Noun::Dataset,
                name: format!(
                    "{}: a Badger store without a DVID repository; give the answer of DVID to \
                     GET /api/repos/info by info=",
                    store.url()
                ),
            });
        }
        Ok(Self { badger, repos, logs, url: store.url().to_owned(), cautions })
    }

    /// The key-value store.
    pub fn badger(&self) -> &Badger {
        &self.badger
    }

    /// The repositories in it.
    pub fn repos(&self) -> &[Repo] {
        &self.repos
    }

    /// The directory of the store.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether there are mutation logs.
    pub fn has_logs(&self) -> bool {
        self.logs.is_some()
    }

    /// What was left out so far because it is damaged, with [`DvidOptions::skip_corrupt`].
    pub fn left_out(&self) -> Vec<Finding> {
        left_out::findings(&self.badger)
    }

    /// What may be missing.
    pub fn cautions(&self) -> &[String] {
        &self.cautions
    }

    /// The repository and the version that a user names; see [`Dag::find`](super::dag::Dag::find).
    pub fn find(&self, uuid: Option<&str>) -> Result<(&Repo, u32)> {
        if let [repo] = self.repos.as_slice() {
            return Ok((repo, repo.dag.find(uuid)?));
        }
        let found: Vec<(&Repo, u32)> = self
            .repos
            .iter()
            .filter_map(|repo| Some((repo, repo.dag.find(Some(uuid?)).ok()?)))
            .collect();
        match found.as_slice() {
            [one] => Ok(*one),
            _ => {
                let roots: Vec<String> = self
                    .repos
                    .iter()
                    .map(|repo| format!("  {} {}", repo.root, repo.alias))
                    .collect();
                Err(Error::invalid(format!(
                    "name a version by uuid=; the store has {} repositories:\n{}",
                    self.repos.len(),
                    roots.join("\n")
                )))
            }
        }
    }

    /// The blocks of a labelmap that count at a version.
    pub async fn blocks(&self, instance: &Instance, resolver: &Resolver) -> Result<Blocks> {
        let prefix = keys::class_prefix(id_of(instance)?, keys::BLOCK);
        let mut scan = self.badger.scan(KeyRange::prefix(&prefix));
        let mut builder = BlocksBuilder::new(resolver);
        while let Some(batch) = scan.try_next().await? {
            batch.into_iter().try_for_each(|entry| builder.add(entry))?;
        }
        builder.finish()
    }

    /// What DVID counted for each body, at a version. Damaged ones and those that two parents changed are given
    /// to `bad` instead.
    pub async fn indices(
        &self,
        instance: &Instance,
        resolver: &Resolver,
        good: impl FnMut(LabelIndex),
        bad: impl FnMut(u64, String),
    ) -> Result<()> {
        let prefix = keys::class_prefix(id_of(instance)?, keys::INDEX);
        self.indices_below(&prefix, resolver, good, bad).await
    }

    /// What DVID counted for one body, at a version; `None` if there is no such body.
    pub async fn index(
        &self,
        instance: &Instance,
        resolver: &Resolver,
        label: u64,
    ) -> Result<Option<LabelIndex>> {
        let mut prefix = keys::class_prefix(id_of(instance)?, keys::INDEX);
        prefix.extend_from_slice(&label.to_be_bytes());
        let (mut found, mut wrong) = (None, None);
        let good = |index| found = Some(index);
        self.indices_below(&prefix, resolver, good, |_, why| wrong = Some(why)).await?;
        match wrong {
            None => Ok(found),
            Some(why) => Err(Error::Corrupt {
                file: self.url.clone(),
                what: format!("index of label {label} of {:?}", instance.name),
                expected: "what DVID counted".into(),
                found: why,
            }),
        }
    }

    async fn indices_below(
        &self,
        prefix: &[u8],
        resolver: &Resolver,
        mut good: impl FnMut(LabelIndex),
        mut bad: impl FnMut(u64, String),
    ) -> Result<()> {
        let mut scan = self.badger.scan(KeyRange::prefix(prefix));
        let mut group: Option<u64> = None;
        let (mut stored, mut entries): (Vec<Stored>, Vec<Entry>) = (Vec::new(), Vec::new());
        let mut winners: Vec<(u64, Entry)> = Vec::new();
        loop {
            let batch = scan.try_next().await?;
            let at_end = batch.is_none();
            let parsed = batch.into_iter().flatten().filter_map(|entry| {
                let Some(Key::Data(key)) = Key::parse(&entry.key) else { return None };
                let label = keys::parse_label(key.rest)?;
                Some((label, Stored { version: key.version, tombstone: key.tombstone }, entry))
            });
            for (label, one, entry) in parsed.collect::<Vec<_>>() {
                if group != Some(label) {
                    let known = (group.replace(label), std::mem::take(&mut stored));
                    settle(known, std::mem::take(&mut entries), resolver, &mut winners, &mut bad);
                }
                stored.push(one);
                entries.push(entry);
            }
            if at_end {
                let known = (group.take(), std::mem::take(&mut stored));
                settle(known, std::mem::take(&mut entries), resolver, &mut winners, &mut bad);
            }
            if at_end || winners.len() >= INDICES_AT_ONCE {
                let (labels, some): (Vec<u64>, Vec<Entry>) =
                    std::mem::take(&mut winners).into_iter().unzip();
                let mut lost: BTreeSet<u64> = labels.iter().copied().collect();
                let mut values = self.badger.values(some);
                while let Some(batch) = values.try_next().await? {
                    for (at, value) in batch {
                        let label = labels.get(at).copied().unwrap_or_default();
                        lost.remove(&label);
                        match LabelIndex::parse_value("label index", &value) {
                            Ok(index) => good(index),
                            Err(error) => bad(label, error.to_string()),
                        }
                    }
                }
                lost.into_iter().for_each(|label| bad(label, "its value was left out".into()));
            }
            if at_end {
                return Ok(());
            }
        }
    }

    /// The mutation log of a labelmap at one version; `None` if there is none.
    pub async fn log(&self, instance: &Instance, version_uuid: &str) -> Result<Option<Bytes>> {
        let Some(logs) = &self.logs else { return Ok(None) };
        match logs.get(&format!("{}-{version_uuid}", instance.data_uuid)).await {
            Ok(log) => Ok(Some(log.bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A labelmap at a version in numbers.
    pub async fn describe(
        &self,
        repo: &Repo,
        instance: &Instance,
        version: u32,
    ) -> Result<InstanceInfo> {
        let blocks = self.blocks(instance, &repo.dag.resolver(version)?).await?;
        let scale_info = |scale: usize| {
            let (low, high) = blocks.extent(scale)?;
            let voxel = |at: i32, axis: usize| i64::from(at) * i64::from(instance.block[axis]);
            Some(ScaleInfo {
                scale,
                blocks: blocks.count(scale) as u64,
                stored_bytes: blocks.stored_bytes(scale),
                start: std::array::from_fn(|axis| voxel(low[axis], axis)),
                end: std::array::from_fn(|axis| voxel(high[axis].saturating_add(1), axis)),
            })
        };
        Ok(InstanceInfo {
            instance: instance.clone(),
            version: repo.dag.get(version).map(|node| node.uuid.clone()).unwrap_or_default(),
            scales: (0..blocks.scales()).filter_map(scale_info).collect(),
            conflicts: blocks.conflicts().len(),
        })
    }
}

/// Decides which entry of an index counts.
fn settle(
    (label, stored): (Option<u64>, Vec<Stored>),
    mut entries: Vec<Entry>,
    resolver: &Resolver,
    winners: &mut Vec<(u64, Entry)>,
    bad: &mut impl FnMut(u64, String),
) {
    let Some(label) = label else { return };
    match resolver.resolve(&stored) {
        Ok(Some(at)) if at < entries.len() => winners.push((label, entries.swap_remove(at))),
        Ok(_) => {}
        Err(versions) => bad(label, format!("changed by several parents: {versions:?}")),
    }
}

/// The number of an instance in keys.
pub(super) fn id_of(instance: &Instance) -> Result<u32> {
    instance.id.ok_or_else(|| {
        Error::unsupported(format!(
            "the data {:?}: neither the metadata nor the store says its number in keys; say it by instance=",
            instance.name
        ))
    })
}

/// Logs beside the store, if there are any.
async fn beside(store: &Store, options: &Options) -> Result<Option<Store>> {
    let url = store.url().trim_end_matches('/');
    let Some((above, _)) = url.rsplit_once('/') else { return Ok(None) };
    let Ok(logs) = Store::open(&format!("{above}/{LOGS}"), options) else { return Ok(None) };
    match logs.list_dir("").await {
        Ok(listed) if !listed.objects.is_empty() => Ok(Some(logs)),
        Ok(_) | Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read_file(url: &str, options: &Options) -> Result<Bytes> {
    let place = Place::new(url, options)?;
    let Some((store, name)) = place.object() else {
        return Err(Error::invalid(format!("{url} is no file")));
    };
    let size = store.head(name).await?.size;
    if size > INFO_BYTES_MAX {
        return Err(Error::invalid(format!("{url} has {size} bytes; {INFO_BYTES_MAX} at most")));
    }
    Ok(store.get(name).await?.bytes)
}

async fn entries(badger: &Badger, prefix: &[u8]) -> Result<Vec<Entry>> {
    let batches: Vec<Vec<Entry>> = badger.scan(KeyRange::prefix(prefix)).try_collect().await?;
    Ok(batches.into_iter().flatten().collect())
}

async fn stored_repos(badger: &Badger) -> Result<Vec<Repo>> {
    let found = entries(badger, &keys::meta_prefix(REPO_CLASS)).await?;
    let mut repos = Vec::with_capacity(found.len());
    for entry in found {
        let Some(value) = &entry.value else { continue };
        let value = badger.fetcher().fetch(&[value]).await?.pop().flatten();
        repos.push(Repo::parse_value("metadata of DVID", &value.unwrap_or_default())?);
    }
    Ok(repos)
}

/// The answer of a server lacks the numbers of instances, which the store may tell.
fn adopt_ids(repos: &mut [Repo], stored: &[Repo]) {
    let known = stored.iter().flat_map(|repo| &repo.instances);
    let known: Vec<&Instance> = known.collect();
    for instance in repos.iter_mut().flat_map(|repo| &mut repo.instances) {
        let found = known.iter().find(|known| known.data_uuid == instance.data_uuid);
        instance.id = found.and_then(|known| known.id);
    }
}
