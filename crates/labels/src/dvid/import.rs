//! Which versions become which commits, on which branches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_format::Meter;
use chunkyard_format::dvid::{Blocks, DvidStore, Instance, InstanceInfo, Repo, VersionNode};
use chunkyard_repo::{CommitOptions, Repository, Uid, Version};
use chunkyard_store::{Error, Noun, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::logs::{Known, Rows, mutations, read_logs};
use super::version::Step;
use crate::{Labelmap, Layout};

/// Differences that are listed; more are counted.
const LISTED: usize = 1000;
/// Hexadecimal digits of a UUID that tell two branches of one name apart.
const SHORT: usize = 8;

/// Which versions are imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WhichVersions {
    /// All of them.
    #[default]
    All,
    /// These: beginnings of UUIDs, or `uuid:branch`. Each is compared with the nearest of them among its first
    /// parents.
    These(Vec<String>),
}

/// How a history is imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The group of the new labelmap.
    pub path: String,
    /// The name of the data; the only labelmap if there is none.
    pub data: Option<String>,
    /// Which versions.
    pub versions: WhichVersions,
    /// Whether blocks that cannot be read are left out and listed. Otherwise they are an error, and nothing is
    /// imported.
    pub skip_corrupt: bool,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ImportReport {
    /// The versions, parents before children.
    pub versions: Vec<ImportedVersion>,
    /// Blocks that were left out.
    pub damaged: Vec<DamagedBlock>,
    /// What may be missing.
    pub cautions: Vec<String>,
}

/// A version that was imported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ImportedVersion {
    /// Its UUID.
    pub uuid: String,
    /// Its commit.
    pub snapshot: String,
    /// The branch that the commit is on.
    pub branch: String,
    /// Blocks of all scales that were written.
    pub blocks: u64,
    /// Blocks of all scales that were erased.
    pub erased: u64,
    /// Rows of the mapping that were written.
    pub mapped: u64,
    /// Mutations that its logs have.
    pub mutations: u64,
    /// Bodies whose voxels are not what DVID counted, at most a thousand of them.
    pub differences: Vec<IndexDifference>,
    /// How many such bodies there are.
    pub difference_count: u64,
}

/// A body that DVID counted differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct IndexDifference {
    /// The body.
    pub body: u64,
    /// Its voxels in the blocks.
    pub voxels: u64,
    /// Its voxels in DVID's index.
    pub dvid_voxels: u64,
}

/// A block that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DamagedBlock {
    /// The UUID of the version.
    pub version: String,
    /// The scale.
    pub scale: usize,
    /// The position of the block along z, y, x, as DVID counts.
    pub block: [i64; 3],
    /// What is wrong.
    pub error: String,
}

/// The labelmaps of a version, each in numbers.
pub async fn list(store: &DvidStore, uuid: Option<&str>) -> Result<Vec<InstanceInfo>> {
    let (repo, version) = store.find(uuid)?;
    let mut found = Vec::new();
    for instance in repo.instances.iter().filter(|instance| instance.is_labelmap()) {
        found.push(store.describe(repo, instance, version).await?);
    }
    Ok(found)
}

/// Imports versions of a labelmap of DVID, each as one commit. `uuid` names any version of the repository of DVID,
/// which may be left out if a store has one only. The meter counts blocks.
///
/// Commits are made on branches of their own, and the branches that are meant are moved or made in the end: a failed
/// import leaves nothing but what the next collection of garbage removes.
pub async fn import_history(
    repo: &Repository,
    store: &DvidStore,
    uuid: Option<&str>,
    options: &ImportOptions,
    meter: &Meter,
) -> Result<ImportReport> {
    let source = match (store.repos(), uuid) {
        ([one], None) => one,
        (_, uuid) => store.find(uuid)?.0,
    };
    let instance = source.labelmap(options.data.as_deref())?;
    let chosen = choose(source, &options.versions)?;
    let mut import = Import {
        repo,
        store,
        source,
        instance,
        options,
        meter,
        chosen,
        prefix: format!("importing-{}", Uid::fresh()?),
        base: repo.state().await?.resolve(&Version::Default)?.snapshot_id.clone(),
        working: BTreeMap::new(),
        tips: BTreeMap::new(),
        report: ImportReport { cautions: store.cautions().to_vec(), ..ImportReport::default() },
    };
    if !store.has_logs() {
        import
            .report
            .cautions
            .push("there are no mutation logs: every supervoxel is a body of its own".to_owned());
    }
    let done = match import.run().await {
        Ok(()) => import.publish().await,
        Err(error) => Err(error),
    };
    let tidied = import.tidy().await;
    done?;
    tidied?;
    Ok(import.report)
}

/// The versions that are imported, parents before children.
fn choose(repo: &Repo, which: &WhichVersions) -> Result<Vec<u32>> {
    let order = repo.dag.in_order();
    let WhichVersions::These(names) = which else { return Ok(order) };
    let wanted = names.iter().map(|name| repo.dag.find(Some(name)));
    let wanted = wanted.collect::<Result<BTreeSet<u32>>>()?;
    if wanted.is_empty() {
        return Err(Error::invalid("no versions to import"));
    }
    Ok(order.into_iter().filter(|id| wanted.contains(id)).collect())
}

struct Import<'a> {
    repo: &'a Repository,
    store: &'a DvidStore,
    source: &'a Repo,
    instance: &'a Instance,
    options: &'a ImportOptions,
    meter: &'a Meter,
    chosen: Vec<u32>,
    prefix: String,
    /// The tip of the default branch when the import began.
    base: String,
    /// The working branch of each branch.
    working: BTreeMap<String, String>,
    /// The last version of each branch.
    tips: BTreeMap<String, u32>,
    report: ImportReport,
}

/// What later versions need to know of a version.
struct Done {
    branch: String,
    snapshot: String,
    mapping: Arc<Rows>,
}

impl Import<'_> {
    async fn run(&mut self) -> Result<()> {
        let (layout, first) = self.layout().await?;
        let mut done: BTreeMap<u32, Done> = BTreeMap::new();
        for version in self.chosen.clone() {
            let Some(node) = self.source.dag.get(version).cloned() else { continue };
            let line = self.source.dag.ancestry(version);
            let parent = line.iter().skip(1).copied().find(|id| done.contains_key(id));
            let known = parent.and_then(|parent| done.get(&parent));
            let (name, from) =
                self.branch(&node, parent, known.map(|known| known.branch.as_str())).await?;
            let working = match from {
                true => self.working.get(&name).cloned().unwrap_or_default(),
                false => {
                    let working = format!("{}-{}", self.prefix, self.working.len());
                    let at = known.map_or(self.base.clone(), |known| known.snapshot.clone());
                    self.repo.create_branch(&working, &Version::Snapshot(at)).await?;
                    self.working.insert(name.clone(), working.clone());
                    working
                }
            };
            // The versions whose logs are new: from this one to the parent, oldest first.
            let mut fresh: Vec<u32> =
                line.iter().copied().take_while(|id| Some(*id) != parent).collect();
            fresh.reverse();
            let before = known.map(|known| known.mapping.clone());
            let one = self
                .version(&node, parent, before, &fresh, (&layout, first), (&name, &working))
                .await?;
            self.tips.insert(name, version);
            done.insert(version, one);
        }
        Ok(())
    }

    /// Imports one version.
    async fn version(
        &mut self,
        node: &VersionNode,
        parent: Option<u32>,
        before: Option<Arc<Rows>>,
        fresh: &[u32],
        (layout, first): (&Layout, [i64; 3]),
        (name, working): (&str, &str),
    ) -> Result<Done> {
        let resolver = self.source.dag.resolver(node.id)?;
        let blocks = self.store.blocks(self.instance, &resolver).await?;
        let old_blocks: Option<Blocks> = match parent {
            None => None,
            Some(parent) => {
                let resolver = self.source.dag.resolver(parent)?;
                Some(self.store.blocks(self.instance, &resolver).await?)
            }
        };
        let logs = read_logs(self.store, self.source, self.instance, fresh).await?;
        self.report.cautions.extend(logs.iter().filter_map(|log| log.caution.clone()));
        let old: Rows = before.as_deref().cloned().unwrap_or_default();
        let mut mapping = old.clone();
        let (mut running, mut log_rows, mut history) = (old.clone(), Vec::new(), Vec::new());
        let known = self.known_mutations(&resolver).await?;
        for log in logs {
            let (rows, moves) = mutations(&log.records, &mut running, &known);
            log_rows.extend(rows);
            history.extend(moves);
            mapping.extend(log.replay.mapping);
        }
        let remapped: Rows = mapping
            .iter()
            .filter(|(supervoxel, body)| old.get(supervoxel) != Some(body))
            .map(|(supervoxel, body)| (*supervoxel, *body))
            .collect();
        let mapping = Arc::new(mapping);
        let session = self.repo.writable_session(working).await?;
        let map = match parent {
            None => Labelmap::create(&session, &self.options.path, layout.clone()).await?,
            Some(_) => Labelmap::open(&session, &self.options.path).await?,
        };
        let step = Step {
            store: self.store,
            dag: &self.source.dag,
            uuid: &node.uuid,
            map: &map,
            first,
            before: old_blocks.as_ref().map(|blocks| (blocks, &old)),
            blocks: &blocks,
            mapping: &mapping,
            remapped: &remapped,
            mutations: &log_rows,
            history: &history,
            skip_corrupt: self.options.skip_corrupt,
            meter: self.meter,
        };
        let written = step.write().await?;
        let mut one = ImportedVersion {
            uuid: node.uuid.clone(),
            branch: name.to_owned(),
            blocks: written.blocks,
            erased: written.erased,
            mapped: remapped.len() as u64,
            mutations: log_rows.len() as u64,
            ..ImportedVersion::default()
        };
        let differ = |body, voxels, dvid_voxels| {
            one.difference_count += 1;
            if one.differences.len() < LISTED {
                one.differences.push(IndexDifference { body, voxels, dvid_voxels });
            }
        };
        step.compare(self.instance, &resolver, differ).await?;
        let commit = CommitOptions {
            properties: self.properties(node),
            allow_empty: true,
            ..CommitOptions::message(message(node))
        };
        let snapshot = session.commit(commit).await?.snapshot_id.clone();
        one.snapshot = snapshot.clone();
        self.report.damaged.extend(written.damaged);
        self.report.versions.push(one);
        Ok(Done { branch: name.to_owned(), snapshot, mapping })
    }

    /// When mutations were made and by whom, as far as label indices say it.
    async fn known_mutations(
        &self,
        resolver: &chunkyard_format::dvid::Resolver,
    ) -> Result<BTreeMap<u64, Known>> {
        let mut known = BTreeMap::new();
        let good = |index: chunkyard_format::dvid::LabelIndex| {
            let time_ms = index.time_ms().unwrap_or_default();
            if index.mutation != 0 && (time_ms != 0 || !index.user.is_empty()) {
                known.insert(index.mutation, Known { time_ms, user: index.user });
            }
        };
        self.store.indices(self.instance, resolver, good, |_, _| {}).await?;
        Ok(known)
    }

    fn properties(&self, node: &VersionNode) -> Map<String, Value> {
        let uuid = |id: &u32| self.source.dag.get(*id).map(|node| node.uuid.clone());
        let parents: Vec<String> = node.parents.iter().filter_map(uuid).collect();
        let mut properties = Map::from_iter([
            ("dvid_uuid".to_owned(), json!(node.uuid)),
            ("dvid_data".to_owned(), json!(self.instance.name)),
            ("dvid_parents".to_owned(), json!(parents)),
        ]);
        let mut add = |name: &str, value: Value| properties.insert(name.to_owned(), value);
        if !node.note.is_empty() {
            add("dvid_note", json!(node.note));
        }
        if !node.branch.is_empty() {
            add("dvid_branch", json!(node.branch));
        }
        if let Some(time) = node.updated_ms.or(node.created_ms) {
            add("dvid_time_ms", json!(time));
        }
        if let [_, _, ..] = parents.as_slice() {
            add("dvid_joined", json!(parents.get(1..)));
        }
        properties
    }

    /// The branch of a version, and whether its last version is the parent.
    async fn branch(
        &self,
        node: &VersionNode,
        parent: Option<u32>,
        parent_branch: Option<&str>,
    ) -> Result<(String, bool)> {
        let state = self.repo.state().await?;
        let main = state.default_branch.clone();
        let name = match (parent_branch, node.parents.len()) {
            // A join goes on where its first parent is.
            (Some(branch), 2..) => branch.to_owned(),
            _ if node.branch.is_empty() => main.clone(),
            _ => node.branch.clone(),
        };
        match self.tips.get(&name) {
            Some(tip) if Some(*tip) == parent => return Ok((name, true)),
            None if name == main || !state.refs.contains_key(&name) => return Ok((name, false)),
            None => return Err(Error::AlreadyExists { what: Noun::Branch, name }),
            Some(_) => {}
        }
        let short = node.uuid.get(..SHORT).unwrap_or(&node.uuid);
        let other = format!("{name}-{short}");
        match state.refs.contains_key(&other) || self.tips.contains_key(&other) {
            true => Err(Error::AlreadyExists { what: Noun::Branch, name: other }),
            false => Ok((other, false)),
        }
    }

    /// A labelmap that has room for all versions, and the block at its beginning.
    async fn layout(&self) -> Result<(Layout, [i64; 3])> {
        let mut extents: BTreeMap<usize, ([i64; 3], [i64; 3])> = BTreeMap::new();
        for &version in &self.chosen {
            let resolver = self.source.dag.resolver(version)?;
            let blocks = self.store.blocks(self.instance, &resolver).await?;
            for scale in 0..blocks.scales() {
                let Some((low, high)) = blocks.extent(scale) else { continue };
                let (low, high) = (low.map(i64::from), high.map(i64::from));
                let known = extents.entry(scale).or_insert((low, high));
                for axis in 0..3 {
                    known.0[axis] = known.0[axis].min(low[axis]);
                    known.1[axis] = known.1[axis].max(high[axis]);
                }
            }
        }
        let Some(coarsest) = extents.keys().max().copied() else {
            return Err(Error::invalid(format!(
                "{:?} has no blocks in any version",
                self.instance.name
            )));
        };
        let too_far = || Error::unsupported(format!("{} scales of a labelmap", coarsest + 1));
        if coarsest >= 24 {
            return Err(too_far());
        }
        // Blocks of the coarsest scale begin and end with blocks of all others.
        let mut first = [i64::MAX; 3];
        let mut end = [i64::MIN; 3];
        for (scale, (low, high)) in &extents {
            for axis in 0..3 {
                let coarse = |at: i64| at << scale;
                first[axis] = first[axis].min(coarse(low[axis]) >> coarsest << coarsest);
                end[axis] = end[axis].max(coarse(high[axis] + 1));
            }
        }
        let block = self.instance.block;
        let voxels =
            |axis: usize| (end[axis] - first[axis]).unsigned_abs() * u64::from(block[axis]);
        let layout = Layout {
            scales: coarsest + 1,
            voxel_size: self.instance.voxel_size.unwrap_or([1.0; 3]),
            unit: self.instance.unit.clone(),
            origin: std::array::from_fn(|axis| first[axis] * i64::from(block[axis])),
            ..Layout::new(std::array::from_fn(voxels)).with_block(block)
        };
        layout.check()?;
        Ok((layout, first))
    }

    /// Makes the branches that are meant, and moves the default branch last: it is the one that other writers
    /// may have moved meanwhile, and then nothing is left.
    async fn publish(&self) -> Result<()> {
        let mut made = Vec::new();
        let published = self.publish_all(&mut made).await;
        if published.is_err() {
            for name in made {
                self.repo.delete_branch(name).await?;
            }
        }
        published
    }

    async fn publish_all<'a>(&'a self, made: &mut Vec<&'a str>) -> Result<()> {
        let main = self.repo.state().await?.default_branch.clone();
        for (name, working) in self.working.iter().filter(|(name, _)| **name != main) {
            self.repo.create_branch(name, &Version::Branch(working.clone())).await?;
            made.push(name);
        }
        if let Some(working) = self.working.get(&main) {
            let to = Version::Branch(working.clone());
            self.repo.reset_branch(&main, &to, Some(&self.base)).await?;
        }
        Ok(())
    }

    /// Deletes the working branches.
    async fn tidy(&self) -> Result<()> {
        for working in self.working.values() {
            self.repo.delete_branch(working).await?;
        }
        Ok(())
    }
}

fn message(node: &VersionNode) -> String {
    match node.note.trim() {
        "" => format!("DVID version {}", node.uuid),
        note => note.to_owned(),
    }
}
