//! References to ranges of objects outside the repository.

use chunkyard_array::Grid;
use chunkyard_store::{Error, Result};

use super::Session;
use super::chunks::check_index_in;
use super::edit::{record, require_node};
use crate::coord::Coord;
use crate::manifest::{Payload, Virtual};
use crate::node::Node;

/// How many references are recorded in one go.
const BATCH: usize = 1024;

impl Session {
    /// Points a chunk at a range of an object outside the repository. The reference must carry a
    /// guard (etag, modification time or checksum), taken before the range was parsed, so that a
    /// later change of the source is noticed and never read as the old data.
    pub fn set_virtual(&self, path: &str, index: &[u64], reference: Virtual) -> Result<()> {
        self.set_virtual_all(path, [(index, reference)])
    }

    /// Like [`Session::set_virtual`], for sources that have neither etag nor modification time.
    pub fn set_virtual_unchecked(
        &self,
        path: &str,
        index: &[u64],
        reference: Virtual,
    ) -> Result<()> {
        self.set_references(path, [(index, reference)], |_, _| Ok(()))
    }

    /// Like [`Session::set_virtual`], for many chunks of one array, faster than one by one. If one
    /// is refused, some of the earlier ones are set.
    pub fn set_virtual_all<I: AsRef<[u64]>>(
        &self,
        path: &str,
        references: impl IntoIterator<Item = (I, Virtual)>,
    ) -> Result<()> {
        self.set_references(path, references, require_guard)
    }

    fn set_references<I: AsRef<[u64]>>(
        &self,
        path: &str,
        references: impl IntoIterator<Item = (I, Virtual)>,
        check: fn(&str, &Virtual) -> Result<()>,
    ) -> Result<()> {
        let node = self.node(path)?;
        let grid = node.array()?.grid()?;
        let mut references = references.into_iter();
        loop {
            // Taken from the caller's iterator before the session is locked, since the iterator may
            // use it.
            let batch = references.by_ref().take(BATCH).map(|(index, reference)| {
                check(path, &reference)?;
                prepare(&grid, &node, index.as_ref(), reference)
            });
            let batch = batch.collect::<Result<Vec<_>>>()?;
            if batch.is_empty() {
                return Ok(());
            }
            let mut work = self.require_writable()?;
            require_node(&work, &node)?;
            for (coord, mut reference) in batch {
                // Neighbours mostly lie in one object: they share its name.
                match &work.last_url {
                    Some(known) if *known == reference.url => reference.url = known.clone(),
                    _ => work.last_url = Some(reference.url.clone()),
                }
                record(&mut work, node.uid, coord, Payload::Virtual(Box::new(reference)));
            }
        }
    }
}

fn prepare(
    grid: &Grid,
    node: &Node,
    index: &[u64],
    reference: Virtual,
) -> Result<(Coord, Virtual)> {
    let path = &node.path;
    check_index_in(grid, node, index)?;
    if !reference.url.contains("://") || reference.length == 0 {
        return Err(Error::Invalid {
            what: format!("{path}: a virtual chunk needs an absolute URL and a length above 0"),
        });
    }
    if reference.offset.checked_add(reference.length).is_none() {
        return Err(Error::Invalid {
            what: format!("{path}: the range of {} overflows", reference.url),
        });
    }
    Ok((Coord::encode(index), reference))
}

fn require_guard(path: &str, reference: &Virtual) -> Result<()> {
    let guarded = reference.etag.is_some()
        || reference.last_modified_ms.is_some()
        || reference.crc32c.is_some();
    if guarded {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!(
            "{path}: a reference to {} without etag, modification time or checksum would not \
             notice a changed source",
            reference.url
        ),
    })
}
