//! Fetching chunk bytes: turns payloads of manifests into references that the store fetches.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Check, ChunkRef, Error, Guard, Noun, Result, Store};

use super::Repository;
use super::config::Config;
use super::manifest::{Native, Payload, Virtual};

impl Repository {
    /// Fetches the bytes of chunks, in order. Each comes with a name for error messages.
    pub(super) async fn fetch_payloads(
        &self,
        chunks: &[(&str, &Payload)],
        config: &Config,
    ) -> Result<Vec<Bytes>> {
        let refs: Vec<ChunkRef> =
            chunks.iter().map(|(_, payload)| reference(payload, config)).collect::<Result<_>>()?;
        let refs: Vec<&ChunkRef> = refs.iter().collect();
        let what = |at: usize| chunks.get(at).map_or("a chunk", |(what, _)| *what).to_owned();
        let fetched = self.inner.fetcher.fetch_named(&refs, what).await?;
        // Only whole objects can be missing, and there are none here.
        Ok(fetched.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The store and path of a virtual chunk, if the user allowed where it points.
    pub(super) async fn resolve_virtual(
        &self,
        url: &Arc<str>,
        config: &Config,
    ) -> Result<(Store, String)> {
        self.inner.fetcher.remotes().resolve(&expand_container(url, config)?).await
    }
}

/// Where the bytes of a chunk are, as the store says it.
pub(super) fn reference(payload: &Payload, config: &Config) -> Result<ChunkRef> {
    Ok(match payload {
        Payload::Inline { bytes } => ChunkRef::Inline(bytes.clone()),
        Payload::Native(native) => native.reference(),
        Payload::Virtual(remote) => ChunkRef::Remote {
            url: expand_container(&remote.url, config)?,
            range: remote.offset..remote.offset.saturating_add(remote.length),
            guard: remote.guard(),
            check: remote.crc32c.map(Check::Crc32c),
        },
        Payload::Removed => ChunkRef::Inline(Bytes::new()),
    })
}

impl Native {
    /// Where the bytes are, as the store says it.
    pub(super) fn reference(&self) -> ChunkRef {
        ChunkRef::Object {
            path: format!("c/{}", self.file).into(),
            range: self.offset..self.offset.saturating_add(self.length),
            // Files of a repository never change.
            guard: None,
            check: self.crc32c.map(Check::Crc32c),
        }
    }
}

impl Virtual {
    /// Checks that the object is still the one that was linked. An etag says more than a time.
    pub(super) fn guard(&self) -> Option<Guard> {
        let guard = Guard {
            etag: self.etag.clone(),
            not_newer_than_ms: self.last_modified_ms.filter(|_| self.etag.is_none()),
        };
        (guard != Guard::default()).then_some(guard)
    }
}

fn expand_container(url: &Arc<str>, config: &Config) -> Result<Arc<str>> {
    let Some(rest) = url.strip_prefix("vcc://") else { return Ok(url.clone()) };
    let (name, relative) = rest.split_once('/').unwrap_or((rest, ""));
    match config.containers.get(name) {
        Some(prefix) => Ok(format!("{}/{relative}", prefix.trim_end_matches('/')).into()),
        None => Err(unknown_container(name, url, config)),
    }
}

/// The error of a chunk in a container that the repository does not know.
fn unknown_container(name: &str, url: &str, config: &Config) -> Error {
    let known: Vec<&str> = config.containers.keys().map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => "the repository names none".to_owned(),
        names => format!("the repository names {}", names.join(", ")),
    };
    Error::NotFound {
        what: Noun::VirtualContainer,
        name: format!(
            "{name:?}, in which the chunk {url} lies; {known}. The configuration of the repository \
             says which URL a container stands for (containers, in Python Repository.create(config=)), \
             and to read there, allow that URL (--allow or allow=)"
        ),
    }
}
