//! Levels 2 and 3: chunk files exist and are long enough; then every byte of them.
//!
//! Nothing here is kept per reference while the metadata is walked. For the bytes, a second walk
//! gathers the references by chunk file; if there are too many at once, several walks do it, each
//! for a share of the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chunkyard_store::{Error, Result};
use futures::TryStreamExt;

use super::bytes::{ByteRange, check_chunk_file};
use super::manifest::Manifest;
use super::users::{Affected, Spans, Users};
use super::{Finding, Report, Severity};
use crate::maintain::{DATA_DIRECTORIES, is_collectable};
use crate::manifest::{Native, stream_blocks};
use crate::state::State;
use crate::{Payload, Repository, Virtual};

/// References held at once.
const REFERENCES_MAX: u64 = 1 << 21;

/// The chunk files that manifests name.
pub(super) struct ChunkFiles {
    /// Which snapshots need which file, in all directories.
    pub(super) users: Users,
    /// Sizes of all existing files, by path.
    sizes: HashMap<String, u64>,
    /// Each chunk file, with an array that needs it.
    native: BTreeMap<Arc<str>, Arc<str>>,
    /// Virtual references, one of each object.
    remote: BTreeMap<Arc<str>, Virtual>,
    /// Ends of chunks that lie beyond the end of their file, with the array.
    beyond: BTreeSet<(Arc<str>, u64, Arc<str>)>,
    /// The file that the last reference was into, and its size.
    last: Option<(Arc<str>, Option<u64>)>,
    /// References into chunk files.
    references: u64,
    /// Manifests with references into chunk files, and the files each of them names.
    manifests: Vec<Arc<str>>,
    named: BTreeSet<Arc<str>>,
}

impl ChunkFiles {
    pub(super) fn new(users: Users, sizes: HashMap<String, u64>) -> Self {
        Self {
            users,
            sizes,
            native: BTreeMap::new(),
            remote: BTreeMap::new(),
            beyond: BTreeSet::new(),
            last: None,
            references: 0,
            manifests: Vec::new(),
            named: BTreeSet::new(),
        }
    }

    /// Takes note of a reference of the manifest that is being walked.
    pub(super) fn add(&mut self, payload: Payload, array: &Arc<str>) {
        match payload {
            Payload::Native(native) => self.add_native(native, array),
            Payload::Virtual(remote) => {
                self.remote.insert(remote.url.clone(), *remote);
            }
            Payload::Inline { .. } | Payload::Removed => {}
        }
    }

    fn add_native(&mut self, native: Native, array: &Arc<str>) {
        self.references += 1;
        let size = match &self.last {
            Some((file, size)) if *file == native.file => *size,
            _ => {
                let size = self.sizes.get(&format!("c/{}", native.file)).copied();
                self.named.insert(native.file.clone());
                self.native.entry(native.file.clone()).or_insert_with(|| array.clone());
                self.last = Some((native.file.clone(), size));
                size
            }
        };
        let end = native.offset + native.length;
        if size.is_some_and(|size| end > size) {
            self.beyond.insert((native.file, end, array.clone()));
        }
    }

    /// A snapshot that needs the walked manifest needs the files it names.
    pub(super) fn end_of_manifest(&mut self, manifest: &Arc<str>, spans: &Spans) {
        self.last = None;
        if !self.named.is_empty() {
            self.manifests.push(manifest.clone());
        }
        for file in std::mem::take(&mut self.named) {
            self.users.add_all(format!("c/{file}"), spans);
        }
    }

    fn size(&self, file: &str) -> Option<u64> {
        self.sizes.get(&format!("c/{file}")).copied()
    }
}

/// Which share of the chunk files a file belongs to.
fn share(file: &str, shares: u64) -> u64 {
    u64::from(crc32c::crc32c(file.as_bytes())) % shares
}

impl Repository {
    /// Level 2: chunk files exist and are long enough, virtual sources are unchanged.
    pub(super) async fn verify_existence(
        &self,
        state: &State,
        files: &ChunkFiles,
        report: &mut Report,
    ) -> Result<()> {
        for (path, size) in &files.sizes {
            if !files.users.contains(path) && is_collectable(path) {
                report.orphan_files += 1;
                report.orphan_bytes += size;
            }
        }
        for (file, array) in &files.native {
            report.checked.chunk_files += 1;
            if files.size(file).is_none() {
                let path = format!("c/{file}");
                let spans = files.users.of(&path);
                let affected = Affected::new(state, &spans);
                let finding = report.error(&path, "the file is missing".into(), affected);
                finding.array = Some(array.to_string());
            }
        }
        for (file, end, array) in &files.beyond {
            let path = format!("c/{file}");
            let spans = files.users.of(&path);
            let size = files.size(file).unwrap_or(0);
            let what = format!("a chunk ends at byte {end}, the file has {size}");
            let finding = report.error(&path, what, Affected::new(state, &spans));
            finding.array = Some(array.to_string());
        }
        for remote in files.remote.values() {
            self.verify_remote(remote, state, report).await?;
        }
        Ok(())
    }

    /// Level 3: every byte of every chunk file.
    pub(super) async fn verify_bytes(
        &self,
        state: &State,
        manifests: &BTreeMap<Arc<str>, Manifest>,
        files: &ChunkFiles,
        report: &mut Report,
    ) -> Result<()> {
        self.inner
            .options
            .meter
            .expect(files.native.keys().filter_map(|file| files.size(file)).sum());
        let shares = files.references.div_ceil(REFERENCES_MAX);
        for number in 0..shares {
            let mine = |file: &str| share(file, shares) == number;
            let mut ranges: BTreeMap<Arc<str>, Vec<ByteRange>> = BTreeMap::new();
            for file in &files.manifests {
                let Some(manifest) = manifests.get(file) else { continue };
                self.gather(file, manifest, mine, &mut ranges).await?;
            }
            for (file, ranges) in ranges {
                if files.size(&file).is_some() {
                    self.verify_chunk_file(&file, ranges, state, files, report).await?;
                }
            }
        }
        Ok(())
    }

    /// Gathers the references of one manifest into some of the chunk files. Damage of the manifest
    /// itself was found before.
    async fn gather(
        &self,
        file: &Arc<str>,
        manifest: &Manifest,
        mine: impl Fn(&str) -> bool,
        ranges: &mut BTreeMap<Arc<str>, Vec<ByteRange>>,
    ) -> Result<()> {
        let bytes = self.read_manifest(file, manifest).await?;
        let arrays = manifest.arrays();
        for block in stream_blocks(file, self.dataset_id(), &bytes, manifest.tail())? {
            let Ok(block) = block else { return Ok(()) };
            for at in 0..block.len() {
                // An array that no snapshot has any more needs no chunks.
                let Some(array) = arrays.get(&block.array_id(at)) else { continue };
                let Ok(Payload::Native(native)) = block.payload(at) else { continue };
                if mine(&native.file) {
                    ranges.entry(native.file).or_default().push(ByteRange {
                        offset: native.offset,
                        length: native.length,
                        crc32c: native.crc32c,
                        array: array.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    async fn verify_chunk_file(
        &self,
        file: &str,
        mut ranges: Vec<ByteRange>,
        state: &State,
        files: &ChunkFiles,
        report: &mut Report,
    ) -> Result<()> {
        let path = format!("c/{file}");
        let spans = files.users.of(&path);
        let affected = Affected::new(state, &spans);
        ranges.sort_unstable();
        // Runs that were merged name the same chunks again.
        ranges.dedup_by(|a, b| a.place() == b.place());
        let read = self.store().backend().get(&path).await;
        if let Some(object) = report.take(&path, affected, read)? {
            report.checked.bytes += object.bytes.len() as u64;
            self.inner.options.meter.advance(object.bytes.len() as u64);
            check_chunk_file(&path, &object.bytes, &ranges, affected, report);
        }
        Ok(())
    }

    /// Sizes of all files.
    pub(super) async fn sizes(&self) -> Result<HashMap<String, u64>> {
        let mut sizes = HashMap::new();
        for directory in DATA_DIRECTORIES {
            let mut listed = self.store().backend().list(directory).await?;
            while let Some(meta) = listed.try_next().await? {
                sizes.insert(meta.path, meta.size);
            }
        }
        Ok(sizes)
    }

    /// A virtual source must be unchanged; one that we may not read is worth a note.
    async fn verify_remote(
        &self,
        remote: &Virtual,
        state: &State,
        report: &mut Report,
    ) -> Result<()> {
        let none = Affected::NONE;
        let (store, path) = match self.resolve_virtual(&remote.url, &state.config).await {
            Ok(resolved) => resolved,
            Err(Error::NotFound { .. }) => {
                report.error(&remote.url, "the virtual source is missing".into(), none);
                return Ok(());
            }
            // Noted once: a user who allows nothing would get this note for every chunk.
            Err(Error::Invalid { .. }) if report.outside_noted => return Ok(()),
            Err(error) => {
                report.outside_noted |= matches!(error, Error::Invalid { .. });
                report.findings.push(Finding {
                    severity: Severity::Note,
                    file: remote.url.to_string(),
                    what: format!("not checked, nor others outside: {error}"),
                    snapshots: Vec::new(),
                    array: None,
                    chunk: None,
                });
                return Ok(());
            }
        };
        let head = store.backend().head(&path).await;
        let Some(meta) = report.take(&remote.url, none, head)? else { return Ok(()) };
        if let Some(guard) = remote.guard() {
            report.take(&remote.url, none, guard.check(&remote.url, &meta))?;
        }
        Ok(())
    }
}
