//! Chunks that are stored together, and found again by their references alone.

use bytes::Bytes;
use chunkyard_store::{ChunkRef, Result};

use super::edit::{record, require_node};
use super::{Session, lock};
use crate::coord::Coord;
use crate::fetch;
use crate::manifest::Payload;
use crate::node::Node;
use crate::pack::{ChunkFile, Packer};

impl Session {
    /// Stores chunks in files of their own and gives their references. Unlike chunks that are set
    /// one by one, all bytes are in the store when this returns. A fork keeps none inline, since it
    /// cannot know how much all forks together may keep inline; nor does it remember the
    /// references, which the session it works for adopts.
    pub(crate) async fn put_pack(
        &self,
        node: &Node,
        chunks: Vec<(Coord, Bytes)>,
    ) -> Result<Vec<(Coord, Payload)>> {
        drop(self.require_writable()?);
        let mut packer = Packer::new(&self.config, self.repo.fans_out());
        let mut files: Vec<ChunkFile> = Vec::new();
        let mut refs = Vec::with_capacity(chunks.len());
        let mut inline_bytes = {
            let work = self.work();
            work.chunks.get(&node.uid).map_or(0, |changes| changes.inline_bytes)
        };
        for (coord, bytes) in chunks {
            let length = bytes.len() as u64;
            let payload = if !self.is_fork()
                && length <= self.config.inline_chunk_max
                && inline_bytes + length <= self.config.inline_total_max
            {
                inline_bytes += length;
                Payload::Inline { bytes }
            } else {
                let (native, complete) = packer.add(node.uid, &coord, bytes)?;
                files.extend(complete);
                Payload::Native(native)
            };
            refs.push((coord, payload));
        }
        files.extend(packer.seal());
        let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
        for file in files {
            lock(&self.unconfirmed).insert(file.name.clone(), file);
        }
        for name in &names {
            self.confirm(name).await?;
        }
        if !self.is_fork() {
            self.adopt_references(node, refs.clone())?;
        }
        Ok(refs)
    }

    /// Takes over references to chunks that are in the store.
    pub(crate) fn adopt_references(&self, node: &Node, refs: Vec<(Coord, Payload)>) -> Result<()> {
        let mut work = self.require_writable()?;
        require_node(&work, node)?;
        for (coord, payload) in refs {
            if let Payload::Native(native) = &payload {
                let path = format!("c/{}", native.file);
                work.files.insert(path);
            }
            record(&mut work, node.uid, coord, payload);
        }
        Ok(())
    }

    /// Where chunks are, as the store says it; `None` means fill value.
    pub(crate) async fn locate_references(
        &self,
        node: &Node,
        coords: &[Coord],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let located = self.locate_coords(node, coords).await?;
        located
            .iter()
            .map(|payload| payload.as_ref().map(|it| self.reference(it)).transpose())
            .collect()
    }

    /// Where a chunk is, as the store says it: in memory while it is not in the store yet.
    pub(crate) fn reference(&self, payload: &Payload) -> Result<ChunkRef> {
        if let Payload::Native(native) = payload
            && let Some(bytes) = self.in_memory(native)
        {
            return Ok(ChunkRef::Inline(bytes));
        }
        fetch::reference(payload, &self.config)
    }
}
