//! What is served: names, and what each stands for at a version.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use chunkyard_engine::format::{OpenOptions, Source, Version};
use chunkyard_engine::open::{Opened, claimed, open};
use chunkyard_engine::repo::{self, RepoSource, Repository, Session};
use chunkyard_engine::{Error, Noun, Result};
use tokio::sync::OnceCell;

use crate::Config;

/// The served names.
#[derive(Debug)]
pub struct Places {
    places: BTreeMap<String, Place>,
}

/// A served name.
#[derive(Debug)]
pub struct Place {
    url: String,
    options: OpenOptions,
    repository: OnceCell<Option<Repository>>,
}

/// Something served, opened at a version.
#[derive(Debug, Clone)]
pub struct View {
    /// The name of its format.
    pub format: &'static str,
    /// Its arrays.
    pub source: Arc<dyn Source>,
    /// Whether it can never change, because the version was named by the id of a snapshot.
    pub pinned: bool,
}

impl Places {
    /// The places of a configuration. Nothing is opened yet.
    pub fn new(config: &Config) -> Result<Self> {
        let options = OpenOptions {
            store: config.store_options(),
            allowed: config.allow.clone(),
            ..OpenOptions::default()
        };
        let mut places = BTreeMap::new();
        for (name, url) in &config.places {
            if name.is_empty() || name.contains(['/', '@', '?', '#', '%']) || name.starts_with('.')
            {
                return Err(Error::invalid(format!(
                    "{name:?} cannot be the name of something served: it is a part of a URL, without / @ ? # %"
                )));
            }
            let place =
                Place { url: url.clone(), options: options.clone(), repository: OnceCell::new() };
            places.insert(name.clone(), place);
        }
        Ok(Self { places })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// A place by name.
    pub fn get(&self, name: &str) -> Result<&Place> {
        self.places.get(name).ok_or_else(|| Error::NotFound {
            what: Noun::Dataset,
            name: format!("{name} (nothing of that name is served)"),
        })
    }
}

impl Place {
    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How it is opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The repository there; `None` if it is something else.
    pub async fn repository(&self) -> Result<Option<&Repository>> {
        let opened = self.repository.get_or_try_init(|| async {
            // A URL of another program's server or store is no place for a repository.
            if claimed(&self.url).is_some() {
                return Ok(None);
            }
            let options = repo::OpenOptions {
                store: self.options.store.clone(),
                allowed: self.options.allowed.clone(),
                ..repo::OpenOptions::default()
            };
            match Repository::open(&self.url, options).await {
                Ok(repository) => Ok(Some(repository)),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        Ok(opened.await?.as_ref())
    }

    /// The place at a version: the beginning of the id of a snapshot, a branch or a tag, or the default.
    pub async fn view(&self, at: Option<&str>) -> Result<View> {
        let version = at.map(|name| Version::Named(name.to_owned()));
        let options = OpenOptions { version, ..self.options.clone() };
        let Opened { format, source } = open(&self.url, &options).await?;
        let is_id =
            |at: &str| session(&*source).is_some_and(|own| own.snapshot().snapshot_id == at);
        let pinned = at.is_some_and(is_id);
        Ok(View { format, source, pinned })
    }
}

/// The session behind a source, if it is a version of a repository.
pub fn session(source: &dyn Source) -> Option<&Arc<Session>> {
    let any: &dyn Any = source;
    any.downcast_ref::<RepoSource>().map(RepoSource::session)
}
