//! What one version writes: blocks that differ from the version before, and the rows that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::Block;
use chunkyard_array::codec::{Codecs, DVID_VALUE, label_block};
use chunkyard_format::Meter;
use chunkyard_format::dvid::{Blocks, Dag, DvidStore, Found};
use chunkyard_repo::KeyRange;
use chunkyard_store::{ChunkRef, Error, ErrorKind, Result, cpu};
use futures::TryStreamExt;
use rayon::prelude::*;
use serde_json::json;

use super::import::DamagedBlock;
use super::logs::Rows;
use crate::blocks::{At, BLOCKS_AT_ONCE, index_of};
use crate::import::Recount;
use crate::rows::{
    self, BlockKey, Body, HistoryRow, IndexRow, MappingRow, Mutation, Part, Parts, Supervoxel,
};
use crate::{Labelmap, Layout};

/// Blocks fetched at once: some ten megabytes.
const FETCHED_AT_ONCE: usize = 512;
/// Rows handed to a table at once.
const ROWS_AT_ONCE: usize = 16_384;

/// A version as it goes into a labelmap.
pub(super) struct Step<'a> {
    pub(super) store: &'a DvidStore,
    pub(super) dag: &'a Dag,
    pub(super) uuid: &'a str,
    pub(super) map: &'a Labelmap,
    /// The block of full resolution at the beginning of the labelmap, along z, y, x.
    pub(super) first: [i64; 3],
    /// Blocks and mapping of the version before; none for the first.
    pub(super) before: Option<(&'a Blocks, &'a Rows)>,
    pub(super) blocks: &'a Blocks,
    pub(super) mapping: &'a Arc<Rows>,
    /// The rows of the mapping that differ from the version before.
    pub(super) remapped: &'a Rows,
    pub(super) mutations: &'a [Mutation],
    pub(super) history: &'a [HistoryRow],
    pub(super) skip_corrupt: bool,
    pub(super) meter: &'a Meter,
}

/// What a version wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) blocks: u64,
    pub(super) erased: u64,
    pub(super) damaged: Vec<DamagedBlock>,
}

/// A block that is to be written.
struct NewBlock {
    scale: usize,
    at: At,
    value: ChunkRef,
}

/// The blocks to write, and scale and position of those to erase.
type BlockChanges = (Vec<NewBlock>, Vec<(usize, At)>);

/// A block, unwrapped and wrapped anew, and what it has of supervoxels.
struct Packed {
    scale: usize,
    at: At,
    /// `None` if all of it is label 0.
    chunk: Option<Vec<u8>>,
    parts: Vec<Part>,
}

/// The codecs of the values of a store.
pub(super) fn codecs(layout: &Layout) -> Result<Codecs> {
    let chunk = layout.block.map(u64::from);
    let names = vec![json!({"name": label_block::NAME}), json!({"name": DVID_VALUE})];
    let spec = ArraySpec::builder(&chunk, &chunk, "uint64").fill_value(0).codecs(names).build()?;
    Ok(Codecs::new(&spec)?)
}

impl Step<'_> {
    /// Writes the version to the session.
    pub(super) async fn write(&self) -> Result<Written> {
        let mut written = Written::default();
        let (wanted, gone) = self.changed_blocks(&mut written)?;
        let incremental = self.before.is_some();
        let mut overlay: BTreeMap<BlockKey, Option<Parts>> = BTreeMap::new();
        let mut changed: BTreeSet<At> = BTreeSet::new();
        if incremental {
            let fine = wanted.iter().filter(|wanted| wanted.scale == 0).map(|wanted| wanted.at);
            changed = fine
                .chain(gone.iter().filter(|(scale, _)| *scale == 0).map(|(_, at)| *at))
                .collect();
            self.forget_blocks(&changed, &mut overlay).await?;
        }
        for (scale, at) in &gone {
            self.map.session.erase_chunk(&self.map.array(*scale)?.node().path, &index_of(*at))?;
            written.erased += 1;
        }
        for some in wanted.chunks(FETCHED_AT_ONCE) {
            let packed = self.pack(some, &mut written).await?;
            let mut new_rows = Vec::new();
            for one in packed {
                let path = &self.map.array(one.scale)?.node().path;
                match one.chunk {
                    Some(chunk) => {
                        self.map.session.set_chunk(path, &index_of(one.at), chunk.into()).await?;
                        written.blocks += 1;
                    }
                    None if incremental => {
                        self.map.session.erase_chunk(path, &index_of(one.at))?;
                        written.erased += 1;
                    }
                    None => {}
                }
                if one.scale == 0 {
                    new_rows.extend(by_body(one.parts, one.at, self.mapping));
                }
            }
            match incremental {
                true => overlay.extend(new_rows.into_iter().map(|row| (row.key, Some(row.parts)))),
                false => rows::upsert(&self.map.index, &new_rows).await?,
            }
            self.meter.advance(some.len() as u64);
        }
        let rows: Vec<MappingRow> = self
            .remapped
            .iter()
            .map(|(&supervoxel, &body)| MappingRow { supervoxel, body })
            .collect();
        for rows in rows.chunks(ROWS_AT_ONCE) {
            rows::upsert(&self.map.mapping, rows).await?;
        }
        match self.before {
            None => self.count_all().await?,
            Some((_, before)) => self.count_changed(before, &changed, overlay).await?,
        }
        rows::upsert(&self.map.mutations, self.mutations).await?;
        rows::upsert(&self.map.history, self.history).await?;
        Ok(written)
    }

    /// The blocks to write, and those to erase.
    fn changed_blocks(&self, written: &mut Written) -> Result<BlockChanges> {
        let (mut wanted, mut gone) = (Vec::new(), Vec::new());
        for scale in 0..self.map.layout.scales {
            let known: BTreeMap<[i32; 3], Option<u32>> = self
                .before
                .map(|(blocks, _)| blocks.positions(scale).collect())
                .unwrap_or_default();
            let mut seen = BTreeSet::new();
            for found in self.blocks.all(scale) {
                seen.insert(found.at);
                let Found { at, version, value } = found;
                let place = self.place(scale, at)?;
                match (version, value) {
                    (Ok(version), Some(value)) => {
                        if known.get(&at) != Some(&Some(version)) {
                            wanted.push(NewBlock { scale, at: place, value });
                        }
                    }
                    // What the version wrote is lost, and what was there before is not it.
                    (Ok(version), None) => {
                        if known.get(&at).is_some_and(|before| *before != Some(version)) {
                            gone.push((scale, place));
                        }
                    }
                    (Err(clash), _) => {
                        let error = clash.error(self.dag);
                        self.damaged(scale, place, error, written)?;
                        if known.get(&at).is_some_and(Option::is_some) {
                            gone.push((scale, place));
                        }
                    }
                }
            }
            for (at, version) in known {
                if version.is_some() && !seen.contains(&at) {
                    gone.push((scale, self.place(scale, at)?));
                }
            }
        }
        // Values are stored in the order in which they were written.
        wanted.sort_by(|a, b| place_of(&a.value).cmp(&place_of(&b.value)));
        self.meter.expect(wanted.len() as u64);
        Ok((wanted, gone))
    }

    /// Where a block of DVID is in the labelmap.
    fn place(&self, scale: usize, at: [i32; 3]) -> Result<At> {
        let mut place = [0; 3];
        for axis in 0..3 {
            let offset = i64::from(at[axis]) - (self.first[axis] >> scale);
            place[axis] = u32::try_from(offset).map_err(|_| {
                Error::invalid(format!("block {at:?} of scale {scale} lies outside"))
            })?;
        }
        Ok(place)
    }

    fn damaged(&self, scale: usize, at: At, error: Error, written: &mut Written) -> Result<()> {
        if !self.skip_corrupt || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let first: [i64; 3] =
            std::array::from_fn(|axis| (self.first[axis] >> scale) + i64::from(at[axis]));
        written.damaged.push(DamagedBlock {
            version: self.uuid.to_owned(),
            scale,
            block: first,
            error: error.to_string(),
        });
        Ok(())
    }

    /// Fetches blocks, checks them, and makes chunks of them.
    async fn pack(&self, wanted: &[NewBlock], written: &mut Written) -> Result<Vec<Packed>> {
        let fetcher = self.store.badger().fetcher();
        let refs: Vec<&ChunkRef> = wanted.iter().map(|wanted| &wanted.value).collect();
        let values: Vec<Result<bytes::Bytes>> = match fetcher.fetch(&refs).await {
            Ok(values) => values.into_iter().map(|value| Ok(value.unwrap_or_default())).collect(),
            Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
            Err(_) => {
                let mut values = Vec::with_capacity(refs.len());
                for one in refs {
                    let fetched = fetcher.fetch(&[one]).await;
                    values.push(fetched.map(|mut value| value.pop().flatten().unwrap_or_default()));
                }
                values
            }
        };
        let (from, to) =
            (codecs(&self.map.layout)?, self.map.array(0)?.reader().codecs().whole().clone());
        let places: Vec<(usize, At)> =
            wanted.iter().map(|wanted| (wanted.scale, wanted.at)).collect();
        let packed = cpu(move || {
            let work = |(value, (scale, at)): (Result<bytes::Bytes>, (usize, At))| {
                let made = value.and_then(|value| repack(&from, &to, scale, at, &value));
                (scale, at, made)
            };
            values.into_par_iter().zip(places).map(work).collect::<Vec<_>>()
        })
        .await?;
        let mut good = Vec::with_capacity(packed.len());
        for (scale, at, made) in packed {
            match made {
                Ok(made) => good.push(made),
                Err(error) => {
                    self.damaged(scale, at, error, written)?;
                    // What the version before had there is not what this one has.
                    good.push(Packed { scale, at, chunk: None, parts: Vec::new() });
                }
            }
        }
        Ok(good)
    }

    /// Marks the rows of the index that changed blocks had.
    async fn forget_blocks(
        &self,
        changed: &BTreeSet<At>,
        overlay: &mut BTreeMap<BlockKey, Option<Parts>>,
    ) -> Result<()> {
        let Some((_, before)) = self.before else { return Ok(()) };
        let changed: Vec<At> = changed.iter().copied().collect();
        for some in changed.chunks(BLOCKS_AT_ONCE) {
            for (at, block) in some.iter().zip(self.map.blocks(0, some).await?) {
                let Some(block) = block else { continue };
                let parts = Block::parse(&block)?.extents().iter().map(Part::new).collect();
                overlay.extend(by_body(parts, *at, before).map(|row| (row.key, None)));
            }
        }
        Ok(())
    }

    /// Counts all bodies from the index.
    async fn count_all(&self) -> Result<()> {
        self.map.count_bodies(&mut crate::Imported::default()).await?;
        let last = last_mutations(self.mutations);
        let ids: Vec<u64> = last.keys().copied().collect();
        for ids in ids.chunks(ROWS_AT_ONCE) {
            let found: Vec<Option<Body>> = rows::get(&self.map.bodies, ids).await?;
            let stamp =
                |body: Body| Body { mutation: last.get(&body.body).copied().unwrap_or(0), ..body };
            let stamped: Vec<Body> = found.into_iter().flatten().map(stamp).collect();
            rows::upsert(&self.map.bodies, &stamped).await?;
        }
        self.retire(self.history.iter().filter(|row| row.after == 0).map(|row| row.supervoxel))
            .await
    }

    /// Adds rows of supervoxels that have no voxels any more because the mapping retired them.
    async fn retire(&self, ids: impl Iterator<Item = u64>) -> Result<()> {
        let ids: BTreeSet<u64> = ids.filter(|id| self.mapping.get(id) == Some(&0)).collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(ROWS_AT_ONCE) {
            let known = self.map.find_supervoxels(ids).await?;
            let gone =
                ids.iter().zip(known).filter(|(_, known)| known.is_none_or(|row| row.voxels == 0));
            let retired: Vec<Supervoxel> = gone.map(|(id, _)| Supervoxel::retired(*id)).collect();
            rows::upsert(&self.map.supervoxels, &retired).await?;
        }
        Ok(())
    }

    /// Brings the index up to date, and counts the bodies in it that changed.
    async fn count_changed(
        &self,
        before: &Rows,
        changed: &BTreeSet<At>,
        mut overlay: BTreeMap<BlockKey, Option<Parts>>,
    ) -> Result<()> {
        self.move_supervoxels(before, changed, &mut overlay).await?;
        let bodies: BTreeSet<u64> = overlay.keys().map(|(body, _)| *body).collect();
        let mut had: BTreeSet<u64> = BTreeSet::new();
        for &body in &bodies {
            let rows: Vec<IndexRow> = rows::scan(&self.map.index, &rows::of(body)).await?;
            had.extend(rows.iter().flat_map(|row| row.parts.iter().map(|part| part.supervoxel)));
        }
        let (mut set, mut gone) = (Vec::new(), Vec::new());
        for (key, parts) in overlay {
            match parts.filter(|parts| !parts.is_empty()) {
                Some(parts) => set.push(IndexRow { key, parts }),
                None => gone.push(key),
            }
        }
        rows::upsert(&self.map.index, &set).await?;
        IndexRow::delete(&self.map.index, &gone).await?;
        let mut recount = Recount::new(self.map.layout.block);
        for &body in &bodies {
            let rows: Vec<IndexRow> = rows::scan(&self.map.index, &rows::of(body)).await?;
            rows.iter().for_each(|row| recount.add(row));
            recount.finish_body();
        }
        let last = last_mutations(self.mutations);
        let ids: Vec<u64> = bodies.iter().copied().collect();
        let old: Vec<Option<Body>> = rows::get(&self.map.bodies, &ids).await?;
        let old: BTreeMap<u64, u64> =
            old.into_iter().flatten().map(|body| (body.body, body.mutation)).collect();
        for body in &mut recount.bodies {
            let known = last.get(&body.body).or_else(|| old.get(&body.body));
            body.mutation = known.copied().unwrap_or_default();
        }
        let living: BTreeSet<u64> = recount.bodies.iter().map(|body| body.body).collect();
        let dead: Vec<u64> =
            bodies.difference(&living).copied().filter(|body| old.contains_key(body)).collect();
        rows::upsert(&self.map.bodies, &recount.bodies).await?;
        rows::delete(&self.map.bodies, &dead).await?;
        rows::upsert(&self.map.supervoxels, &recount.supervoxels).await?;
        let has: BTreeSet<u64> = recount.supervoxels.iter().map(|row| row.supervoxel).collect();
        let lost: Vec<u64> = had.difference(&has).copied().collect();
        let (retired, overwritten): (Vec<u64>, Vec<u64>) =
            lost.into_iter().partition(|id| self.mapping.get(id) == Some(&0));
        rows::delete(&self.map.supervoxels, &overwritten).await?;
        let retired: Vec<Supervoxel> = retired.into_iter().map(Supervoxel::retired).collect();
        rows::upsert(&self.map.supervoxels, &retired).await
    }

    /// Moves supervoxels that the mapping gave to other bodies, in blocks that are as they were.
    async fn move_supervoxels(
        &self,
        before: &Rows,
        changed: &BTreeSet<At>,
        overlay: &mut BTreeMap<BlockKey, Option<Parts>>,
    ) -> Result<()> {
        let mut by_old: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
        for (&supervoxel, &body) in self.remapped {
            let old = before.get(&supervoxel).copied().unwrap_or(supervoxel);
            if old != body {
                by_old.entry(old).or_default().insert(supervoxel, body);
            }
        }
        let mut arrived: Vec<(BlockKey, Part)> = Vec::new();
        for (old, moved) in &by_old {
            let rows: Vec<IndexRow> = match old {
                0 => self.hidden(moved).await?,
                old => rows::scan(&self.map.index, &rows::of(*old)).await?,
            };
            for row in rows.into_iter().filter(|row| !changed.contains(&row.key.1)) {
                let at = row.key.1;
                let (leave, stay): (Parts, Parts) =
                    row.parts.into_iter().partition(|part| moved.contains_key(&part.supervoxel));
                if leave.is_empty() {
                    continue;
                }
                if *old != 0 {
                    overlay.insert(row.key, Some(stay));
                }
                let target = |part: &Part| moved.get(&part.supervoxel).copied().unwrap_or_default();
                let visible = leave.into_iter().filter(|part| target(part) != 0);
                arrived.extend(visible.map(|part| ((target(&part), at), part)));
            }
        }
        let keys: BTreeSet<BlockKey> =
            arrived.iter().map(|(key, _)| *key).filter(|key| !overlay.contains_key(key)).collect();
        let keys: Vec<BlockKey> = keys.into_iter().collect();
        for (key, row) in keys.iter().zip(IndexRow::get(&self.map.index, &keys).await?) {
            overlay.insert(*key, Some(row.map(|row| row.parts).unwrap_or_default()));
        }
        for (key, part) in arrived {
            rows::insert(overlay.entry(key).or_default().get_or_insert_default(), [part])?;
        }
        Ok(())
    }

    /// Where supervoxels are that belonged to no body, so that the index does not know them.
    async fn hidden(&self, wanted: &BTreeMap<u64, u64>) -> Result<Vec<IndexRow>> {
        let mut found = Vec::new();
        for some in self.map.stored_blocks(0).await?.chunks(BLOCKS_AT_ONCE) {
            for (at, block) in some.iter().zip(self.map.blocks(0, some).await?) {
                let Some(block) = block else { continue };
                let block = Block::parse(&block)?;
                if !block.labels().any(|label| wanted.contains_key(&label)) {
                    continue;
                }
                let extents = block.extents();
                let parts = extents.iter().filter(|extent| wanted.contains_key(&extent.label));
                found.push(IndexRow { key: (0, *at), parts: parts.map(Part::new).collect() });
            }
        }
        Ok(found)
    }

    /// Compares the bodies with what DVID counted; `differ` gets the body, its voxels here and there.
    pub(super) async fn compare(
        &self,
        instance: &chunkyard_format::dvid::Instance,
        resolver: &chunkyard_format::dvid::Resolver,
        mut differ: impl FnMut(u64, u64, u64),
    ) -> Result<()> {
        let mut theirs: BTreeMap<u64, u64> = BTreeMap::new();
        let mut broken = Vec::new();
        let good = |index: chunkyard_format::dvid::LabelIndex| {
            theirs.insert(index.label, index.voxels());
        };
        self.store.indices(instance, resolver, good, |label, _| broken.push(label)).await?;
        broken.into_iter().for_each(|label| {
            theirs.entry(label).or_default();
        });
        let mut ours = self.map.bodies.scan(&KeyRange::All, None)?;
        while let Some(batch) = ours.try_next().await? {
            for body in <Body as rows::Row>::parse(&batch)? {
                let there = theirs.remove(&body.body).unwrap_or_default();
                if there != body.voxels {
                    differ(body.body, body.voxels, there);
                }
            }
        }
        theirs
            .into_iter()
            .filter(|(_, voxels)| *voxels > 0)
            .for_each(|(body, voxels)| differ(body, 0, voxels));
        Ok(())
    }
}

/// The last mutation of each body.
fn last_mutations(mutations: &[Mutation]) -> BTreeMap<u64, u64> {
    let touched =
        mutations.iter().flat_map(|row| row.bodies.iter().map(|body| (*body, row.mutation)));
    touched.collect()
}

fn place_of(value: &ChunkRef) -> (Option<&str>, u64) {
    match value {
        ChunkRef::Object { path, range, .. } => (Some(path), range.start),
        _ => (None, 0),
    }
}

fn repack(from: &Codecs, to: &Codecs, scale: usize, at: At, value: &[u8]) -> Result<Packed> {
    let bytes = from.label_block(value)?;
    let block = Block::parse(&bytes)?;
    if block.is_zero() {
        return Ok(Packed { scale, at, chunk: None, parts: Vec::new() });
    }
    let parts = match scale {
        0 => block.extents().iter().map(Part::new).collect(),
        _ => Vec::new(),
    };
    Ok(Packed { scale, at, chunk: Some(to.encode_label_block(&bytes)?), parts })
}

/// The rows of the index that the supervoxels of a block make. Retired ones belong to no body.
fn by_body(parts: Vec<Part>, at: At, mapping: &Rows) -> impl Iterator<Item = IndexRow> + use<> {
    let mut bodies: BTreeMap<u64, Parts> = BTreeMap::new();
    for part in parts {
        let body = mapping.get(&part.supervoxel).copied().unwrap_or(part.supervoxel);
        if body != 0 {
            bodies.entry(body).or_default().push(part);
        }
    }
    bodies.into_iter().map(move |(body, parts)| IndexRow { key: (body, at), parts })
}
