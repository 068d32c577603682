//! Objects elsewhere: which may be read, and through which store.
//!
//! A dataset may name any URL. A reader follows one only if its user allowed a prefix of it, and then
//! not through a link that leads out of there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::backend::Kind;
use super::confine::Confined;
use super::{Options, Store};
use crate::error::{Error, Result};

/// The places that references may point into, each opened once.
#[derive(Debug)]
pub struct Remotes {
    allowed: Vec<String>,
    options: Options,
    open: Mutex<HashMap<String, OpenRemote>>,
}

#[derive(Debug, Clone)]
struct OpenRemote {
    store: Store,
    /// Set where links exist.
    confined: Option<Confined>,
}

impl Remotes {
    /// URL prefixes or paths below which everything may be read, and how to open them.
    pub fn new(allowed: Vec<String>, options: Options) -> Self {
        Self { allowed, options, open: Mutex::default() }
    }

    /// Whether the user allowed to read at this URL.
    pub fn allows(&self, url: &str) -> bool {
        self.prefix(url).is_some()
    }

    /// The store that has the object at `url`, and the object's path in it.
    pub async fn resolve(&self, url: &str) -> Result<(Store, String)> {
        let Some(prefix) = self.prefix(url) else { return Err(outside(url)) };
        let path = strip_scheme(url)
            .strip_prefix(strip_scheme(prefix).trim_end_matches('/'))
            .unwrap_or_default()
            .trim_start_matches('/');
        if path.is_empty() {
            // The user allowed this object, even if it is a link.
            let (directory, name) = parent(prefix)?;
            return Ok((self.place(directory)?.store, name.to_owned()));
        }
        let place = self.place(prefix)?;
        if let Some(confined) = &place.confined {
            confined.check(path).await?;
        }
        Ok((place.store, path.to_owned()))
    }

    /// A store of everything below a URL, if the user allowed that; for callers that write there.
    pub fn below(&self, url: &str) -> Result<Store> {
        match self.prefix(url) {
            Some(_) => Store::open(url, &self.options),
            None => Err(outside(url)),
        }
    }

    fn prefix(&self, url: &str) -> Option<&str> {
        self.allowed.iter().map(String::as_str).find(|prefix| is_under(url, prefix))
    }

    fn place(&self, url: &str) -> Result<OpenRemote> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = open.get(url) {
            return Ok(place.clone());
        }
        let store = Store::open(url, &self.options)?;
        let confined = (store.kind() == Kind::Local).then(|| Confined::new(store.url()));
        let place = OpenRemote { store, confined };
        open.insert(url.to_owned(), place.clone());
        Ok(place)
    }
}

fn outside(url: &str) -> Error {
    let why = if climbs(url) {
        "which has a segment .. and is never followed".to_owned()
    } else {
        let prefix = parent(url).map_or(url, |(directory, _)| directory);
        format!("outside the places you allowed; to read it, allow {prefix} (--allow or allow=)")
    };
    Error::invalid(format!("a chunk lies at {url}, {why}"))
}

/// The URL of the directory of an object, and the object's name in it.
fn parent(url: &str) -> Result<(&str, &str)> {
    match url.trim_end_matches('/').rsplit_once('/') {
        Some(("" | "file://", name)) => Ok(("/", name)),
        Some((directory, name)) if !directory.ends_with('/') => Ok((directory, name)),
        _ => Err(Error::invalid(format!("{url} names no object"))),
    }
}

/// Whether `url` lies at or below `prefix`, compared segment by segment.
fn is_under(url: &str, prefix: &str) -> bool {
    let (below, prefix) = (strip_scheme(url), strip_scheme(prefix).trim_end_matches('/'));
    let rest = below.strip_prefix(prefix);
    !climbs(url) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn climbs(url: &str) -> bool {
    url.split('/').any(|segment| segment == "..")
}

/// `file:///x` and `/x` are the same place; other schemes stay.
fn strip_scheme(url: &str) -> &str {
    url.strip_prefix("file://").unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowing(prefixes: &[&str]) -> Remotes {
        let allowed = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        Remotes::new(allowed, Options::default())
    }

    #[test]
    fn only_whole_segments_below_the_prefix_are_allowed() {
        assert!(is_under("s3://b/data/x.nc", "s3://b/data"));
        assert!(is_under("file:///data/x.nc", "/data/"));
        assert!(!is_under("s3://b/data2/x.nc", "s3://b/data"));
        assert!(!is_under("s3://b/data/../x.nc", "s3://b/data"));
        assert!(!is_under("https://b/data/x.nc", "s3://b/data"));
    }

    #[tokio::test]
    async fn a_place_is_opened_once() {
        let remotes = allowing(&["memory://elsewhere", "memory://remotes/data/"]);
        let (one, path) = remotes.resolve("memory://remotes/data/d/x").await.unwrap();
        assert_eq!(path, "d/x");
        let (two, _) = remotes.resolve("memory://remotes/data/y").await.unwrap();
        assert!(std::sync::Arc::ptr_eq(one.backend(), two.backend()));
    }

    #[tokio::test]
    async fn a_single_object_can_be_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.nc");
        std::fs::write(&file, "abc").unwrap();
        std::fs::write(directory.path().join("x.nc.bak"), "abc").unwrap();
        let url = format!("file://{}", file.display());
        let remotes = allowing(&[&url]);
        let (store, path) = remotes.resolve(&url).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap().bytes, "abc");
        assert!(remotes.resolve(&format!("{url}.bak")).await.is_err());
        assert!(allowing(&["memory://bucket"]).resolve("memory://bucket").await.is_err());
    }

    #[tokio::test]
    async fn a_refused_read_says_what_to_allow() {
        let error = allowing(&["s3://b/other"]).resolve("s3://b/data/x.nc").await.unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(error.to_string().ends_with("allow s3://b/data (--allow or allow=)"), "{error}");
        let error = allowing(&["/data"]).resolve("file:///data/../etc").await.unwrap_err();
        assert!(!error.to_string().contains("--allow"), "{error}");
    }
}
