//! Copies a file to another root, where nothing is ever replaced.
//!
//! A writer that slept, or one that moves another dataset to the same root, may find a foreign file there,
//! which may be the only copy of rows that count. So a copy is created, or must turn out to be the same.

use std::ops::Range;

use bytes::Bytes;
use chunkyard_store::atomic::{AnyObject, Content, Outcome, Step};
use chunkyard_store::{Error, Object, Result, Store, Uid, Version};

use crate::superchunk::access::Access;
use crate::superchunk::names;

/// Bytes that are copied and compared at once.
const PIECE_BYTES: u64 = 8 << 20;

/// A file that is now both here and elsewhere.
pub(crate) struct Copied {
    pub(crate) path: String,
    /// The version that was copied, on an object store.
    pub(crate) version: Option<Version>,
}

impl Access {
    /// Copies a file to the same path below another root, and compares the copy. Durable there when this
    /// returns.
    pub(crate) async fn copy_to_root(&self, path: String, there: &Store) -> Result<Copied> {
        let original = Original::open(&self.store, &path, there).await?;
        original.refuse_itself(there).await?;
        original.create_in(there).await?;
        original.compare(there).await?;
        let version =
            original.whole.as_ref().and_then(|object| self.protocol.version(&object.meta));
        Ok(Copied { path, version })
    }
}

/// The file as it is here.
struct Original<'a> {
    store: &'a Store,
    path: &'a str,
    size: u64,
    /// Tells it from any other file.
    etag: Option<String>,
    /// All of it, unless both roots are directories: objects are read and created in one step.
    whole: Option<Object>,
}

impl<'a> Original<'a> {
    async fn open(store: &'a Store, path: &'a str, there: &Store) -> Result<Self> {
        if store.renames() && there.renames() {
            let meta = store.head(path).await?;
            return Ok(Self { store, path, size: meta.size, etag: meta.etag, whole: None });
        }
        let object = store.get(path).await?;
        let (size, etag) = (object.bytes.len() as u64, object.meta.etag.clone());
        Ok(Self { store, path, size, etag, whole: Some(object) })
    }

    /// Refuses the root where the file already is, under any name: the file would be deleted as a copy of
    /// itself.
    async fn refuse_itself(&self, there: &Store) -> Result<()> {
        let same = match self.whole {
            None => there.head(self.path).await.is_ok_and(|found| found.etag == self.etag),
            Some(_) => self.store.url().trim_end_matches('/') == there.url().trim_end_matches('/'),
        };
        match same {
            true => Err(Error::invalid(format!("moving {} to where it is", self.path))),
            false => Ok(()),
        }
    }

    /// Creates the copy, unless a file exists there: the comparison decides whether it is the same.
    async fn create_in(&self, there: &Store) -> Result<()> {
        let path = self.path;
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        let aside = format!("{folder}/{}{}", names::TEMP, Uid::fresh()?);
        let content = match there.renames() {
            true => match self.write_aside(there, &aside).await {
                Ok(()) => Content::Aside(aside.clone()),
                Err(error) => {
                    there.delete(&[aside]).await.ok();
                    return Err(error);
                }
            },
            false => Content::Parts(vec![self.piece(0..self.size).await?]),
        };
        let step = Step::new(there, path, AnyObject { store: there, path });
        match step.create(content, &aside).await? {
            Outcome::Done(()) => Ok(()),
            // Its name must be durable before the original goes.
            Outcome::Lost => there.sync(&[path.to_owned()]).await,
            Outcome::Unknown(error) => Err(error),
        }
    }

    /// Writes the copy to a directory under a temporary name.
    async fn write_aside(&self, there: &Store, aside: &str) -> Result<()> {
        let mut upload = there.begin(aside).await?;
        for range in pieces(self.size) {
            upload.write(vec![self.piece(range).await?]).await?;
        }
        upload.finish().await
    }

    /// Refuses the file there unless it is the same.
    async fn compare(&self, there: &Store) -> Result<()> {
        let found = there.head(self.path).await?.size;
        let mut same = found == self.size;
        for range in pieces(self.size).take_while(|_| found == self.size) {
            same &= self.piece(range.clone()).await? == there.get_range(self.path, range).await?;
        }
        match same {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "{} differs from {} of {}, and is not replaced because it may be in use; move to \
                 another place, or delete it if it is not",
                there.object_url(self.path),
                self.path,
                self.store.url()
            ))),
        }
    }

    async fn piece(&self, range: Range<u64>) -> Result<Bytes> {
        let Some(object) = &self.whole else { return self.store.get_range(self.path, range).await };
        let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(object.bytes.len());
        Ok(object.bytes.slice(position(range.start)..position(range.end)))
    }
}

/// The pieces of a file of `size` bytes.
fn pieces(size: u64) -> impl Iterator<Item = Range<u64>> {
    (0..size.div_ceil(PIECE_BYTES)).map(move |piece| {
        let start = piece * PIECE_BYTES;
        start..size.min(start + PIECE_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use chunkyard_store::Options;
    use chunkyard_store::fault::{Fault, Mode, Plan, Unsynced};

    use super::*;

    const PATH: &str = "data/__1__.bin";
    const BYTES: &[u8] = &[7; 100];

    async fn copy(here: &Store, there: &Store) -> Result<()> {
        let original = Original::open(here, PATH, there).await?;
        original.refuse_itself(there).await?;
        original.create_in(there).await?;
        original.compare(there).await
    }

    fn directory() -> (tempfile::TempDir, Store) {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(temp.path().to_str().unwrap(), &Options::default()).unwrap();
        (temp, store)
    }

    fn memory(name: &str) -> Store {
        Store::open(&format!("memory://copy-there-{name}"), &Options::default()).unwrap()
    }

    #[tokio::test]
    async fn a_copy_is_there_as_a_whole_or_not_at_all() {
        let (_temp, here) = directory();
        here.put(PATH, vec![Bytes::from_static(BYTES)]).await.unwrap();
        for mode in [Mode::Die, Mode::DieAfter, Mode::Tear, Mode::LoseReply] {
            for unsynced in [Unsynced::Kept, Unsynced::Reverted, Unsynced::Emptied] {
                for n in 0.. {
                    let (_temp, directory) = directory();
                    let memory = memory(&format!("{mode:?}-{unsynced:?}-{n}"));
                    let mut fired = false;
                    for there in [directory, memory] {
                        let plan = Plan::new(n, mode).with_power_cut(unsynced);
                        let (faulty, fault) = Fault::wrap(&there, plan);
                        let copied = copy(&here, &faulty).await;
                        fault.die().await.unwrap();
                        match there.get(PATH).await {
                            Ok(object) => assert_eq!(object.bytes, BYTES, "{:#?}", fault.log()),
                            Err(_) => assert!(copied.is_err(), "{:#?}", fault.log()),
                        }
                        copy(&here, &there).await.unwrap();
                        assert_eq!(there.get(PATH).await.unwrap().bytes, BYTES);
                        fired |= fault.fired();
                    }
                    if !fired {
                        break;
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn another_file_is_never_replaced() {
        let (_temp, here) = directory();
        here.put(PATH, vec![Bytes::from_static(BYTES)]).await.unwrap();
        let (_temp, directory) = directory();
        for there in [directory, memory("other")] {
            for other in [&[8; 100][..], &[7; 99], &[]] {
                there.put(PATH, vec![Bytes::copy_from_slice(other)]).await.unwrap();
                let refused = copy(&here, &there).await.unwrap_err();
                assert_eq!(refused.kind(), chunkyard_store::ErrorKind::Invalid, "{refused}");
                assert_eq!(there.get(PATH).await.unwrap().bytes, other);
                let found = there.list_dir("data").await.unwrap().objects;
                assert_eq!(found.len(), 1, "{found:?}");
            }
        }
        assert_eq!(
            copy(&here, &here).await.unwrap_err().kind(),
            chunkyard_store::ErrorKind::Invalid
        );
    }
}
