//! Files of the target: complete and durable before they are seen.
//!
//! On a file system a file has another name until its content is on the disk; then it is renamed, and the name is made
//! durable. An object store shows an object when it is complete.

use bytes::Bytes;
use chunkyard_store::{Result, Store, TEMP_PREFIX, Uid, Upload, publish};
use serde::{Deserialize, Serialize};

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFile {
    /// Its path in the target.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// CRC-32C of its content, as eight hexadecimal digits.
    pub crc32c: String,
}

impl NewFile {
    pub(super) fn new(path: &str, bytes: u64, crc: u32) -> Self {
        Self { path: path.to_owned(), bytes, crc32c: format!("{crc:08x}") }
    }
}

/// A file that grows, and is seen when it is finished.
#[derive(Debug)]
pub(super) struct Growing {
    store: Store,
    path: String,
    /// Its name until then.
    temp: String,
    upload: Box<dyn Upload>,
    bytes: u64,
    crc: u32,
}

impl Growing {
    pub(super) async fn begin(store: &Store, path: &str) -> Result<Self> {
        let temp = match store.renames() {
            true => aside(path)?,
            false => path.to_owned(),
        };
        let upload = store.begin(&temp).await?;
        let (store, path) = (store.clone(), path.to_owned());
        Ok(Self { store, path, temp, upload, bytes: 0, crc: 0 })
    }

    /// Appends buffers.
    pub(super) async fn write(&mut self, buffers: Vec<Bytes>) -> Result<()> {
        for buffer in &buffers {
            self.crc = crc32c::crc32c_append(self.crc, buffer);
            self.bytes += buffer.len() as u64;
        }
        self.upload.write(buffers).await
    }

    /// Makes the file durable and visible.
    pub(super) async fn finish(self) -> Result<NewFile> {
        let Self { store, path, temp, upload, bytes, crc } = self;
        upload.finish().await?;
        settle(&store, &temp, &path).await?;
        Ok(NewFile::new(&path, bytes, crc))
    }

    /// Removes what was written.
    pub(super) async fn abort(self) {
        self.upload.abort().await;
    }
}

/// Writes a small file: durable and visible when this returns.
pub(super) async fn put_new(store: &Store, path: &str, content: Bytes) -> Result<NewFile> {
    let file = NewFile::new(path, content.len() as u64, crc32c::crc32c(&content));
    publish::publish(store, vec![(path.to_owned(), content)]).await?;
    Ok(file)
}

/// Gives a complete file its name once its content is durable, and makes the name durable. An object store has done both.
pub(super) async fn settle(store: &Store, temp: &str, path: &str) -> Result<()> {
    if !store.renames() {
        return Ok(());
    }
    let temp = temp.to_owned();
    let moved = async {
        // The names of folders on the way become durable as well.
        store.sync(std::slice::from_ref(&temp)).await?;
        store.rename(&temp, path).await
    };
    if let Err(error) = moved.await {
        if store.delete(std::slice::from_ref(&temp)).await.is_err() {
            // Report the first failure; the name of the rest says that it may be deleted.
        }
        return Err(error);
    }
    publish::sync_folders(store, &[path.to_owned()]).await
}

/// A name beside a path, for a file that is not complete.
pub(super) fn aside(path: &str) -> Result<String> {
    let folder = path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("");
    Ok(format!("{folder}{TEMP_PREFIX}{}", Uid::fresh()?))
}
