//! Which labelmap at which version a request means by `/api/node/UUID/DATA`.
//!
//! ```text
//!  DVID        Chunkyard
//!  repo        a served place: a repository, or a store of DVID
//!  UUID        a snapshot (or the beginning of its id), a branch, a tag; PLACE:REF where several places have one of that name
//!  data        a labelmap: its path, with a dot for each slash; or the name of the place, if it has only one
//! ```
//!
//! The UUIDs that versions had in DVID before they were imported work too.

use std::sync::Arc;

use chunkyard_engine::format::dvid::{DvidStore, DvidUrl, Instance, SCHEME};
use chunkyard_engine::labels::Labelmap;
use chunkyard_engine::repo::{Session, Version};
use chunkyard_engine::{Error, Noun, Result};

use super::meant::{FoundVersion, Meant};
use super::served::{Served, served};
use crate::State;

/// A labelmap at a version.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// The served name.
    pub(crate) place: String,
    /// The group of the labelmap: a path in the repository, or a slash and the name of the data in DVID.
    pub(crate) path: String,
    /// The id of the snapshot, or the UUID in DVID.
    pub(crate) version: String,
    /// The branch that was named, to which edits go; `None` if a version was named that never changes.
    pub(crate) branch: Option<String>,
    /// What has it.
    pub(crate) holder: Holder,
}

/// What has a labelmap.
#[derive(Debug, Clone)]
pub(crate) enum Holder {
    /// A version of a repository.
    Repository(Arc<Session>),
    /// A version of a store of DVID, by its number.
    Store {
        /// The store.
        store: Arc<DvidStore>,
        /// Its URL, taken apart.
        url: Arc<DvidUrl>,
        /// The data.
        instance: Box<Instance>,
        /// The number of the version.
        version: u32,
    },
}

impl Address {
    /// What opens it again at any time: a URL, and which version of it.
    pub(crate) fn open_as(&self, state: &State) -> Result<(String, Option<Version>)> {
        let place = state.places().get(&self.place)?;
        Ok(match &self.holder {
            Holder::Repository(_) => {
                (place.url().to_owned(), Some(Version::Snapshot(self.version.clone())))
            }
            Holder::Store { url, instance, .. } => {
                (store_url(url, &self.version, &instance.name), None)
            }
        })
    }
}

/// The URL of data of a store at a version.
fn store_url(url: &DvidUrl, uuid: &str, data: &str) -> String {
    let number = url.instance.map(|number| number.to_string());
    let settings = [
        ("uuid", Some(uuid)),
        ("data", Some(data)),
        ("log", url.log.as_deref()),
        ("info", url.info.as_deref()),
        ("instance", number.as_deref()),
    ];
    let settings: Vec<String> = settings
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", escape(value?))))
        .collect();
    format!("{SCHEME}://{}?{}", escape(&url.directory), settings.join("&"))
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:-._~".contains(&byte);
    let one = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// What one place makes of an address.
enum InPlace {
    Labelmap(Box<Address>),
    /// The version is there, and has these data.
    OtherData(Vec<String>),
    NoVersion,
}

/// The labelmap that `/api/node/UUID/DATA` means.
pub(crate) async fn resolve(state: &State, uuid: &str, data: &str) -> Result<Address> {
    let meant = Meant::parse(uuid);
    let (mut found, mut others, mut failed) = (Vec::new(), Vec::new(), None);
    for place in state.places().names() {
        match in_place(state, place, meant, data).await {
            Ok(InPlace::Labelmap(address)) => found.push(*address),
            Ok(InPlace::OtherData(names)) => {
                others.extend(names.into_iter().map(|name| format!("{name} of {place}")));
            }
            Ok(InPlace::NoVersion) => {}
            // What is wrong with one place is nothing to those who ask for another.
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if found.len() > 1 {
        let places: Vec<&str> = found.iter().map(|address| address.place.as_str()).collect();
        return Err(Error::invalid(format!(
            "{uuid} is a version with data {data} of {}; write PLACE:{uuid}, as in {}:{uuid}",
            places.join(" and "),
            places.first().copied().unwrap_or_default()
        )));
    }
    if let Some(address) = found.pop() {
        return Ok(address);
    }
    if let Some(error) = failed {
        return Err(error);
    }
    Err(match others.is_empty() {
        true => Error::NotFound {
            what: Noun::Version,
            name: format!("{uuid}, by the id of a snapshot, a branch or a tag"),
        },
        false => Error::NotFound {
            what: Noun::Labelmap,
            name: format!("{data} at {uuid}; there are: {}", others.join(", ")),
        },
    })
}

async fn in_place(state: &State, place: &str, meant: Meant<'_>, data: &str) -> Result<InPlace> {
    match served(state, place).await? {
        None => Ok(InPlace::NoVersion),
        Some(Served::Repository(repository)) => {
            let key = |id: &str| (place.to_owned(), id.to_owned());
            let kept = match meant {
                Meant::Version(name) => state.dvid().snapshots.get(&key(name)),
                Meant::Within(..) => None,
            };
            let found = match kept {
                Some(session) => Some(FoundVersion { session: Arc::clone(&session), branch: None }),
                None => meant.in_repository(place, &repository).await?,
            };
            let Some(found) = found else { return Ok(InPlace::NoVersion) };
            let id = found.session.snapshot().snapshot_id.clone();
            if meant == Meant::Version(&id) {
                state.dvid().snapshots.put(key(&id), found.session.clone());
            }
            let paths = labelmaps(state, place, &found.session).await?;
            Ok(match choose(place, data, &paths)? {
                Some(path) => InPlace::Labelmap(Box::new(Address {
                    place: place.to_owned(),
                    path: path.to_owned(),
                    version: found.session.snapshot().snapshot_id.clone(),
                    branch: found.branch,
                    holder: Holder::Repository(found.session),
                })),
                None => InPlace::OtherData(names(place, &paths)),
            })
        }
        Some(Served::Store(store, url)) => {
            for repo in store.repos() {
                let Some(version) = meant.in_dvid(place, repo)? else { continue };
                let node = repo.dag.get(version);
                let instances = repo.instances.iter().filter(|instance| instance.is_labelmap());
                let paths: Vec<String> =
                    instances.map(|instance| format!("/{}", instance.name)).collect();
                let Some(path) = choose(place, data, &paths)? else {
                    return Ok(InPlace::OtherData(names(place, &paths)));
                };
                let instance = Box::new(repo.labelmap(path.get(1..))?.clone());
                return Ok(InPlace::Labelmap(Box::new(Address {
                    place: place.to_owned(),
                    path: path.to_owned(),
                    version: node.map(|node| node.uuid.clone()).unwrap_or_default(),
                    branch: None,
                    holder: Holder::Store { store: store.clone(), url, instance, version },
                })));
            }
            Ok(InPlace::NoVersion)
        }
    }
}

/// The groups of a version that are labelmaps.
pub(crate) async fn labelmaps(
    state: &State,
    place: &str,
    session: &Arc<Session>,
) -> Result<Arc<Vec<String>>> {
    let key = (place.to_owned(), session.snapshot().snapshot_id.clone());
    match state.dvid().labelmaps.get(&key) {
        Some(known) => Ok(known),
        None => Ok(state.dvid().labelmaps.put(key, Labelmap::list(session).await?)),
    }
}

/// The name that a labelmap has as data.
pub(crate) fn data_name(place: &str, path: &str) -> String {
    match path.trim_matches('/') {
        "" => place.to_owned(),
        path => path.replace('/', "."),
    }
}

fn names(place: &str, paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| data_name(place, path)).collect()
}

/// The labelmap of a place that has a name as data.
fn choose<'a>(place: &str, data: &str, paths: &'a [String]) -> Result<Option<&'a str>> {
    let exact = paths.iter().find(|path| path.trim_matches('/') == data.trim_matches('/'));
    if let Some(path) = exact.filter(|_| !data.is_empty()) {
        return Ok(Some(path));
    }
    let found: Vec<&String> = paths.iter().filter(|path| data_name(place, path) == data).collect();
    match found.as_slice() {
        [path] => Ok(Some(path)),
        [] => Ok(match paths {
            [only] if data == place => Some(only),
            _ => None,
        }),
        several => {
            let several: Vec<String> =
                several.iter().map(|path| path.trim_matches('/').replace('/', "%2F")).collect();
            Err(Error::invalid(format!(
                "{data} could be {}; write the path so",
                several.join(" or ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(data: &str, paths: &[&str]) -> Option<String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        choose("brain", data, &paths).unwrap().map(str::to_owned)
    }

    #[test]
    fn data_is_the_path_of_a_labelmap() {
        assert_eq!(chosen("labels", &["/labels", "/a/labels"]).as_deref(), Some("/labels"));
        assert_eq!(chosen("a.labels", &["/labels", "/a/labels"]).as_deref(), Some("/a/labels"));
        assert_eq!(chosen("a/labels", &["/labels", "/a/labels"]).as_deref(), Some("/a/labels"));
        assert_eq!(chosen("a.b", &["/a.b", "/a/b"]).as_deref(), Some("/a.b"));
        assert_eq!(chosen("brain", &["/"]).as_deref(), Some("/"));
        assert_eq!(chosen("brain", &["/labels"]).as_deref(), Some("/labels"));
        assert_eq!(chosen("brain", &["/labels", "/other"]), None);
        assert_eq!(chosen("../labels", &["/labels"]), None);
    }

    #[test]
    fn two_labelmaps_of_one_name_have_to_be_told_apart() {
        let paths = ["/a/b.c", "/a.b/c"].map(str::to_owned);
        let error = choose("brain", "a.b.c", &paths).unwrap_err().to_string();
        assert!(error.contains("a%2Fb.c or a.b%2Fc"), "{error}");
    }

    #[test]
    fn a_store_is_opened_by_a_url_that_names_the_version() {
        let url = DvidUrl::parse("dvid+badger:///data/my%20store?log=/logs&instance=3").unwrap();
        let text = store_url(&url, "28841c8277e044a7b187dda03e18da13", "seg");
        let again = DvidUrl::parse(&text).unwrap();
        assert_eq!(again.uuid.as_deref(), Some("28841c8277e044a7b187dda03e18da13"));
        assert_eq!(again.data.as_deref(), Some("seg"));
        assert_eq!(
            (again.directory, again.log, again.instance),
            (url.directory, url.log, url.instance)
        );
    }
}
