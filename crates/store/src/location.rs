//! Where a URL really is, so that two of them can be compared.
//!
//! The same directory has many names: through links, through other mounts, with `..` in them, as a
//! path and as a URL. In an object store, the bucket and the key count.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use url::Url;

use super::url::refuse;
use crate::error::{Error, Result};

/// As many links as the kernel follows on one path.
const LINKS_MAX: usize = 40;

/// A place, independent of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A path without links. Its last segments need not exist.
    Local(PathBuf),
    /// A key, or a prefix of keys.
    Object {
        /// The scheme and the bucket, the host, or the name of the store in memory.
        root: String,
        /// The account that the bucket is in, if the URL says so.
        account: Option<String>,
        /// The key.
        segments: Vec<String>,
    },
}

impl Location {
    /// Where a URL is.
    pub fn of(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Self::of_path(Path::new(url));
        };
        if scheme == "memory" {
            let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
            let root = format!("memory://{name}");
            return Ok(Self::Object { root, account: None, segments: segments(key) });
        }
        let parsed = Url::parse(url).map_err(|error| refuse(url, error))?;
        if scheme == "file" {
            let path = parsed.to_file_path();
            let path = path.map_err(|()| refuse(url, "it needs an absolute path, file:///path"))?;
            return Self::of_path(&path);
        }
        let host = parsed.host_str().unwrap_or_default();
        let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
        let (root, account) = match scheme {
            // Azure has four names for one thing, and one of them names the account too.
            "az" | "azure" | "abfs" | "abfss" if parsed.username().is_empty() => {
                (format!("az://{host}"), None)
            }
            "az" | "azure" | "abfs" | "abfss" => {
                let account = host.split('.').next().unwrap_or_default();
                (format!("az://{}", parsed.username()), Some(account.to_owned()))
            }
            _ => (format!("{scheme}://{host}{port}"), None),
        };
        let key = object_store::path::Path::from_url_path(parsed.path());
        let key = key.map_err(|error| refuse(url, error))?;
        Ok(Self::Object { root, account, segments: segments(key.as_ref()) })
    }

    /// Where a path is.
    pub fn of_path(path: &Path) -> Result<Self> {
        let real = std::path::absolute(path).and_then(|path| real_path(&path));
        real.map(Self::Local)
            .map_err(|error| Error::store("find", path.display().to_string(), error))
    }

    /// The place of this name below this one.
    pub fn join(&self, name: &str) -> Self {
        match self.clone() {
            Self::Local(path) => Self::Local(path.join(name)),
            Self::Object { root, account, segments: mut own } => {
                own.extend(segments(name));
                Self::Object { root, account, segments: own }
            }
        }
    }

    /// The place above this one, and the name of this one there.
    pub fn split(&self) -> Option<(Self, String)> {
        match self.clone() {
            Self::Local(path) => {
                let name = path.file_name()?.to_str()?.to_owned();
                Some((Self::Local(path.parent()?.to_owned()), name))
            }
            Self::Object { root, account, mut segments } => {
                let name = segments.pop()?;
                Some((Self::Object { root, account, segments }, name))
            }
        }
    }

    /// Whether this place is the other one, or lies in it.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(path), Self::Local(other)) => {
                path.starts_with(other) || same_above(path, other)
            }
            (
                Self::Object { root, account, segments },
                Self::Object { root: other_root, account: other_account, segments: above },
            ) => {
                let apart =
                    account.is_some() && other_account.is_some() && account != other_account;
                root == other_root && !apart && segments.starts_with(above)
            }
            _ => false,
        }
    }
}

fn segments(key: &str) -> Vec<String> {
    key.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// Whether a path, or a directory above it, is `other` under a second name: through another mount,
/// or in other case where case does not count.
fn same_above(path: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let Some(other) = fs::metadata(other).ok().filter(fs::Metadata::is_dir) else { return false };
    let other = Some((other.dev(), other.ino()));
    path.ancestors().any(|above| id(above) == other)
}

/// The target of a link, if `path` is a link to a directory or to nothing.
pub(super) fn real_directory(path: &str) -> Result<Option<String>> {
    let path = Path::new(path);
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if !is_link || fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
        return Ok(None);
    }
    let failed = |error| Error::store("find", path.display().to_string(), error);
    let real = real_path(path).map_err(failed)?;
    let unknown = || Error::invalid(format!("{} is no Unicode text", real.display()));
    Ok(Some(real.to_str().ok_or_else(unknown)?.to_owned()))
}

/// A path without links and without `..`. Its end need not exist.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::new();
    let mut links = 0;
    // The last one comes next.
    let mut ahead: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(next) = ahead.pop() {
        let mut components = next.components();
        let Some(first) = components.next() else { continue };
        let rest = components.as_path();
        if !rest.as_os_str().is_empty() {
            ahead.push(rest.to_owned());
        }
        match first {
            Component::Prefix(_) | Component::RootDir => real = first.as_os_str().into(),
            Component::CurDir => {}
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                real.push(name);
                if let Ok(target) = fs::read_link(&real) {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(rustix::io::Errno::LOOP.into());
                    }
                    real.pop();
                    ahead.push(target);
                }
            }
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn within(a: &str, b: &str) -> bool {
        Location::of(a).unwrap().is_within(&Location::of(b).unwrap())
    }

    #[test]
    fn object_stores_are_compared_by_bucket_and_key() {
        assert!(within("s3://b/x/y", "s3://b/x/"));
        assert!(within("s3://b/x", "s3://b/x"));
        assert!(within("s3://b/x", "s3://b"));
        assert!(within("s3://b/a%20b/c", "s3://b/a b"));
        assert!(!within("s3://b/xy", "s3://b/x"));
        assert!(!within("s3://b/x", "s3://b/x/y"));
        assert!(!within("s3://b/x", "s3://c/x") && !within("s3://b/x", "gs://b/x"));
        assert!(within("memory://m/a/b", "memory://m/a") && within("memory://m/a", "memory://m"));
        assert!(!within("memory://m/a", "memory://n/a"));
        assert!(within("abfss://c@me.dfs.core.windows.net/x", "az://c/x"));
        assert!(!within(
            "abfs://c@me.dfs.core.windows.net/x",
            "abfs://c@you.dfs.core.windows.net/x"
        ));
        assert!(within("http://host:80/a/b", "http://host/a"));
        assert!(!within("http://host:81/a/b", "http://host/a"));
    }

    #[test]
    fn directories_are_compared_without_links_also_where_nothing_is_yet() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("alias")).unwrap();
        symlink(root.join("real/new"), root.join("dangling")).unwrap();
        assert!(within(&at("alias/deep/x"), &at("real/deep")));
        assert!(within(&at("real/deep/.."), &at("alias")));
        assert!(within(&at("alias/never/y"), &at("real/never")));
        assert!(within(&at("dangling/z"), &at("real/new")));
        assert!(within(&format!("file://{}", at("alias/deep")), &at("real")));
        assert!(!within(&at("realm"), &at("real")));
        assert!(!within(&at("real"), &at("s3:")) && !within(&at("real"), "memory://real"));
        symlink("loop", root.join("loop")).unwrap();
        assert!(Location::of(&at("loop/x")).is_err());
    }

    #[test]
    fn a_place_has_a_name_above_and_names_below() {
        for url in ["s3://b/x/y", "/nowhere/x/y"] {
            let (above, name) = Location::of(url).unwrap().split().unwrap();
            assert_eq!(name, "y");
            assert_eq!(above.join("y"), Location::of(url).unwrap());
        }
        assert!(Location::of("s3://b").unwrap().split().is_none());
    }
}
