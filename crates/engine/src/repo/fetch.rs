//! Fetching chunk bytes: one way for native and virtual chunks, with every check in it.

use std::sync::Arc;

use bytes::Bytes;

use super::config::Config;
use super::manifest::{Payload, Virtual};
use super::{Repository, parquet_file};
use crate::error::{Error, Result};
use crate::store::{Guard, Request, Store};

impl Repository {
    /// Fetches the bytes of chunks, in order. Each comes with words for error messages.
    pub(super) async fn fetch_payloads(
        &self,
        chunks: &[(&str, &Payload)],
        config: &Config,
    ) -> Result<Vec<Bytes>> {
        let mut native = Vec::new();
        for (_, payload) in chunks {
            if let Payload::Native(place) = payload {
                native.push(Request {
                    path: format!("c/{}", place.file).into(),
                    range: place.offset..place.offset + place.length,
                    guard: None,
                });
            }
        }
        let mut fetched = self.inner.store.fetch(&native, self.limits()).await?.into_iter();
        let mut answers = Vec::with_capacity(chunks.len());
        for (what, payload) in chunks {
            let (bytes, crc, file) = match payload {
                Payload::Inline { bytes } => (bytes.clone(), None, String::new()),
                Payload::Native(place) => {
                    let bytes = fetched.next().unwrap_or_default();
                    (bytes, place.crc32c, format!("c/{}", place.file))
                }
                Payload::Virtual(remote) => {
                    let bytes = self.fetch_virtual(remote, config).await?;
                    (bytes, remote.crc32c, remote.url.to_string())
                }
                Payload::Removed => (Bytes::new(), None, String::new()),
            };
            if let Some(crc) = crc.filter(|_| self.inner.options.check_chunks) {
                parquet_file::check_crc(&file, what, crc, &bytes)?;
            }
            answers.push(bytes);
        }
        Ok(answers)
    }

    async fn fetch_virtual(&self, remote: &Virtual, config: &Config) -> Result<Bytes> {
        let (store, path) = self.resolve_virtual(&remote.url, config).await?;
        let guard = Guard {
            etag: remote.etag.clone(),
            not_newer_than_ms: remote.last_modified_ms.filter(|_| remote.etag.is_none()),
        };
        let guard = (guard.etag.is_some() || guard.not_newer_than_ms.is_some()).then_some(guard);
        let range = remote.offset..remote.offset + remote.length;
        let request = Request { path: path.into(), range, guard };
        let bytes = store.fetch(std::slice::from_ref(&request), self.limits()).await?;
        bytes
            .into_iter()
            .next()
            .ok_or_else(|| Error::NotFound { what: "virtual chunk", name: remote.url.to_string() })
    }

    /// The store and path of a virtual chunk, if the user allowed where it points.
    pub(super) async fn resolve_virtual(
        &self,
        url: &str,
        config: &Config,
    ) -> Result<(Store, String)> {
        let url = expand_container(url, config)?;
        let allowed = self.inner.options.allowed.iter().find(|prefix| is_under(&url, prefix));
        let Some(prefix) = allowed else {
            return Err(Error::Invalid {
                what: format!(
                    "a chunk lies at {url}, outside the places you allowed; allow a prefix of it \
                     to read it"
                ),
            });
        };
        let store = {
            let mut remotes =
                self.inner.remotes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match remotes.get(prefix) {
                Some(store) => store.clone(),
                None => {
                    let store = Store::open(prefix, &self.inner.options.store)?;
                    remotes.insert(prefix.clone(), store.clone());
                    store
                }
            }
        };
        let path = strip_scheme(&url)
            .strip_prefix(strip_scheme(prefix).trim_end_matches('/'))
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned();
        if strip_scheme(prefix).starts_with('/') {
            refuse_escape(strip_scheme(prefix), &path).await?;
        }
        Ok((store, path))
    }
}

fn expand_container(url: &str, config: &Config) -> Result<String> {
    let Some(rest) = url.strip_prefix("vcc://") else { return Ok(url.to_owned()) };
    let (name, relative) = rest.split_once('/').unwrap_or((rest, ""));
    match config.containers.get(name) {
        Some(prefix) => Ok(format!("{}/{relative}", prefix.trim_end_matches('/'))),
        None => Err(Error::NotFound { what: "container of virtual chunks", name: name.to_owned() }),
    }
}

/// Whether `url` lies at or below `prefix`, compared segment by segment.
pub(super) fn is_under(url: &str, prefix: &str) -> bool {
    let (url, prefix) = (strip_scheme(url), strip_scheme(prefix).trim_end_matches('/'));
    let clean = !url.split('/').any(|segment| segment == "..");
    clean && url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `file:///x` and `/x` are the same place; other schemes stay.
fn strip_scheme(url: &str) -> &str {
    url.strip_prefix("file://").unwrap_or(url)
}

/// A link inside a container must not lead out of it.
async fn refuse_escape(root: &str, path: &str) -> Result<()> {
    let (root, full) = (Arc::<str>::from(root), format!("{}/{path}", root.trim_end_matches('/')));
    let resolved = tokio::task::spawn_blocking({
        let (root, full) = (root.clone(), full.clone());
        move || -> std::io::Result<bool> {
            Ok(std::fs::canonicalize(&full)?.starts_with(std::fs::canonicalize(&*root)?))
        }
    })
    .await;
    match resolved {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Error::Invalid {
            what: format!("{full} leads out of the allowed place {root} through a link"),
        }),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::NotFound { what: "object", name: full })
        }
        Ok(Err(error)) => Err(Error::store("resolve", full, error)),
        Err(error) => Err(Error::store("resolve", full, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_segments_below_the_prefix_are_allowed() {
        assert!(is_under("s3://b/data/x.nc", "s3://b/data"));
        assert!(is_under("file:///data/x.nc", "/data/"));
        assert!(!is_under("s3://b/data2/x.nc", "s3://b/data"));
        assert!(!is_under("s3://b/data/../x.nc", "s3://b/data"));
        assert!(!is_under("https://b/data/x.nc", "s3://b/data"));
    }
}
