//! Changing a file where it is: bytes at a position, and a cut at the end.
//!
//! Everything else here writes beside a file and then renames, which leaves whatever a link led to
//! alone. This writes through the name, and so it looks where the name leads.

use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::OFlags;

use super::write::write_all;
use super::{File, resolved};
use crate::error::{Error, Result};

/// Writes bytes at a position that is not beyond the end.
pub(super) fn write_at(file: &File, root: &Path, position: u64, bytes: &[Bytes]) -> Result<()> {
    let (mut open, size) = open(file, root, "write")?;
    if position > size {
        return Err(beyond(file, "writing", position, size));
    }
    let written = open.seek(SeekFrom::Start(position)).and_then(|_| write_all(&mut open, bytes));
    written.map_err(|error| file.error("write", error))
}

/// Cuts a file to a length that it has.
pub(super) fn truncate(file: &File, root: &Path, len: u64) -> Result<()> {
    let (open, size) = open(file, root, "truncate")?;
    if len > size {
        return Err(beyond(file, "truncation", len, size));
    }
    open.set_len(len).map_err(|error| file.error("truncate", error))
}

/// Opens a file that is there and within the root, and says how long it is.
fn open(file: &File, root: &Path, op: &'static str) -> Result<(fs::File, u64)> {
    let failed = |error: io::Error| match error.kind() {
        // A directory is not an object.
        io::ErrorKind::IsADirectory => file.missing(),
        _ => file.error(op, error),
    };
    let Some(place) = resolved(&file.path, root).map_err(failed)? else {
        return Err(Error::invalid(format!(
            "{} leads out of {} through a link, and nothing is written there",
            file.path.display(),
            root.display()
        )));
    };
    // A name that became a link meanwhile is not followed.
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let open = OpenOptions::new().write(true).custom_flags(no_link).open(place).map_err(failed)?;
    let size = open.metadata().map_err(failed)?.len();
    Ok((open, size))
}

/// A file never gets a hole: nobody could tell it from zeros that somebody wrote.
fn beyond(file: &File, what: &str, position: u64, size: u64) -> Error {
    let name = &file.name;
    Error::invalid(format!("{what} of {name} at byte {position}, which has {size} bytes"))
}
