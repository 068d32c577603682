//! What is kept between requests: opened views, and the values of their keys.
//!
//! Both are bounded, and both are made once however many requests wait for them. A value belongs to one opened view, so
//! nothing is ever served of a view that was opened again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use bytes::Bytes;
use chunkyard_engine::Result;
use chunkyard_engine::format::Source;
use chunkyard_engine::repo::{RepoSource, Session, Version};
use moka::future::Cache;
use tokio::sync::Semaphore;
use twox_hash::XxHash64;

use super::latest::Latest;
use super::look::{Look, Seen};
use crate::State;
use crate::http::Failure;

/// Opened views at most.
const VIEWS: u64 = 64;
/// Names of versions at most that are looked up together.
const NAMES: u64 = 256;
/// For so long what is no repository is taken to be as it was when it was opened.
const FRESH: Duration = Duration::from_secs(2);
/// What a permit to have bytes in hand stands for.
const PERMIT_BYTES: usize = 1 << 16;
/// Permits at most.
const PERMITS_MAX: u32 = 1 << 24;
/// What an entry costs besides its bytes.
const ENTRY_BYTES: usize = 160;

/// What the handlers of views keep.
pub(crate) struct Kept {
    views: Cache<ViewKey, Arc<View>>,
    values: Cache<ValueKey, Option<Value>>,
    /// What names of versions stand for, looked up for every request.
    names: moka::sync::Cache<(String, Option<String>), Latest<Found>>,
    opened: AtomicU64,
    /// What values may have in hand together while they are made.
    making: Semaphore,
    permits: u32,
}

/// The session of a version, or why there is none.
type Found = Result<Arc<Session>, Arc<Failure>>;

/// A place at a version, seen in a way. The version is the id of a snapshot, or what was asked for of anything else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ViewKey {
    place: String,
    version: String,
    look: Look,
}

/// A key of an opened view; the same content can be there plain and compressed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ValueKey {
    view: u64,
    gzip: bool,
    key: String,
}

/// An opened view.
#[derive(Debug)]
pub(super) struct View {
    number: u64,
    /// The state that it shows, for validators.
    pub(super) identity: String,
    pub(super) seen: Seen,
    /// When it was opened, if what it shows may change under its name.
    opened: Option<Instant>,
    key: ViewKey,
}

/// The value of a key, and its validator.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) bytes: Bytes,
    pub(super) tag: HeaderValue,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Keeps values of so many bytes, and makes values that have so many in hand together.
    pub(crate) fn new(bytes_max: usize, making_bytes_max: usize) -> Self {
        let permits = u32::try_from(making_bytes_max / PERMIT_BYTES).unwrap_or(u32::MAX);
        let permits = permits.clamp(1, PERMITS_MAX);
        let weigh = |key: &ValueKey, value: &Option<Value>| {
            let bytes = value.as_ref().map_or(0, |value| value.bytes.len());
            u32::try_from(bytes + key.key.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
        };
        Self {
            views: Cache::new(VIEWS),
            values: Cache::builder().max_capacity(bytes_max as u64).weigher(weigh).build(),
            names: moka::sync::Cache::new(NAMES),
            opened: AtomicU64::new(0),
            making: Semaphore::new(permits as usize),
            permits,
        }
    }

    /// The view of a place at a version, and whether it can never change under this name.
    pub(super) async fn view(
        &self,
        state: &State,
        name: &str,
        at: Option<&str>,
        look: Look,
    ) -> Result<(Arc<View>, bool), Failure> {
        let place = state.places().get(name)?;
        let key =
            |version: &str| ViewKey { place: name.to_owned(), version: version.to_owned(), look };
        let bytes_max = state.config().limits.answer_bytes_max;
        let Some(repository) = place.repository().await? else {
            let key = key(at.unwrap_or_default());
            let known = self.views.get(&key).await;
            if known.is_some_and(|view| !view.is_fresh()) {
                self.views.invalidate(&key).await;
            }
            let open =
                self.open(key.clone(), look, bytes_max, async { Ok(place.view(at).await?.source) });
            let view = shared(self.views.try_get_with(key, open).await)?;
            return Ok((view, false));
        };
        // What was opened by its whole id once is known to be one.
        if let Some(at) = at
            && let Some(view) = self.views.get(&key(at)).await
        {
            return Ok((view, true));
        }
        let named = (name.to_owned(), at.map(str::to_owned));
        let (repository, version) = (repository.clone(), named.1.clone());
        let ask = move || async move {
            let version = version.map_or(Version::Default, Version::Named);
            let session = repository.readonly_session(&version).await;
            session.map_err(|error| Arc::new(Failure::from(error)))
        };
        let latest = self.names.get_with(named, Latest::new);
        let session = shared(latest.look(ask).await)?;
        let id = session.snapshot().snapshot_id.clone();
        let pinned = at == Some(&*id);
        let key = key(&id);
        let open = self.open(key.clone(), look, bytes_max, async move {
            Ok(Arc::new(RepoSource::new(session).await?) as Arc<dyn Source>)
        });
        Ok((shared(self.views.try_get_with(key, open).await)?, pinned))
    }

    async fn open(
        &self,
        key: ViewKey,
        look: Look,
        bytes_max: usize,
        source: impl Future<Output = Result<Arc<dyn Source>>>,
    ) -> Result<Arc<View>, Failure> {
        let opened = Instant::now();
        let source = source.await?;
        let changes = !(&*source as &dyn std::any::Any).is::<RepoSource>();
        Ok(Arc::new(View {
            number: self.opened.fetch_add(1, Ordering::Relaxed),
            identity: source.identity(),
            seen: look.at(source, bytes_max).await?,
            opened: changes.then_some(opened),
            key,
        }))
    }

    /// Forgets a view whose source is no longer what it was; `false` if its source never changes.
    pub(super) async fn forget(&self, view: &View) -> bool {
        if view.opened.is_some() {
            self.views.invalidate(&view.key).await;
        }
        view.opened.is_some()
    }

    /// The value of a key of a view; made at most once at a time.
    pub(super) async fn value(
        &self,
        view: &View,
        key: &str,
        gzip: bool,
        bytes_in_hand: usize,
        make: impl Future<Output = Result<Option<Bytes>>>,
    ) -> Result<Option<Value>, Failure> {
        let key = ValueKey { view: view.number, gzip, key: key.to_owned() };
        let make = async {
            // A value that needs more than there is waits until it is alone.
            let permits = u32::try_from(bytes_in_hand / PERMIT_BYTES).unwrap_or(u32::MAX);
            let _permit = self.making.acquire_many(permits.clamp(1, self.permits)).await;
            let bytes = make.await?;
            // A slice would keep all of a larger read alive.
            let own = bytes.map(|bytes| Bytes::copy_from_slice(&bytes));
            let tag = |bytes: &Bytes| tag(XxHash64::oneshot(0, bytes), gzip);
            Ok(own.map(|bytes| Value { tag: tag(&bytes), bytes }))
        };
        shared(self.values.try_get_with(key, make).await)
    }
}

impl View {
    fn is_fresh(&self) -> bool {
        self.opened.is_none_or(|opened| opened.elapsed() < FRESH)
    }
}

/// The validator of content with this hash. Compressed content is not the same bytes.
pub(super) fn tag(hash: u64, gzip: bool) -> HeaderValue {
    let form = if gzip { "-gzip" } else { "" };
    HeaderValue::from_str(&format!("\"{hash:016x}{form}\""))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

/// What several requests waited for, with a failure for each of them.
fn shared<T>(result: Result<T, Arc<Failure>>) -> Result<T, Failure> {
    result.map_err(|failure| Failure::new(failure.status, failure.reason.clone()))
}
