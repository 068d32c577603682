//! Keeps reads inside an allowed directory: a link in it must not lead out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::cache::ByteCache;
use crate::error::{Error, Noun, Result};

/// How long a checked path counts as sound. Thousands of references into one file cost one check; a
/// link that appears later is noticed soon.
const SOUND_FOR: Duration = Duration::from_secs(1);

/// Memory for paths that were checked.
const SEEN_BYTES_MAX: u64 = 4 << 20;

/// A directory, and the paths below it that are known to stay in it.
#[derive(Debug, Clone)]
pub(super) struct Confined {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    /// The root without links, set by the first check.
    resolved: OnceLock<PathBuf>,
    seen: ByteCache<Arc<str>, Instant>,
}

impl Confined {
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        let seen = ByteCache::new(SEEN_BYTES_MAX, |path: &Arc<str>, _| path.len() + 64);
        let inner = Inner { root: root.into(), resolved: OnceLock::new(), seen };
        Self { inner: Arc::new(inner) }
    }

    /// Fails unless `path`, relative to the directory, exists and really lies in it.
    pub(super) async fn check(&self, path: &str) -> Result<()> {
        if self.inner.seen.get(&path.into()).is_some_and(|seen| seen.elapsed() < SOUND_FOR) {
            return Ok(());
        }
        let full = self.inner.root.join(path);
        let looked = tokio::task::spawn_blocking({
            let (inner, full) = (self.inner.clone(), full.clone());
            move || inner.holds(&full)
        });
        let full = full.display().to_string();
        match looked.await {
            Ok(Ok(true)) => {
                self.inner.seen.insert(path.into(), Instant::now());
                Ok(())
            }
            Ok(Ok(false)) => Err(Error::invalid(format!(
                "{full} leads out of the allowed place {} through a link",
                self.inner.root.display()
            ))),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::NotFound { what: Noun::Object, name: full })
            }
            Ok(Err(error)) => Err(Error::store("resolve", full, error)),
            Err(error) => Err(Error::store("resolve", full, error)),
        }
    }
}

impl Inner {
    fn holds(&self, full: &Path) -> io::Result<bool> {
        let target = fs::canonicalize(full)?;
        let root = match self.resolved.get() {
            Some(root) => root,
            None => {
                let root = fs::canonicalize(&self.root)?;
                self.resolved.get_or_init(|| root)
            }
        };
        Ok(target.starts_with(root))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_link_may_lead_within_the_place_and_not_out_of_it() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        fs::create_dir(inside.path().join("d")).unwrap();
        fs::write(inside.path().join("d/file"), "x").unwrap();
        symlink("d/file", inside.path().join("alias")).unwrap();
        symlink(outside.path(), inside.path().join("out")).unwrap();
        let place = Confined::new(inside.path());
        for path in ["d/file", "alias"] {
            place.check(path).await.unwrap();
        }
        assert!(matches!(place.check("out/secret").await, Err(Error::Invalid { .. })));
        assert!(matches!(place.check("never").await, Err(Error::NotFound { .. })));
    }

    #[tokio::test]
    async fn a_path_is_looked_at_once_in_a_while() {
        let inside = tempfile::tempdir().unwrap();
        let file = inside.path().join("file");
        fs::write(&file, "x").unwrap();
        let place = Confined::new(inside.path());
        place.check("file").await.unwrap();
        fs::remove_file(&file).unwrap();
        // The check still passes; a read now learns from the file system that the file is gone.
        place.check("file").await.unwrap();
        tokio::time::sleep(SOUND_FOR).await;
        assert!(place.check("file").await.is_err());
    }
}
