//! A container being written by the pipeline: parts in a folder of work, one file at the end.
//!
//! A pack becomes a *part*: a layer of its own in `.x.af.chunkyard/parts/`, with checksums, so that an
//! interrupted conversion finds its finished parts and workers of other processes can write theirs. At the end
//! the parts become one base, into which large blocks are copied unchanged. Only then is there a container; a
//! killed conversion leaves none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chunkyard_store::{BlockCodec, Error, Kind, Lock, Noun, Result, Store, Version, block_codec};

use super::express;
use super::part_writer::{PartWriter, file_of};
use super::parts::{Parts, PartsSource};
use super::worker;
use crate::Meter;
use crate::container::bytes::stats_file;
use crate::container::compact::merge;
use crate::container::layers::file_names::Names;
use crate::container::layers::files::{files_at, fresh_id, refuse_occupied, temporary_path};
use crate::container::layers::stack::{Id, Search, Stack};
use crate::container::mapping;
use crate::container::write::changes::Description;
use crate::container::write::draft::{Draft, Identity};
use crate::container::write::publish;
use crate::joined::{has_plan, taken_away};
use crate::{
    CreateOptions, Dataset, Locate, Pack, PackSink, PackWriter, Place, Published, Receipt, Sink,
    Source, Ticket,
};

pub(crate) const JOURNAL: &str = "journal";
pub(crate) const PARTS: &str = "parts";

/// A container being written.
#[derive(Debug)]
pub struct ContainerSink {
    target: Arc<PartsTarget>,
    dataset: Dataset,
    parts: Arc<Mutex<Parts>>,
    journal: Store,
    /// Whether the new container replaces an old one.
    replace: bool,
    lock: Option<Lock>,
}

/// Where the container will be and what it will hold, shared by all writers of parts.
#[derive(Debug)]
pub(crate) struct PartsTarget {
    pub(crate) store: Store,
    pub(crate) names: Names,
    /// Arrays by path.
    arrays: BTreeMap<String, PlannedArray>,
    /// Everything that the container will hold, groups included, by name.
    entries: BTreeMap<String, Arc<Description>>,
}

/// An array that is to be written.
#[derive(Debug, Clone)]
pub(crate) struct PlannedArray {
    pub(crate) described: Arc<Description>,
    pub(crate) codec: Arc<dyn BlockCodec>,
}

impl PartsTarget {
    pub(crate) fn new(store: Store, names: Names, dataset: &Dataset) -> Result<Self> {
        let entries = mapping::entries_of(&express::without_packing(dataset)?)?;
        let entries: BTreeMap<String, Arc<Description>> =
            entries.into_iter().map(|entry| (entry.meta.name.clone(), Arc::new(entry))).collect();
        let mut arrays = BTreeMap::new();
        for (path, node) in dataset.arrays() {
            if let Some(described) = entries.get(mapping::name_of(path)) {
                let codec = express::packing_of(&node.spec)?;
                arrays
                    .insert(path.to_owned(), PlannedArray { described: described.clone(), codec });
            }
        }
        Ok(Self { store, names, arrays, entries })
    }

    /// A writer of a pack. The complete pack joins `parts`, if given.
    pub(crate) fn writer(
        self: &Arc<Self>,
        pack: &Pack,
        parts: Option<Arc<Mutex<Parts>>>,
    ) -> Result<Box<dyn PackWriter>> {
        let missing = || Error::NotFound { what: Noun::Array, name: pack.array.to_string() };
        let planned = self.arrays.get(&*pack.array).ok_or_else(missing)?;
        Ok(Box::new(PartWriter::new(self.clone(), planned.clone(), pack, parts)))
    }

    pub(crate) async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        let files: Result<Vec<Option<String>>> = receipts.iter().map(file_of).collect();
        self.store.sync(&files?.into_iter().flatten().collect::<Vec<_>>()).await
    }
}

impl ContainerSink {
    /// Begins to write a container at a place. Refuses if there is one, unless it may be replaced.
    pub async fn create(place: &Place, dataset: Dataset, options: CreateOptions) -> Result<Self> {
        let (store, names) = files_at(place)?;
        let work = names.work();
        if store.kind() == Kind::ReadOnly {
            return Err(Error::unsupported(format!("writing to {}, a web server", place.url())));
        }
        // A second process waits here, and then finds the work of the first.
        let lock = store.keep_out(&format!("{work}/lock")).await?;
        let replace = match refuse_occupied(&store, &names).await {
            Ok(()) => false,
            Err(Error::AlreadyExists { .. }) if options.overwrite && lock.is_some() => true,
            Err(Error::AlreadyExists { .. }) if options.overwrite => {
                return Err(Error::unsupported(format!(
                    "replacing {}: an object store has no single step for it; delete it first, or \
                     write elsewhere",
                    place.url()
                )));
            }
            Err(error) => {
                // An unfinished conversion may lie there, to be resumed when told to replace; or the leftovers
                // of the conversion that made this container.
                let unfinished = !store.list_dir(&work).await?.dirs.is_empty();
                if !unfinished || made_by(&store, &names).await? {
                    // A process that waits for the lock may just have made the folder anew.
                    store.delete_dir(&work).await.ok();
                }
                return Err(error);
            }
        };
        let target = Arc::new(PartsTarget::new(store, names, &dataset)?);
        let journal = target.store.below(&format!("{work}/{JOURNAL}"))?;
        let resumes = !options.plan.is_empty() && !options.restart && has_plan(&journal).await?;
        if !resumes {
            journal.delete_dir("").await?;
            target.store.delete_dir(&format!("{work}/{PARTS}")).await?;
        }
        Ok(Self { target, dataset, parts: Arc::default(), journal, replace, lock })
    }

    /// Counts a pack among those that the container will hold.
    fn add(&self, pack: &Pack, receipt: &Receipt) -> Result<()> {
        if let Some(file) = file_of(receipt)? {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.add(&pack.array, pack.number, file);
        }
        Ok(())
    }

    fn parts(&self) -> Parts {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Merges the parts into one file and gives it its name.
    async fn publish(&self) -> Result<()> {
        let PartsTarget { store, names, entries, .. } = &*self.target;
        let source = PartsSource::new(&self.target.store, self.dataset.clone(), self.parts())?;
        let layer = fresh_id()?;
        let Replaced { sequence, files, absorbed } = self.replaced().await?;
        let identity = Identity {
            container: fresh_id()?,
            layer,
            parent: Id::default(),
            sequence,
            absorbed,
            overlay_index: 0,
            base_file_hint: String::new(),
        };
        let temporary = temporary_path(store, names)?;
        // Small chunks are packed again, in blocks that they share.
        let mut draft = Draft::new(store, temporary.clone(), block_codec("zstd")?, 1 << 20);
        let mut statistics = Vec::new();
        for (name, described) in entries {
            draft.begin_array(described.meta.clone(), described.attributes.clone());
            let part = source.merged(name).await?;
            if let Some(array) = &part.array {
                let meter = Meter::default();
                merge::push_all(&mut draft, source.fetcher(), array, false, &meter).await?;
            }
            statistics.push(part.statistics.to_array_stats(name, &described.meta.shape));
        }
        let finished = draft.finish(&identity, &statistics).await?;
        let made_of = made_of(names);
        store.put(&made_of, vec![layer.to_vec().into()]).await?;
        store.sync(&[made_of]).await?;
        match self.replace {
            false => publish::create(store, names, 0, layer, finished, &temporary).await.map_err(
                |error| match error {
                    Error::Conflict { .. } => Error::AlreadyExists {
                        what: Noun::Container,
                        name: store.object_url(&names.base()),
                    },
                    other => other,
                },
            )?,
            true => {
                let any = Version { etag: None, version: None };
                publish::replace_base(store, names, &any, layer, finished, &temporary, true)
                    .await?;
                // Our readers ignore the old container's layers, but other programs cannot tell them apart.
                store.delete(&files).await?;
                store.sync_dir("").await?;
            }
        }
        let bytes = stats_file::render_file(&statistics).into();
        crate::publish::publish(store, vec![(names.statistics(), bytes)]).await
    }

    /// Facts about the container that is replaced.
    async fn replaced(&self) -> Result<Replaced> {
        if !self.replace {
            return Ok(Replaced::default());
        }
        let PartsTarget { store, names, .. } = &*self.target;
        let found = store.list_dir("").await?.objects.into_iter().map(|meta| meta.path);
        let layers: Vec<String> = found.filter(|path| names.number(path).is_some()).collect();
        let numbers = layers.iter().filter_map(|path| names.number(path)).max().unwrap_or(0);
        let windows = crate::container::layers::footer_reader::Windows::new(0, |_, _| 0);
        // Numbers are never used twice, so that a writer that still has the old container open does not write
        // into the new one.
        let search = Search { past_damage: true, ..Search::default() };
        let known = Stack::open(store, names, search, &windows).await;
        let (last, absorbed) = match known {
            Ok(stack) => {
                let absorbed = stack.layers.iter().map(|layer| (layer.number, layer.id()));
                let absorbed = absorbed.collect();
                (stack.next.saturating_sub(1), absorbed)
            }
            Err(_) => (0, Vec::new()),
        };
        Ok(Replaced { sequence: numbers.max(last), files: layers, absorbed })
    }
}

/// The file in the folder of work that says which base it became.
fn made_of(names: &Names) -> String {
    format!("{}/base", names.work())
}

/// Whether the work beside the base made that base.
async fn made_by(store: &Store, names: &Names) -> Result<bool> {
    let made = match store.get(&made_of(names)).await {
        Err(Error::NotFound { .. }) => return Ok(false),
        made => made?.bytes,
    };
    let id = made.first_chunk().copied().unwrap_or_default();
    publish::is_ours(store, 0, &names.base(), id).await
}

/// Facts about the container that is replaced.
#[derive(Debug, Default)]
struct Replaced {
    /// The last number it used.
    sequence: u64,
    /// The files of its layers.
    files: Vec<String>,
    /// Its base and its layers. The new base says that it holds them, so that layers that were never deleted
    /// are not taken for its own: layers of other programs do not say which container they belong to.
    absorbed: Vec<(u64, Id)>,
}

#[async_trait]
impl PackSink for ContainerSink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.target.writer(pack, Some(self.parts.clone()))
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.target.sync(receipts).await
    }
}

#[async_trait]
impl Sink for ContainerSink {
    async fn adopt(&self, pack: &Pack, receipt: &Receipt) -> Result<bool> {
        if let Some(file) = file_of(receipt)? {
            match self.target.store.head(&file).await {
                Ok(_) => {}
                Err(Error::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.add(pack, receipt)?;
        Ok(true)
    }

    async fn ticket(&self) -> Result<Ticket> {
        worker::ticket(&self.journal, &self.target.names.base()).await
    }

    async fn accept(&self, pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        self.add(pack, &receipt)?;
        Ok(receipt)
    }

    fn journal(&self) -> &Store {
        &self.journal
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        let (store, dataset) = (&self.target.store, self.dataset.clone());
        Ok(Arc::new(PartsSource::new(store, dataset, self.parts())?))
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        self.publish().await.map_err(|error| taken_away(&self.journal, error))?;
        // The container stands; if the deletion fails, only rubbish stays.
        self.target.store.delete_dir(&self.target.names.work()).await.ok();
        drop(self.lock);
        Ok(Published::default())
    }
}
