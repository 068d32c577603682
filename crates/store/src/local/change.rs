//! Changing a file where it is: bytes at a position, and a cut at the end.
//!
//! Everything else here writes beside a file and then renames, which never touches the target of a
//! link. This writes through the name, so a link in place of the file is refused too.

use std::fs;
use std::io::{self, Seek, SeekFrom};

use bytes::Bytes;
use rustix::fs::OFlags;

use super::File;
use super::beneath::Root;
use super::read::regular;
use super::write::write_all;
use crate::error::{Error, Result};

/// Writes bytes at a position that is not beyond the end.
pub(super) fn write_at(file: &File, position: u64, bytes: &[Bytes]) -> Result<()> {
    let (mut open, size) = open(file, "write")?;
    if position > size {
        return Err(beyond(file, "writing", position, size));
    }
    let written = open.seek(SeekFrom::Start(position)).and_then(|_| write_all(&mut open, bytes));
    written.map_err(|error| file.error("write", error))
}

/// Cuts a file to a length that it has.
pub(super) fn truncate(file: &File, len: u64) -> Result<()> {
    let (open, size) = open(file, "truncate")?;
    if len > size {
        return Err(beyond(file, "truncation", len, size));
    }
    open.set_len(len).map_err(|error| file.error("truncate", error))
}

/// Opens a file that is there and within the root, and says how long it is.
fn open(file: &File, op: &'static str) -> Result<(fs::File, u64)> {
    let failed = |error: io::Error| match error.kind() {
        // A directory is not an object.
        io::ErrorKind::IsADirectory => file.missing(),
        _ => file.error(op, error),
    };
    let opened = Root::open(&file.root)
        .and_then(|root| root.open_at(&file.name, OFlags::WRONLY | OFlags::NONBLOCK));
    let open = fs::File::from(opened.map_err(failed)?);
    let metadata = open.metadata().map_err(failed)?;
    regular(file, &metadata)?;
    Ok((open, metadata.len()))
}

/// A file never gets a hole: nothing could tell it from zeros that were written.
fn beyond(file: &File, what: &str, position: u64, size: u64) -> Error {
    let name = &file.name;
    Error::invalid(format!("{what} of {name} at byte {position}, which has {size} bytes"))
}
