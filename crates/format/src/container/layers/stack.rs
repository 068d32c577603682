//! The layers of a container that count, and those that do not.
//!
//! All files that are named like layers are opened at once; from the oldest to the newest, each counts, or is:
//!
//! - *merged*: the base says that it already holds exactly this layer; a compaction was interrupted
//!   before it could delete it.
//! - *foreign*: a container of its own, or a layer of another one, that happens to have the name.
//! - *torn*: the newest one, when its write was cut off. Readers go on below it and say so.
//! - *damaged*: the newest one, when it was [whole once](super::torn) and cannot be read any
//!   more. That is an error: the state below it is not the last acknowledged one.
//!
//! Lineage is in the [seal](crate::container::seal): a layer names the container, its own number and the layer
//! that it was made on. A layer whose ground is missing, or that is not where it was written, is an
//! error, not another answer. Layers of other programs have no seal; they must name the base they
//! belong to.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use chunkyard_store::{Error, Meta, Noun, Result, Store, Version};
use futures::{StreamExt, stream};

use super::file_names::Names;
use super::footer_reader::Windows;
use super::layer::Layer;
use super::lineage::Lineage;
use super::torn::was_whole;
use crate::container::bytes::seal::Seal;
use crate::container::model::ArrayStats;
use crate::container::read::ambiguous::Dictionary;
use crate::container::read::array_cache::ArrayCache;

/// How often opening starts again because a compaction deleted files meanwhile.
const ATTEMPTS: usize = 8;

/// The identity of a layer.
pub(crate) type Id = [u8; 16];

/// How layers are looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Search {
    /// The newest layer to count.
    pub(crate) as_of: Option<u64>,
    /// Whether a torn newest layer is an error.
    pub(crate) strict: bool,
    /// Whether layers of other programs that name another base count: for a container that was
    /// renamed.
    pub(crate) renamed: bool,
    /// Whether a damaged newest layer is left out like a torn one, by a repair.
    pub(crate) past_damage: bool,
}

/// A file that is named like a layer, or is one, and does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its name.
    pub path: String,
    /// Its number.
    pub number: u64,
    /// Its bytes.
    pub size: u64,
    /// Why it does not count.
    pub reason: Reason,
    /// The evidence.
    pub why: String,
}

/// Why a file that is named like a layer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The base holds it already.
    Merged,
    /// It belongs to something else.
    Foreign,
    /// Its write was cut off.
    Torn,
    /// It was whole once and cannot be read.
    Damaged,
}

impl Reason {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Foreign => "foreign",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
        }
    }
}

/// The files of a container.
#[derive(Debug)]
pub(crate) struct Stack {
    /// The layers that count, oldest first; never empty.
    pub(crate) layers: Vec<Arc<Layer>>,
    /// Files that do not count.
    pub(crate) ignored: Vec<Ignored>,
    /// The number that the next layer gets.
    pub(crate) next: u64,
    /// The state of the base in its store.
    pub(crate) base: Version,
    /// Arrays that have been read.
    pub(crate) arrays: Mutex<ArrayCache>,
    /// The content of the statistics file, once it has been read.
    pub(crate) statistics_file: tokio::sync::OnceCell<HashMap<String, ArrayStats>>,
    /// The dictionaries of all layers, the newest first, once needed to find out what 0.9 reads.
    pub(crate) dictionaries: tokio::sync::OnceCell<Vec<Dictionary>>,
}

impl Stack {
    /// Opens all layers.
    pub(crate) async fn open(
        store: &Store,
        names: &Names,
        search: Search,
        windows: &Windows,
    ) -> Result<Self> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match attempt(store, names, search, windows).await {
                Err(
                    error @ (Error::NotFound { what: Noun::Object, .. }
                    | Error::VirtualSourceChanged { .. }),
                ) => last = Some(error),
                other => return other,
            }
        }
        let why = last.map_or_else(String::new, |error| error.to_string());
        Err(Error::Conflict {
            message: format!("{} changed again and again while it was opened: {why}", names.base()),
            conflicts: Vec::new(),
        })
    }

    /// The same with one more layer.
    pub(crate) fn with(&self, layer: Layer) -> Self {
        let next = layer.number + 1;
        let layers: Vec<_> = self.layers.iter().cloned().chain([Arc::new(layer)]).collect();
        Self {
            arrays: Mutex::new(ArrayCache::new(&layers)),
            layers,
            ignored: self.ignored.clone(),
            next,
            base: self.base.clone(),
            statistics_file: Default::default(),
            dictionaries: Default::default(),
        }
    }

    /// The identity of the container, if any of its layers knows it.
    pub(crate) fn container(&self) -> Option<Id> {
        self.layers.iter().find_map(|layer| Some(layer.seal.as_ref()?.container))
    }

    /// The identities of all layers, including those merged into the base.
    pub(crate) fn known_ids(&self) -> HashSet<Id> {
        let absorbed = self.layers.iter().filter_map(|layer| layer.seal.as_ref());
        let absorbed = absorbed.flat_map(|seal| seal.absorbed.iter().map(|(_, id)| *id));
        self.layers.iter().map(|layer| layer.id()).chain(absorbed).collect()
    }

    /// Whether a base with this seal holds only layers that are in this stack. Older bases hold only
    /// layers, too.
    pub(crate) fn holds_all_of(&self, seal: &Seal) -> bool {
        let known = self.known_ids();
        let mut layers = seal.absorbed.iter().filter(|(number, _)| *number > 0);
        seal.sequence < self.next && layers.all(|(_, id)| known.contains(id))
    }

    /// The newest layer.
    pub(crate) fn top(&self) -> Option<&Arc<Layer>> {
        self.layers.last()
    }

    /// Refuses to write if the newest layer cannot be read.
    pub(crate) fn refuse_torn(&self) -> Result<()> {
        match self.ignored.iter().find(|file| file.reason == Reason::Torn) {
            None => Ok(()),
            Some(torn) => Err(unwritable(torn.path.clone(), torn.why.clone())),
        }
    }
}

/// Why nothing can be written on an unreadable layer.
pub(crate) fn unwritable(path: String, found: String) -> Error {
    Error::Corrupt {
        file: path,
        what: "the newest layer, on which nothing can be written before it is repaired \
               (chunkyard af repair sets it aside)"
            .to_owned(),
        expected: "a whole layer".to_owned(),
        found,
    }
}

async fn attempt(store: &Store, names: &Names, search: Search, windows: &Windows) -> Result<Stack> {
    let (base, mut found) = list(store, names).await?;
    let newest = found.iter().map(|(number, _)| *number).max().unwrap_or(0);
    if let Some(layer) = search.as_of {
        found.retain(|(number, _)| *number <= layer);
    }
    let all = [(0, base.clone())].into_iter().chain(found);
    let mut opened = stream::iter(all)
        .map(|(number, meta)| async move {
            let layer = Layer::open(store, number, &meta, windows).await;
            let whole = match layer {
                Err(Error::Corrupt { .. }) if number > 0 => was_whole(store, &meta).await,
                _ => Ok(true),
            };
            (number, meta, layer, whole)
        })
        .buffered(store.limits().requests.max(1));
    let Some((_, _, layer, _)) = opened.next().await else { return Err(missing(store, names)) };
    let mut lineage = Lineage::new(layer?, names, search)?;
    let sequence = lineage.sequence();
    while let Some((number, meta, layer, whole)) = opened.next().await {
        lineage.add(number, meta, layer, whole?)?;
    }
    let (layers, ignored) = lineage.finish()?;
    let top = layers.last().map_or(0, |layer| layer.number).max(sequence);
    if let Some(wanted) = search.as_of
        && (wanted < sequence || wanted > newest.max(sequence))
    {
        let there = match layers.len() {
            1 => format!("{sequence} is the only one"),
            _ => format!("there are {sequence} to {top}"),
        };
        let name = format!("{wanted} of {}; {there}", names.base());
        return Err(Error::NotFound { what: Noun::Layer, name });
    }
    Ok(Stack {
        arrays: Mutex::new(ArrayCache::new(&layers)),
        layers,
        ignored,
        // A seal may say any number; only a layer beyond 32 bits is refused when it is written.
        next: newest.max(sequence).saturating_add(1),
        base: Version::from(&base),
        statistics_file: tokio::sync::OnceCell::new(),
        dictionaries: tokio::sync::OnceCell::new(),
    })
}

fn missing(store: &Store, names: &Names) -> Error {
    Error::NotFound { what: Noun::Container, name: store.object_url(&names.base()) }
}

/// The base, and all files that are named like layers, by number.
async fn list(store: &Store, names: &Names) -> Result<(Meta, Vec<(u64, Meta)>)> {
    let dir = match store.list_dir("").await {
        Err(Error::Unsupported { .. }) => return probe(store, names).await,
        other => other?,
    };
    let (mut base, mut found) = (None, Vec::new());
    for meta in dir.objects {
        if meta.path == names.base() {
            base = Some(meta);
        } else if let Some(number) = names.number(&meta.path) {
            found.push((number, meta));
        }
    }
    for other in dir.others {
        // It would be passed over, and an older state be read.
        if other == names.base() || names.number(&other).is_some() {
            return Err(unreadable(store, other).await);
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok((base.ok_or_else(|| missing(store, names))?, found))
}

/// The error of a layer that is not a file.
async fn unreadable(store: &Store, file: String) -> Error {
    match store.head(&file).await {
        Err(error @ Error::Corrupt { .. }) => error,
        _ => Error::Corrupt {
            file,
            what: "the kind of file".to_owned(),
            expected: "a regular file".to_owned(),
            found: "a link that leads nowhere".to_owned(),
        },
    }
}

/// The same where nothing can be listed: layers are tried one after the other, from the first that the
/// base does not hold, until one is missing.
async fn probe(store: &Store, names: &Names) -> Result<(Meta, Vec<(u64, Meta)>)> {
    let base = match store.head(&names.base()).await {
        Err(Error::NotFound { .. }) => return Err(missing(store, names)),
        other => other?,
    };
    let first = Layer::open(store, 0, &base, &Windows::new(0, |_, _| 0)).await?;
    let merged = first.seal.as_ref().map_or(0, |seal| seal.sequence);
    let mut found = Vec::new();
    for number in merged.saturating_add(1).. {
        match store.head(&names.layer(number)).await {
            Ok(meta) => found.push((number, meta)),
            Err(Error::NotFound { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok((base, found))
}
