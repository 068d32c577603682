//! The parts of a container, beside its chunks, that a check looks at.
//!
//! Footers are read whole and compared with the checksums of their pages, then
//! [validated](crate::container::footer::validate). Blocks that no chunk uses are unpacked. Files that do not
//! count are named, and the statistics file is compared with the layers.

use std::collections::HashSet;

use chunkyard_store::{ChunkRef, Error, Result};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::container::bytes::archive::Resident;
use crate::container::bytes::footer;
use crate::container::bytes::stats_file;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::{Reason, Stack};
use crate::container::read::committed::Committed;
use crate::{Finding, Level, Severity};

/// Blocks that are fetched at once.
const FETCHES: usize = 8;

impl Committed {
    /// All damage that no chunk shows.
    pub(crate) fn inspect(self, level: Level) -> BoxStream<'static, Result<Finding>> {
        let found = async move {
            let mut findings: Vec<Finding> = ignored(&self.stack).collect();
            for layer in &self.stack.layers {
                findings.extend(layer.uncheckable());
                findings.extend(layer.inspect_footer().await?);
            }
            if level >= Level::Existence {
                findings.extend(self.inspect_statistics().await?);
            }
            if level >= Level::Bytes {
                findings.extend(self.inspect_unused_blocks().await?);
            }
            Ok::<_, Error>(stream::iter(findings.into_iter().map(Ok)))
        };
        stream::once(found).try_flatten().boxed()
    }

    /// Blocks that chunks use are checked with the chunks.
    async fn inspect_unused_blocks(&self) -> Result<Vec<Finding>> {
        let stack = &self.stack;
        let mut used = HashSet::new();
        for name in stack.names().await? {
            let Some(array) = stack.array(&name).await? else { continue };
            let found = array.all().await?.into_iter();
            used.extend(found.map(|(_, found)| (found.layer.key, found.address.block)));
        }
        let mut findings = Vec::new();
        for layer in &stack.layers {
            let unused = layer.block_ids().await?.into_iter();
            let unused = unused.filter(|id| !used.contains(&(layer.key, *id)));
            let checked = stream::iter(unused)
                .map(|id| async move {
                    let block = match layer.block_ref(id).await {
                        Ok(block) => block,
                        Err(error) => return finding_of(layer, &format!("block {id}"), error),
                    };
                    let whole = ChunkRef::Slice { within: 0..block.len, block };
                    match self.files.fetcher.fetch(&[&whole]).await {
                        Ok(_) => Ok(None),
                        Err(error) => finding_of(layer, &format!("block {id}"), error),
                    }
                })
                .buffered(FETCHES);
            let checked: Vec<Option<Finding>> = checked.try_collect().await?;
            findings.extend(checked.into_iter().flatten());
        }
        Ok(findings)
    }

    /// The statistics in the layers, and the file for other programs, which may be out of date.
    async fn inspect_statistics(&self) -> Result<Vec<Finding>> {
        let stack = &self.stack;
        let mut findings = Vec::new();
        for layer in &stack.layers {
            if let Err(error) = layer.sealed_statistics().await {
                findings.extend(finding_of(layer, "statistics", error)?);
            }
        }
        if !findings.is_empty() {
            return Ok(findings);
        }
        let path = self.files.names.statistics();
        let said = match self.files.store.get(&path).await {
            Err(Error::NotFound { .. }) => return Ok(findings),
            other => stats_file::parse_file(&other?.bytes),
        };
        let note = |what: String| finding(Severity::Note, path.clone(), what);
        let said = match said {
            Ok(said) => said,
            Err(error) => return Ok(vec![note(format!("it cannot be read: {error}"))]),
        };
        for stats in said {
            let known = match stack.array(&stats.name).await? {
                None => continue,
                Some(_) => self.known_statistics(&stats.name).await?,
            };
            if known.is_some_and(|known| known != stats) {
                let what =
                    format!("it is out of date for {:?}; a compaction renews it", stats.name);
                findings.push(note(what));
            }
        }
        Ok(findings)
    }
}

impl Layer {
    /// A note that a layer without a seal cannot be checked.
    fn uncheckable(&self) -> Option<Finding> {
        if self.seal.is_some() {
            return None;
        }
        let place = match u64::from(self.root.overlay_index) {
            // Version 6 has one file and no layers.
            _ if self.root.version >= 6 => String::new(),
            index if index == self.number => ", nor whether it is in its place".to_owned(),
            index => format!(", nor whether it is in its place: it calls itself layer {index}"),
        };
        let what = format!(
            "another program wrote it, without checksums: whether its bytes are those that were \
             written cannot be checked{place}"
        );
        Some(finding(Severity::Note, self.path.to_string(), what))
    }

    /// Reads all of the footer.
    async fn inspect_footer(&self) -> Result<Vec<Finding>> {
        let (footer, damaged) = match self.whole_footer().await {
            Ok(read) => read,
            Err(error) => return Ok(finding_of(self, "footer", error)?.into_iter().collect()),
        };
        if !damaged.is_empty() {
            let findings = damaged.into_iter().map(|error| finding_of(self, "footer", error));
            return Ok(findings.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
        }
        let data_len = self.data_len() - self.seal.as_ref().map_or(0, |seal| seal.len());
        let wrong = chunkyard_store::cpu(move || footer::validate(&Resident(footer), data_len));
        let error = |what: String| {
            finding(Severity::Error, self.path.to_string(), format!("footer: {what}"))
        };
        Ok(wrong.await?.into_iter().map(error).collect())
    }

    /// The ids of all blocks.
    async fn block_ids(&self) -> Result<Vec<u32>> {
        let len = self.root.blocks.len;
        let blocks = self.parse(|view| footer::blocks(view, &self.root, 0..len)).await?;
        Ok(blocks.into_iter().map(|block| block.id).collect())
    }
}

/// Files that do not count. An unreadable layer may have held data; the others are only in the way.
fn ignored(stack: &Stack) -> impl Iterator<Item = Finding> {
    stack.ignored.iter().map(|file| {
        let (severity, what) = match file.reason {
            Reason::Torn | Reason::Damaged => (Severity::Error, "the newest layer cannot be read"),
            Reason::Merged => (Severity::Note, "a layer that is not needed any more"),
            Reason::Foreign => (Severity::Note, "named like a layer, and none of this container"),
        };
        finding(severity, file.path.clone(), format!("{what}: {}", file.why))
    })
}

fn finding(severity: Severity, file: String, what: String) -> Finding {
    Finding { severity, file, what, snapshots: Vec::new(), array: None, chunk: None }
}

/// Damage as a finding. A store that does not answer is not damage; a block that we cannot unpack is a
/// note.
fn finding_of(layer: &Layer, part: &str, error: Error) -> Result<Option<Finding>> {
    let file = layer.path.to_string();
    Ok(Some(match error {
        Error::Corrupt { what, expected, found, .. } => {
            let what = format!("{part}: {what}: expected {expected}, found {found}");
            finding(Severity::Error, file, what)
        }
        error @ Error::Unsupported { .. } => {
            finding(Severity::Note, file, format!("{part} was not checked: {error}"))
        }
        error => return Err(error),
    }))
}
