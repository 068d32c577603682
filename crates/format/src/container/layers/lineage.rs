//! Which files count as layers, from the oldest to the newest. See [`super::stack`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::{Error, Meta, Result};

use super::file_names::Names;
use super::layer::Layer;
use super::stack::{Id, Ignored, Reason, Search, unwritable};

/// Decides which layers count, from the oldest to the newest.
pub(crate) struct Lineage<'a> {
    names: &'a Names,
    search: Search,
    layers: Vec<Arc<Layer>>,
    ignored: Vec<Ignored>,
    /// The layers that others may be made on.
    grounds: HashSet<Id>,
    /// The layers that the base holds.
    merged: HashMap<u64, Id>,
    container: Option<Id>,
    /// The last file, if it cannot be read: torn or damaged if nothing follows.
    unreadable: Option<(Ignored, Error)>,
}

impl<'a> Lineage<'a> {
    pub(crate) fn new(base: Layer, names: &'a Names, search: Search) -> Result<Self> {
        refuse_no_base(&base)?;
        let merged: HashMap<u64, Id> = base
            .seal
            .as_ref()
            .map(|seal| seal.absorbed.iter().copied().collect())
            .unwrap_or_default();
        let grounds = merged.values().copied().chain([base.id()]).collect();
        let container = base.seal.as_ref().map(|seal| seal.container);
        Ok(Self {
            names,
            search,
            layers: vec![Arc::new(base)],
            ignored: Vec::new(),
            grounds,
            merged,
            container,
            unreadable: None,
        })
    }

    fn base(&self) -> Option<&Layer> {
        self.layers.first().map(|base| &**base)
    }

    /// The number of the newest layer that the base holds.
    pub(crate) fn sequence(&self) -> u64 {
        self.base().and_then(|base| base.seal.as_ref()).map_or(0, |seal| seal.sequence)
    }

    /// The number of the newest layer that counts so far.
    fn top(&self) -> u64 {
        self.layers.last().map_or(0, |layer| layer.number).max(self.sequence())
    }

    /// Adds the next file; for an unreadable one, `whole` says whether it was ever readable.
    pub(crate) fn add(
        &mut self,
        number: u64,
        meta: Meta,
        layer: Result<Layer>,
        whole: bool,
    ) -> Result<()> {
        if let Some((_, error)) = self.unreadable.take() {
            // A later layer was built on it: so this is damage, not a write that was cut off.
            return Err(error);
        }
        let ignored = |reason, why: String| Ignored {
            path: meta.path.clone(),
            number,
            size: meta.size,
            reason,
            why,
        };
        let held = "the base holds it; a compaction was interrupted before it deleted it";
        let layer = match layer {
            Ok(layer) => layer,
            Err(Error::Corrupt { .. }) if self.merged.contains_key(&number) => {
                self.ignored.push(ignored(Reason::Merged, held.to_owned()));
                return Ok(());
            }
            Err(error @ Error::Corrupt { .. }) => {
                let reason = if whole { Reason::Damaged } else { Reason::Torn };
                self.unreadable = Some((ignored(reason, error.to_string()), error));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.merged.get(&number) == Some(&layer.id()) {
            self.ignored.push(ignored(Reason::Merged, held.to_owned()));
            return Ok(());
        }
        match self.foreign(&layer)? {
            Some(why) => self.ignored.push(ignored(Reason::Foreign, why)),
            None => {
                self.grounds.insert(layer.id());
                self.container = self.container.or(layer.seal.as_ref().map(|seal| seal.container));
                self.layers.push(Arc::new(layer));
            }
        }
        Ok(())
    }

    /// Why a layer belongs to another container, if it does.
    fn foreign(&self, layer: &Layer) -> Result<Option<String>> {
        if self.base().is_some_and(|base| base.root.version >= 6) {
            return Ok(Some("the base is of a version that has no layers".to_owned()));
        }
        if let Some(seal) = &layer.seal {
            let is_base = seal.parent == Id::default();
            if self.container.is_some_and(|container| container != seal.container) {
                // Made on a container that this one replaced, by a writer that had not seen that.
                let replaced = self.grounds.contains(&seal.parent);
                if !is_base && !replaced && Some(layer.number) == self.top().checked_add(1) {
                    let found = "a layer of another container".to_owned();
                    return Err(misplaced(layer, found));
                }
                return Ok(Some("it was made for another container".to_owned()));
            }
            if is_base && self.container.is_none() {
                return Ok(Some("it is the base of a container of its own".to_owned()));
            }
            if layer.number <= self.sequence() {
                let why = "the base holds another layer of this number: the writer of this one \
                           had not seen that, and was told so";
                return Ok(Some(why.to_owned()));
            }
            if is_base {
                return Err(misplaced(layer, "a base of this container".to_owned()));
            }
            if seal.sequence != layer.number {
                let found = format!("layer {} of this container", seal.sequence);
                return Err(misplaced(layer, found));
            }
            if !self.grounds.contains(&seal.parent) {
                return Err(Error::Corrupt {
                    file: layer.path.to_string(),
                    what: "the layer it was made on".to_owned(),
                    expected: "among the layers below it".to_owned(),
                    found: "none, so one is missing".to_owned(),
                });
            }
            return Ok(None);
        }
        let hint = &layer.root.base_file_hint;
        if layer.root.overlay_index == 0 {
            return Ok(Some("it is the base of a container of its own".to_owned()));
        }
        let named = hint.rsplit('/').next().unwrap_or_default();
        if named != self.names.base() && !self.search.renamed {
            return Err(Error::invalid(format!(
                "{} says that it is a layer of {hint:?}, not of {:?}: move it away if it does not \
                 belong here; if the container was renamed, give its files the names that they had",
                layer.path,
                self.names.base()
            )));
        }
        Ok(None)
    }

    pub(crate) fn finish(mut self) -> Result<(Vec<Arc<Layer>>, Vec<Ignored>)> {
        let top = self.top();
        if let Some((file, error)) = self.unreadable {
            if self.search.strict {
                return Err(unwritable(file.path, error.to_string()));
            }
            if file.reason == Reason::Damaged && !self.search.past_damage {
                return Err(damaged(error, top));
            }
            self.ignored.push(file);
        }
        Ok((self.layers, self.ignored))
    }
}

/// Refuses a layer under the name of a base.
fn refuse_no_base(base: &Layer) -> Result<()> {
    // Without a seal there is only the index that its writer chose, which 0.9 ignores.
    let is_base = base.seal.as_ref().is_none_or(|seal| seal.parent == Id::default());
    match is_base {
        true => Ok(()),
        false => Err(Error::Corrupt {
            file: base.path.to_string(),
            what: "its place".to_owned(),
            expected: "a base".to_owned(),
            found: "a layer, which was made to be over one".to_owned(),
        }),
    }
}

/// The error of a whole layer that is not where it was written.
fn misplaced(layer: &Layer, found: String) -> Error {
    Error::Corrupt {
        file: layer.path.to_string(),
        what: "its place".to_owned(),
        expected: format!("layer {} of this container", layer.number),
        found: format!("{found}: put back the right file, or move this one away"),
    }
}

/// A newest layer that was acknowledged and cannot be read; `below` is the number of the layer under
/// it.
fn damaged(error: Error, below: u64) -> Error {
    match error {
        Error::Corrupt { file, what, expected, found } => Error::Corrupt {
            file,
            what: format!("{what}, in the newest layer, which was whole once"),
            expected,
            found: format!(
                "{found}; the state before it is layer {below}, which is read by its number \
                 (--at {below}, or --snapshot {below}), and `chunkyard af repair` sets this one aside"
            ),
        },
        other => other,
    }
}
