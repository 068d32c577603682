//! Directories of Badger 3 and 4, the key-value store below DVID: read only, and without Badger.
//!
//! ```text
//!  MANIFEST      which tables there are, level by level          manifest
//!  NNNNNN.sst    a sorted table: blocks of keys, an index         table, index, block
//!  NNNNNN.vlog   values that are not small, in writing order      value, log
//!  NNNNN.mem     what was written last, not in a table yet        memtable, log
//!  KEYREGISTRY   28 bytes, unless the store is encrypted
//!  DISCARD, LOCK not read
//! ```
//!
//! Every write is kept as a version of its key, with the time of its transaction. A reader
//! [merges](Badger::scan) all tables and logs and keeps the newest version of each key, unless that is
//! a deletion. Keys come first and cost little; values are [references](chunkyard_store::ChunkRef) that
//! the one [`Fetcher`] fetches and checks, or [`Badger::values`] in the order in which they are stored.
//!
//! Nothing is written and no lock is taken. A directory that was copied while a server ran, or that a
//! server left behind without closing it, is read as far as it goes, and [`Badger::cautions`] says what
//! may be missing. Byte by byte: `docs/formats/badger.md`.

mod block;
mod bulk;
mod checksum;
mod damage;
#[doc(hidden)]
pub(crate) mod hostile;
mod index;
mod key;
mod log;
mod manifest;
mod memtable;
mod record;
mod scan;
mod source;
mod table;
mod tear;
mod value;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Fetcher, Noun, Result, Store};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

pub use self::damage::Skipped;
pub use self::key::KeyRange;
pub use self::value::Entry;

use self::damage::Damage;
use self::manifest::Manifest;
use self::memtable::Memtable;
use self::table::Table;
use self::value::ValueLogs;
use self::wire::corrupt;

const KEY_REGISTRY: &str = "KEYREGISTRY";

/// The whole key registry of a store that is not encrypted: 16 random bytes and this text.
const KEY_REGISTRY_BYTES: u64 = 28;
const KEY_REGISTRY_TEXT: &[u8] = b"Hello Badger";

/// A larger manifest lists more tables than a machine could open.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// How a directory is opened.
#[derive(Debug, Clone, Default)]
pub struct BadgerOptions {
    /// Whether damaged tables, blocks and values are left out and [listed](Badger::skipped) instead of
    /// being errors. A manifest that is damaged within is an error all the same.
    pub skip_corrupt: bool,
    /// The time of the last transaction that counts; all do if there is none.
    pub at: Option<u64>,
}

/// An open directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Badger {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    fetcher: Fetcher,
    /// Newest first.
    memtables: Vec<Arc<Memtable>>,
    /// Tables that follow one another, newest first: each of level 0 alone, then level by level.
    levels: Vec<Arc<[Table]>>,
    logs: ValueLogs,
    cautions: Vec<String>,
    damage: Damage,
    /// The time of the last transaction that counts.
    at: u64,
}

/// The files of a directory by what they are, with their sizes.
#[derive(Debug, Default)]
struct Files {
    tables: BTreeMap<u64, u64>,
    memtables: BTreeMap<u32, (String, u64)>,
    logs: ValueLogs,
    manifest: Option<u64>,
    key_registry: Option<u64>,
    lock: bool,
}

impl Files {
    async fn list(store: &Store) -> Result<Self> {
        let mut files = Self::default();
        for meta in store.list_dir("").await?.objects {
            let (name, size) = (meta.path, meta.size);
            match name.rsplit_once('.') {
                None if name == manifest::FILE => files.manifest = Some(size),
                None if name == KEY_REGISTRY => files.key_registry = Some(size),
                None if name == "LOCK" => files.lock = true,
                Some((id, "sst")) => {
                    if let Ok(id) = id.parse()
                        && table::name(id) == name
                    {
                        files.tables.insert(id, size);
                    }
                }
                Some((id, "vlog")) => {
                    if let Ok(id) = id.parse()
                        && value::name(id) == name
                    {
                        files.logs.files.insert(id, (name.into(), size));
                    }
                }
                Some((id, "mem")) => {
                    if let Ok(id) = id.parse()
                        && format!("{id:05}.mem") == name
                    {
                        files.memtables.insert(id, (name, size));
                    }
                }
                _ => {}
            }
        }
        Ok(files)
    }
}

impl Badger {
    /// Whether a store is a Badger directory, by the first bytes of its manifest.
    pub async fn probe(store: &Store) -> Result<bool> {
        match store.get_range(manifest::FILE, 0..4).await {
            Ok(bytes) => Ok(manifest::is_manifest(&bytes)),
            // No such file, or a shorter one.
            Err(Error::NotFound { what: Noun::Object, .. } | Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens the directory that a store is rooted at.
    pub async fn open(store: &Store) -> Result<Self> {
        Self::open_with(store, &BadgerOptions::default()).await
    }

    /// Opens a directory with options.
    pub async fn open_with(store: &Store, options: &BadgerOptions) -> Result<Self> {
        let files = Files::list(store).await?;
        if let Some(size) = files.manifest.filter(|size| *size > MANIFEST_BYTES_MAX) {
            let expected = format!("at most {MANIFEST_BYTES_MAX} bytes");
            return Err(corrupt(manifest::FILE, "its size", expected, size.to_string()));
        }
        let manifest = store.get(manifest::FILE).await?.bytes;
        let manifest = manifest::parse(manifest::FILE, &manifest)?;
        let damage = Damage::new(options.skip_corrupt);
        let is_plain = check_key_registry(store, files.key_registry, &damage).await?;
        let mut cautions = Vec::new();
        if files.lock {
            cautions.push(
                "LOCK: a server has the store open, or had when it died or the files were copied; \
                 what it had not written to them is missing"
                    .to_owned(),
            );
        }
        let unnamed = files.tables.keys().filter(|id| !manifest.tables.contains_key(id));
        let unnamed: Vec<String> = unnamed.map(|id| table::name(*id)).collect();
        if let Some(at) = manifest.torn_at {
            // A table that is there may be the one that the rest of the manifest named.
            if let Some(table) = unnamed.first() {
                let what = format!("the record at offset {at}");
                let expected = "all of it, as there are tables that it may name";
                let found = format!("the end of the file, and {table}");
                let bytes = Some(at..files.manifest.unwrap_or(at));
                let part = Skipped { bytes, ..Skipped::file(manifest::FILE) };
                damage.meet(corrupt(manifest::FILE, what, expected, found), part)?;
            }
            cautions.push(format!(
                "MANIFEST is torn at offset {at}: tables that were made later are missing, and deleted ones may show"
            ));
        }
        for name in unnamed {
            cautions.push(format!("{name} is not read, because MANIFEST does not name it"));
        }
        let memtables = read_memtables(store, &files, is_plain, &damage, &mut cautions).await?;
        let levels = read_tables(store, &files, &manifest, &damage).await?;
        let inner = Inner {
            store: store.clone(),
            fetcher: Fetcher::within(store),
            memtables,
            levels,
            logs: files.logs,
            cautions,
            damage,
            at: options.at.unwrap_or(u64::MAX),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What may be missing although nothing is damaged, because the store was not closed or was copied
    /// while it was in use.
    pub fn cautions(&self) -> &[String] {
        &self.inner.cautions
    }

    /// What was left out so far because it is damaged, with [`BadgerOptions::skip_corrupt`]: the first 10,000 parts.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.inner.damage.all().0
    }

    /// How many parts were left out besides those that are listed.
    pub fn skipped_more(&self) -> u64 {
        self.inner.damage.all().1
    }

    /// The newest live version of each key in a range, in batches and in the order of the keys. A batch
    /// may be empty.
    pub fn scan(&self, range: KeyRange) -> BoxStream<'static, Result<Vec<Entry>>> {
        scan::scan(self.inner.clone(), range, true)
    }

    /// The newest version of a key, unless it is deleted.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Entry>> {
        let range = KeyRange::within(key.to_vec()..=key.to_vec());
        let mut scan = scan::scan(self.inner.clone(), range, false);
        while let Some(batch) = scan.try_next().await? {
            if let Some(entry) = batch.into_iter().next() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Fetches values, and checks those that are in value logs.
    pub fn fetcher(&self) -> &Fetcher {
        &self.inner.fetcher
    }

    /// About the memory that indexes of tables take.
    pub fn index_bytes(&self) -> usize {
        let tables = self.inner.levels.iter().flat_map(|level| level.iter());
        tables.map(|table| table.index.bytes()).sum()
    }
}

/// Refuses an encrypted store. Whether the registry says that there are no keys.
async fn check_key_registry(store: &Store, size: Option<u64>, damage: &Damage) -> Result<bool> {
    // A copy may lack the file.
    let Some(size) = size else { return Ok(false) };
    let at = KEY_REGISTRY_BYTES - KEY_REGISTRY_TEXT.len() as u64;
    let text = match size {
        KEY_REGISTRY_BYTES => store.get_range(KEY_REGISTRY, at..size).await?,
        _ => Bytes::new(),
    };
    if text == KEY_REGISTRY_TEXT {
        return Ok(true);
    }
    // Encrypted, the text would be another one altogether, and a key would follow.
    let alike = text.iter().zip(KEY_REGISTRY_TEXT).filter(|(a, b)| a == b).count();
    if size < KEY_REGISTRY_BYTES || alike * 2 > KEY_REGISTRY_TEXT.len() {
        let expected = "16 bytes and \"Hello Badger\"";
        let error = corrupt(KEY_REGISTRY, "its content", expected, format!("{size} other bytes"));
        damage.meet(error, Skipped::file(KEY_REGISTRY))?;
        return Ok(false);
    }
    Err(Error::unsupported(format!(
        "an encrypted Badger store ({KEY_REGISTRY} has keys or is encrypted: {size} bytes)"
    )))
}

/// Reads the logs of memtables, newest first.
async fn read_memtables(
    store: &Store,
    files: &Files,
    is_plain: bool,
    damage: &Damage,
    cautions: &mut Vec<String>,
) -> Result<Vec<Arc<Memtable>>> {
    let mut memtables = Vec::new();
    for (name, size) in files.memtables.values().rev() {
        let replay = memtable::open(store, name, *size, is_plain, damage).await?;
        let end = replay.at();
        let (memtable, error) = replay.finish();
        if let Some(error) = error {
            damage.meet(error, Skipped { bytes: Some(end..*size), ..Skipped::file(name) })?;
        }
        cautions.push(match memtable.torn {
            None => format!(
                "{name}: the store was not closed; its last writes are missing if they had not reached this file"
            ),
            Some((at, why)) => format!(
                "{name} is torn at offset {at} ({why}): what was written later is missing"
            ),
        });
        memtables.push(Arc::new(memtable));
    }
    Ok(memtables)
}

/// Reads the indexes of tables, newest first.
async fn read_tables(
    store: &Store,
    files: &Files,
    manifest: &Manifest,
    damage: &Damage,
) -> Result<Vec<Arc<[Table]>>> {
    let open = |(id, listed): (u64, manifest::Listed)| async move {
        let name = table::name(id);
        let table = match files.tables.get(&id) {
            Some(size) => table::open(store, &name, listed, *size).await,
            None => Err(corrupt(&name, "the table, which MANIFEST names", "a file", "none")),
        };
        Ok::<_, Error>((id, listed, name, table))
    };
    let listed: Vec<(u64, manifest::Listed)> =
        manifest.tables.iter().map(|(id, listed)| (*id, *listed)).collect();
    let opened: Vec<_> = stream::iter(listed)
        .map(|table| open(table).boxed())
        .buffered(store.limits().requests.max(1))
        .try_collect()
        .await?;
    let mut newest = Vec::new();
    let mut deeper: BTreeMap<u32, Vec<Table>> = BTreeMap::new();
    for (id, listed, name, table) in opened {
        match table {
            Err(error) => damage.meet(error, Skipped::file(&name))?,
            Ok(table) if table.index.len() == 0 => {}
            Ok(table) if listed.level == 0 => newest.push((id, table)),
            Ok(table) => deeper.entry(listed.level).or_default().push(table),
        }
    }
    // Level 0 has tables as they were written, later ones with greater numbers.
    newest.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
    let newest = newest.into_iter().map(|(_, table)| Arc::from([table]));
    let mut levels: Vec<Arc<[Table]>> = newest.collect();
    for (level, mut tables) in deeper {
        tables.sort_by(|a, b| {
            a.index.first_key(0).map(key::user).cmp(&b.index.first_key(0).map(key::user))
        });
        let mut following: Vec<Table> = Vec::with_capacity(tables.len());
        for table in tables {
            match following.last().filter(|before| !table.is_behind(before)) {
                None => following.push(table),
                Some(before) => {
                    let what = format!("the first key of the table, in level {level}");
                    let expected = format!("one behind those of {}", before.path);
                    let error = corrupt(&table.path, what, expected, "one among them");
                    damage.meet(error, Skipped::file(&table.path))?;
                    // By itself it hides nothing that it should not.
                    levels.push(Arc::from([table]));
                }
            }
        }
        levels.push(Arc::from(following));
    }
    Ok(levels)
}
