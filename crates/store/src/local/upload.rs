//! A file written piece by piece beside its place, then renamed to it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::durable::Directories;
use super::write::{create_temp, discard, move_over, unwritten, write_all};
use super::{File, blocking};
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::upload::{Soundness, Upload};

/// A file that has a name of its own until it is complete.
#[derive(Debug)]
pub(super) struct LocalUpload {
    file: Arc<File>,
    open: Arc<fs::File>,
    temp: Temp,
    written: u64,
    durability: Durability,
    soundness: Soundness,
}

/// A temporary name, which is deleted unless the file got another.
#[derive(Debug)]
struct Temp {
    file: File,
}

impl Drop for Temp {
    fn drop(&mut self) {
        discard(&self.file);
    }
}

impl LocalUpload {
    pub(super) fn new(
        file: File,
        directories: &Directories,
        durability: Durability,
    ) -> Result<Self> {
        let created = create_temp(&file, directories);
        let (open, temp) = created.map_err(|error| unwritten(&file, error))?;
        Ok(Self {
            file: Arc::new(file),
            open: Arc::new(open),
            temp: Temp { file: temp },
            written: 0,
            durability,
            soundness: Soundness::default(),
        })
    }
}

#[async_trait]
impl Upload for LocalUpload {
    async fn write(&mut self, bytes: Vec<Bytes>) -> Result<()> {
        self.soundness.begin(&self.file.name)?;
        let (file, open) = (self.file.clone(), self.open.clone());
        let size: usize = bytes.iter().map(Bytes::len).sum();
        let write = move || write_all(&mut &*open, &bytes).map_err(|error| unwritten(&file, error));
        blocking("write", write).await?;
        self.written += size as u64;
        self.soundness.done();
        Ok(())
    }

    async fn patch(&mut self, position: u64, bytes: Bytes) -> Result<()> {
        self.soundness.begin(&self.file.name)?;
        let end = position.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.written) {
            return Err(Error::invalid(format!(
                "{} bytes at {position} of {}, of which {} bytes are written",
                bytes.len(),
                self.file.name,
                self.written
            )));
        }
        let (file, open) = (self.file.clone(), self.open.clone());
        let write = move || {
            // Does not move the position of the next write.
            open.write_all_at(&bytes, position).map_err(|error| unwritten(&file, error))
        };
        blocking("write", write).await?;
        self.soundness.done();
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        self.soundness.begin(&self.file.name)?;
        let publish = move || {
            let Self { file, open, temp, durability, .. } = &*self;
            let published = publish(&temp.file, open, file, *durability);
            published.map_err(|error| unwritten(file, error))
        };
        blocking("write", publish).await
    }

    async fn abort(self: Box<Self>) {}
}

/// Gives a complete file its name.
fn publish(temp: &File, open: &fs::File, to: &File, durability: Durability) -> std::io::Result<()> {
    // The replaced file may be referred to: after a power cut the old or the new one must exist.
    if durability == Durability::Full && to.path.exists() {
        open.sync_data()?;
    }
    move_over(temp, to)
}
