//! Writes BLZ: files of chunks, then the meta files, `meta/sizes` last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{Digest, Error, Noun, Result, Store};

use super::draft::{COMMITS, Draft};
use super::pack_writer::{SuperchunkWriter, Target};
use super::source::BlzSource;
use super::tree::{HIERARCHY, Member, joined};
use crate::staging::{Marks, Staging, refuse_long_names};
use crate::superchunk::handle::{Blz, BlzOptions};
use crate::superchunk::model::Style;
use crate::worker_packs::{self, Writers};
use crate::{
    CreateOptions, Dataset, HELD_BYTES_MAX, JOURNAL_PLAN, OpenOptions, Pack, PackSink, PackWriter,
    Place, Published, Receipt, Sink, Source, Ticket,
};

/// How a BLZ dataset is recognized.
const MARKS: Marks = Marks { format: "BLZ", known: COMMITS, complete: COMMITS, file: None };

/// Bytes of the id that tells a dataset from others.
const ID_BYTES: usize = 12;

/// BLZ datasets being written.
#[derive(Debug)]
pub struct BlzSink {
    pub(crate) staging: Staging,
    pub(crate) draft: Draft,
    columns: Columns,
    stored: Arc<Stored>,
}

/// Where the chunks of each array go.
#[derive(Debug)]
pub(crate) struct Columns {
    targets: BTreeMap<String, Arc<Target>>,
    /// The id of the dataset, once it is known.
    id: OnceLock<Option<String>>,
}

impl Columns {
    pub(crate) fn new(draft: &Draft) -> Self {
        let mut all = BTreeMap::new();
        for member in &draft.members {
            for column in member.columns.clone() {
                let path = joined(&member.path, &column.path);
                let (folder, style, len) = (member.folder.clone(), draft.style, member.len);
                let member = member.path.clone();
                all.insert(path, Arc::new(Target { folder, member, column, style, len }));
            }
        }
        Self { targets: all, id: OnceLock::new() }
    }

    /// The id of the dataset, which each file names. Every process of a conversion must find the same id, also
    /// after an interruption: so it is a digest of the plan, which all of them share.
    pub(crate) async fn identify(&self, journal: &Store) -> Result<Option<String>> {
        if let Some(known) = self.id.get() {
            return Ok(known.clone());
        }
        let id = match journal.get(JOURNAL_PLAN).await {
            Ok(plan) => {
                let digest = Digest::Sha256.of(&plan.bytes);
                Some(digest.iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect())
            }
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(self.id.get_or_init(|| id).clone())
    }
}

impl Writers for Columns {
    fn writer(&self, pack: &Pack, store: Store) -> Result<Box<dyn PackWriter>> {
        let missing = || Error::NotFound { what: Noun::Array, name: pack.array.to_string() };
        let target = self.targets.get(&*pack.array).ok_or_else(missing)?;
        let target = target.identified(self.id.get().and_then(Option::as_deref));
        Ok(Box::new(SuperchunkWriter::new(store, Arc::new(target), pack)))
    }

    /// An object begins with its offsets, so it is held in memory until it is complete.
    fn held_bytes_max(&self, store: &Store) -> u64 {
        if store.writes_in_place() { HELD_BYTES_MAX } else { u64::MAX }
    }
}

/// Encoded bytes of the complete packs: `meta/sizes` has their sum.
#[derive(Debug, Default)]
struct Stored(Mutex<BTreeMap<(Arc<str>, u64), u64>>);

impl Stored {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<(Arc<str>, u64), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, pack: &Pack, receipt: &Receipt) {
        self.locked().insert((pack.array.clone(), pack.number), receipt.bytes);
    }

    fn of(&self, array: &str) -> u64 {
        let packs = self.locked();
        packs.iter().filter(|((of, _), _)| **of == *array).map(|(_, bytes)| bytes).sum()
    }
}

/// The style of a dataset, from the end of its name.
pub(crate) fn style_of(place: &Place) -> Style {
    match place.url().trim_end_matches('/').ends_with(".bcolz") {
        true => Style::Bcolz,
        false => Style::Superchunk,
    }
}

impl BlzSink {
    /// Begins to write a dataset at a place.
    pub async fn create(place: &Place, dataset: &Dataset, options: CreateOptions) -> Result<Self> {
        Self::begin(place, dataset, options, MARKS).await
    }

    /// The same, where the caller turns the result into something else.
    pub(crate) async fn begin(
        place: &Place,
        dataset: &Dataset,
        options: CreateOptions,
        marks: Marks,
    ) -> Result<Self> {
        let draft = Draft::new(dataset, style_of(place))?;
        let columns = Columns::new(&draft);
        let folders =
            columns.targets.values().map(|target| [&target.folder, &target.column.folder]);
        refuse_long_names(place, folders.flatten().map(String::as_str))?;
        let staging = Staging::begin(place, &options, marks).await?;
        Ok(Self { staging, draft, columns, stored: Arc::default() })
    }

    /// The meta files, in the order in which they are written.
    async fn documents(&self) -> Result<Vec<(String, Bytes)>> {
        let mut documents = Vec::new();
        let id = self.columns.identify(&self.staging.journal).await?;
        for member in &self.draft.members {
            let stored = |column: &crate::superchunk::model::Column| {
                self.stored.of(&joined(&member.path, &column.path))
            };
            documents.extend(member.files(id.as_deref(), stored));
        }
        if let Some(hierarchy) = &self.draft.hierarchy {
            documents.push((HIERARCHY.to_owned(), hierarchy.render()?.into()));
        }
        Ok(documents)
    }
}

/// A pack whose size is noted when it is complete.
struct Noted {
    writer: Box<dyn PackWriter>,
    stored: Arc<Stored>,
    pack: Pack,
}

#[async_trait]
impl PackWriter for Noted {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        self.writer.push(chunks).await
    }

    async fn close(self: Box<Self>) -> Result<Receipt> {
        let receipt = self.writer.close().await?;
        self.stored.note(&self.pack, &receipt);
        Ok(receipt)
    }
}

#[async_trait]
impl PackSink for BlzSink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.columns.identify(&self.staging.journal).await?;
        let writer = self.columns.writer(pack, self.staging.data.clone())?;
        Ok(Box::new(Noted { writer, stored: self.stored.clone(), pack: pack.clone() }))
    }

    fn held_bytes_max(&self) -> u64 {
        self.columns.held_bytes_max(&self.staging.data)
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.staging.sync(receipts).await
    }
}

#[async_trait]
impl Sink for BlzSink {
    async fn adopt(&self, pack: &Pack, receipt: &Receipt) -> Result<bool> {
        // The files have their final names already; only this conversion writes there.
        self.stored.note(pack, receipt);
        Ok(true)
    }

    async fn ticket(&self) -> Result<Ticket> {
        worker_packs::ticket(&self.staging.journal).await
    }

    async fn accept(&self, pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        self.stored.note(pack, &receipt);
        self.staging.accept(&receipt).await
    }

    fn journal(&self) -> &Store {
        &self.staging.journal
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        let data = &self.staging.data;
        let mut members = Vec::new();
        for member in &self.draft.members {
            let store = match member.folder.trim_end_matches('/') {
                "" => data.clone(),
                folder => data.below(folder)?,
            };
            let blz = Blz::of_directory(store, member.directory(), &BlzOptions::default());
            let (path, folder) = (member.path.clone(), member.folder.clone());
            members.push(Member { path, folder, blz });
        }
        let groups = self.draft.hierarchy.as_ref().map(|hierarchy| hierarchy.groups());
        let options = OpenOptions::default();
        let source = BlzSource::new(data.clone(), members, groups.unwrap_or_default(), &options)?;
        Ok(Arc::new(source))
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        let mut paths = Vec::new();
        for (path, bytes) in self.documents().await? {
            self.staging.data.put(&path, vec![bytes]).await?;
            paths.push(path);
        }
        self.staging.data.sync(&paths).await?;
        self.staging.publish().await?;
        Ok(Published::default())
    }
}
