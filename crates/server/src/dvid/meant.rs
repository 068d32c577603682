//! The version that a client names in the place of DVID's UUID.

use std::sync::Arc;

use chunkyard_engine::format::dvid::{MASTER, Repo};
use chunkyard_engine::repo::{
    ReferenceKind, Repository, Session, State as RepositoryState, Version,
};
use chunkyard_engine::{Error, ErrorKind, Result};

/// Characters of the id of a snapshot.
const ID_LENGTH: usize = 26;
/// Shorter beginnings of a UUID of DVID are not looked up.
const PREFIX_MIN: usize = 4;
/// The property of a commit that was imported from DVID: the UUID that it had there.
const DVID_UUID: &str = "dvid_uuid";

/// A name of a version, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meant<'a> {
    /// A snapshot, a branch or a tag.
    Version(&'a str),
    /// A branch or a tag of whatever has the first name: a served place, or a version of it.
    Within(&'a str, &'a str),
}

/// A version of a repository.
#[derive(Debug, Clone)]
pub(crate) struct FoundVersion {
    /// It, opened.
    pub(crate) session: Arc<Session>,
    /// The branch, if it was named by one.
    pub(crate) branch: Option<String>,
}

impl<'a> Meant<'a> {
    /// Reads `VERSION`, `PLACE:REF` or `VERSION:REF`.
    pub(crate) fn parse(name: &'a str) -> Self {
        match name.split_once(':') {
            Some((within, name)) => Self::Within(within, name),
            None => Self::Version(name),
        }
    }

    /// The version of a repository that is served as `place`; `None` if there is none of that name.
    pub(crate) async fn in_repository(
        self,
        place: &str,
        repository: &Repository,
    ) -> Result<Option<FoundVersion>> {
        match self {
            Self::Version(name) => version(repository, name).await,
            Self::Within(within, name) => {
                if within != place && version(repository, within).await?.is_none() {
                    return Ok(None);
                }
                if let Some(found) = version(repository, name).await? {
                    return Ok(Some(found));
                }
                // What DVID calls so is the branch that a repository begins with.
                if name != MASTER {
                    return Ok(None);
                }
                let branch = repository.state().await?.default_branch.clone();
                version(repository, &branch).await
            }
        }
    }

    /// The version of a repository of DVID in a store that is served as `place`.
    pub(crate) fn in_dvid(self, place: &str, repo: &Repo) -> Result<Option<u32>> {
        let find = |name: &str| match repo.dag.find(Some(name)) {
            Ok(version) => Ok(Some(version)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let named = |name: &str| match find(name)? {
            Some(version) => Ok(Some(version)),
            None => find(&format!("{}:{name}", repo.root)),
        };
        match self {
            Self::Version(name) => named(name),
            Self::Within(within, name) if within == place => named(name),
            Self::Within(within, name) => match find(within)? {
                Some(_) => find(&format!("{within}:{name}")),
                None => Ok(None),
            },
        }
    }
}

/// A branch, a tag, the beginning of the id of a snapshot, or that of the UUID it had in DVID.
async fn version(repository: &Repository, name: &str) -> Result<Option<FoundVersion>> {
    let open = async |version: Version| match repository.readonly_session(&version).await {
        Ok(session) => Ok(Some(session)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let is_id = name.len() == ID_LENGTH;
    if !is_id && let Some(session) = open(Version::branch(name)).await? {
        return Ok(Some(FoundVersion { session, branch: Some(name.to_owned()) }));
    }
    if let Some(session) = open(Version::Named(name.to_owned())).await? {
        let id = session.snapshot().snapshot_id.clone();
        if !is_id || id == name {
            return Ok(Some(FoundVersion { session, branch: None }));
        }
        // A name as long as an id.
        let state = repository.state().await?;
        let reference = state.refs.get(name);
        let is_branch = reference.is_some_and(|found| found.kind == ReferenceKind::Branch);
        return Ok(Some(FoundVersion { session, branch: is_branch.then(|| name.to_owned()) }));
    }
    let state = repository.state().await?;
    let Some(id) = imported(&state, name)? else { return Ok(None) };
    let session = open(Version::Snapshot(id)).await?;
    Ok(session.map(|session| FoundVersion { session, branch: None }))
}

/// The snapshot that had this UUID in DVID.
fn imported(state: &RepositoryState, name: &str) -> Result<Option<String>> {
    if name.len() < PREFIX_MIN {
        return Ok(None);
    }
    let begins =
        |uuid: &serde_json::Value| uuid.as_str().is_some_and(|uuid| uuid.starts_with(name));
    let found: Vec<&str> = state
        .snapshots
        .iter()
        .filter(|snapshot| snapshot.properties.get(DVID_UUID).is_some_and(begins))
        .map(|snapshot| snapshot.snapshot_id.as_str())
        .collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        several => Err(Error::invalid(format!(
            "{name} is the beginning of the UUID of {} versions; give more of it",
            several.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_alone_or_within_another() {
        assert_eq!(Meant::parse("main"), Meant::Version("main"));
        assert_eq!(Meant::parse("brain:main"), Meant::Within("brain", "main"));
        assert_eq!(Meant::parse(":x:y"), Meant::Within("", "x:y"));
    }
}
