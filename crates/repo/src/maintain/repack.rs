//! Repacking: chunks of packs that are mostly dead move to new packs. An ordinary commit whose
//! change is empty: the data stays what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::Result;
use serde::Serialize;

use super::mark::LiveChunks;
use super::optimise::Rewrite;
use crate::coord::Coord;
use crate::manifest::{Payload, RunBuilder};
use crate::node::{Inventory, Node};
use crate::pack::{ChunkFile, Packer};
use crate::run::levels::{self, level_of};
use crate::state::State;
use crate::swap::Loaded;
use crate::tree::Tree;
use crate::{Repository, id};

/// Which packs to rewrite.
#[derive(Debug, Clone)]
pub struct RepackOptions {
    /// Packs with less than this share of live bytes are rewritten.
    pub live_share_min: f64,
}

impl Default for RepackOptions {
    fn default() -> Self {
        Self { live_share_min: 0.5 }
    }
}

/// What was rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepackReport {
    /// The commit; none when there was nothing to do.
    pub snapshot: Option<String>,
    /// Packs that nothing of the branch's tip refers to any more.
    pub packs: u64,
    /// Chunks that moved.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Array handle to its node and the new places of its chunks.
type Moved = BTreeMap<u32, (Arc<Node>, BTreeMap<Coord, Payload>)>;

impl Repository {
    /// Moves live chunks of the branch's tip out of packs that are mostly dead. The old packs go
    /// when the snapshots that need them expire and garbage is collected.
    pub async fn repack(&self, branch: &str, options: &RepackOptions) -> Result<RepackReport> {
        let mut line = self.inner.state_file.line_up();
        loop {
            let _turn = line.turn().await;
            let current = self.load().await?;
            match self.repack_once(&current, branch, options).await {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => {}
                Err(error) => self.overtaken(&current, error).await?,
            }
        }
    }

    /// `None` when the state moved on meanwhile.
    async fn repack_once(
        &self,
        current: &Loaded,
        branch: &str,
        options: &RepackOptions,
    ) -> Result<Option<RepackReport>> {
        let state = &current.state;
        let tip = state.tip(branch)?.clone();
        let doomed = self.mostly_dead(self.live_chunks(&tip).await?, options).await?;
        let mut report = RepackReport { packs: doomed.len() as u64, ..RepackReport::default() };
        if doomed.is_empty() {
            return Ok(Some(report));
        }
        let mut tree = (*self.tree(&tip).await?).clone();
        let (moved, mut files) = self.move_chunks(doomed, state, &mut report).await?;
        let mut bytes_written = report.bytes;
        files.extend(self.apply_moves(&mut tree, moved, state, &mut bytes_written).await?);
        let rewrite = Rewrite { branch, message: "repack", tree, files, bytes_written };
        let snapshot = self.commit_rewrite(current, &tip, rewrite).await?;
        Ok(snapshot.map(|id| RepackReport { snapshot: Some(id), ..report }))
    }

    async fn mostly_dead(&self, live: LiveChunks, options: &RepackOptions) -> Result<LiveChunks> {
        let mut doomed = LiveChunks::new();
        for (file, chunks) in live {
            let size = self.store().backend().head(&format!("c/{file}")).await?.size;
            let bytes: u64 = chunks.iter().map(|(_, _, native)| native.length).sum();
            if (bytes as f64) < size as f64 * options.live_share_min {
                doomed.insert(file, chunks);
            }
        }
        Ok(doomed)
    }

    async fn move_chunks(
        &self,
        doomed: LiveChunks,
        state: &State,
        report: &mut RepackReport,
    ) -> Result<(Moved, Vec<String>)> {
        let mut packer = Packer::new(&state.config, self.fans_out());
        let (mut moved, mut files) = (Moved::new(), Vec::new());
        let lengths = doomed.values().flatten().map(|(_, _, native)| native.length);
        self.inner.options.meter.expect(lengths.sum());
        let mut doomed: Vec<_> = doomed.into_iter().collect();
        doomed.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, mut chunks) in doomed {
            chunks.sort_by_key(|(_, _, native)| native.offset);
            for (node, coord, native) in chunks {
                let payload = Payload::Native(native);
                let what = format!("a chunk of {}", node.path);
                let bytes = self.fetch_payloads(&[(&what, &payload)], &state.config).await?;
                // A fetched range may share a larger buffer; the open pack holds only its own.
                let bytes = Bytes::copy_from_slice(&bytes.into_iter().next().unwrap_or_default());
                self.inner.options.meter.advance(bytes.len() as u64);
                report.chunks += 1;
                report.bytes += bytes.len() as u64;
                let coord = Coord::from_bytes(&coord);
                let (native, complete) = packer.add(node.uid, &coord, bytes)?;
                let (_, refs) =
                    moved.entry(node.id).or_insert_with(|| (node.clone(), BTreeMap::new()));
                refs.insert(coord, Payload::Native(native));
                files.extend(self.put_chunk_file(complete).await?);
            }
        }
        files.extend(self.put_chunk_file(packer.seal()).await?);
        Ok((moved, files))
    }

    async fn put_chunk_file(&self, file: Option<ChunkFile>) -> Result<Option<String>> {
        let Some(file) = file else { return Ok(None) };
        let path = format!("c/{}", file.name);
        self.store().backend().put(&path, file.parts).await?;
        Ok(Some(path))
    }

    /// Puts a run with the new places on top of each array, and merges it with the runs below.
    async fn apply_moves(
        &self,
        tree: &mut Tree,
        moved: Moved,
        state: &State,
        bytes_written: &mut u64,
    ) -> Result<Vec<String>> {
        let writer = self.writer(state);
        let mut builder = RunBuilder::new(state.config.compat);
        for (id, (node, refs)) in &moved {
            let rank = node.array()?.shape().len();
            let rows = refs.iter().map(|(c, payload)| Ok((c.as_bytes().to_vec(), payload.clone())));
            builder.push_array(*id, rank, refs.len(), rows)?;
        }
        let written = builder.finish(writer.label("manifest"))?;
        let file: Arc<str> = id::fresh()?.into();
        let path = format!("i/{file}");
        *bytes_written += written.sealed.bytes.len() as u64;
        self.store().backend().put(&path, vec![written.sealed.bytes.clone()]).await?;
        let mut stacked = Vec::with_capacity(moved.len());
        for (id, (node, refs)) in moved {
            let mut entries = written.inventories(&file, id, level_of(refs.len() as u64));
            entries.iter_mut().for_each(|entry| entry.flags |= Inventory::OVERRIDES);
            let mut inventories = node.inventories.clone();
            inventories.append(&mut entries);
            let node = Arc::new(Node { inventories, ..(*node).clone() });
            tree.put(node.clone());
            stacked.push(node);
        }
        // The runs below still name the old packs, and collection keeps what a manifest names. So
        // they are merged, which also suits readers of the draft: they do not know stacked runs.
        let plans = stacked
            .iter()
            .filter_map(|node| Some((node.clone(), levels::plan_all(&node.inventories)?)));
        let mut files = vec![path];
        files.extend(writer.merge(tree, plans.collect(), bytes_written).await?);
        Ok(files)
    }
}
