//! Positioned reads: all the bytes asked for, or an error.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use bytes::Bytes;
use rustix::fs::{OFlags, Stat};
use rustix::io::{Errno, pread};

use super::File;
use crate::backend::{Meta, Object};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::pool::Pooled;

const OP: &str = "read";

pub(super) fn whole(file: &File) -> Result<Object> {
    let (open, meta) = open(file)?;
    let bytes = read(file, &open, &(0..meta.size), meta.size)?;
    Ok(Object { bytes, meta })
}

/// Whole files; `None` for a missing one.
pub(super) fn all(files: &[File]) -> Result<Vec<Option<Bytes>>> {
    let one = |file: &File| match whole(file) {
        Ok(object) => Ok(Some(object.bytes)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    files.iter().map(one).collect()
}

pub(super) fn ranges(
    file: &File,
    ranges: &[Range<u64>],
    guard: Option<&Guard>,
) -> Result<Vec<Bytes>> {
    let (open, meta) = open(file)?;
    if let Some(guard) = guard {
        guard.check(&file.path.display().to_string(), &meta)?;
    }
    ranges.iter().map(|range| read(file, &open, range, meta.size)).collect()
}

pub(super) fn head(file: &File) -> Result<Meta> {
    let metadata = fs::metadata(&file.path).map_err(|error| file.error("look up", error))?;
    regular(file, &metadata)?;
    Ok(describe(file.name.clone(), &metadata))
}

/// What the file system says, as a store says it. The etag changes with every write that changes
/// the size or the time, and with every replacement of the file.
fn describe(path: String, metadata: &fs::Metadata) -> Meta {
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    meta_of(path, metadata.ino(), metadata.size(), modified)
}

/// The same for a file that was examined through its directory.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between systems")]
pub(super) fn meta(path: String, stat: &Stat) -> Meta {
    let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    meta_of(path, stat.st_ino as u64, stat.st_size as u64, modified)
}

fn meta_of(path: String, inode: u64, size: u64, (seconds, nanoseconds): (i64, i64)) -> Meta {
    let modified_ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    Meta {
        path,
        size,
        modified_ms: i64::try_from(modified_ns / 1_000_000).unwrap_or(i64::MAX),
        etag: Some(format!("{inode:x}-{modified_ns:x}-{size:x}")),
        version: None,
    }
}

/// Opens a file, through links too: reading changes nothing, and the parts of a large hierarchy may lie
/// on several disks.
fn open(file: &File) -> Result<(fs::File, Meta)> {
    // Opening a pipe would wait until something writes into it.
    let at_once = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(at_once).open(&file.path);
    let open = opened.map_err(|error| file.error(OP, error))?;
    let metadata = open.metadata().map_err(|error| file.error(OP, error))?;
    regular(file, &metadata)?;
    Ok((open, describe(file.name.clone(), &metadata)))
}

/// Fails unless this is a file that has bytes of its own. A directory is not an object, as on any
/// object store.
pub(super) fn regular(file: &File, metadata: &fs::Metadata) -> Result<()> {
    match sort(metadata.file_type()) {
        None => Ok(()),
        Some(_) if metadata.is_dir() => Err(file.missing()),
        Some(found) => Err(file.irregular(found)),
    }
}

/// The kind of something that is no regular file.
pub(super) fn sort(kind: fs::FileType) -> Option<&'static str> {
    Some(match kind {
        kind if kind.is_file() => return None,
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        kind if kind.is_symlink() => "a symbolic link",
        _ => "something else",
    })
}

/// Reads into memory that was used before, which matters for warm reads of large chunks.
fn read(file: &File, open: &fs::File, range: &Range<u64>, size: u64) -> Result<Bytes> {
    let len = check_range(&file.name, range, size)?;
    if len == 0 {
        return Ok(Bytes::new());
    }
    // Only a sparse file can be so large that this fails; it must not kill the process.
    let mut buffer = Pooled::new(len).map_err(|error| file.error(OP, io::Error::other(error)))?;
    let mut filled = 0;
    while filled < len {
        let position = range.start + filled as u64;
        match pread(open, &mut buffer[filled..], position) {
            Ok(0) => return Err(short(&file.name, range, position)),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(file.error(OP, error)),
        }
    }
    Ok(buffer.freeze())
}

/// The length of a range that lies within an object of `size` bytes.
pub(crate) fn check_range(path: &str, range: &Range<u64>, size: u64) -> Result<usize> {
    if range.start > range.end {
        return Err(Error::invalid(format!("the range {range:?} of {path} ends before it starts")));
    }
    if range.end > size {
        return Err(short(path, range, size));
    }
    usize::try_from(range.end - range.start)
        .map_err(|_| Error::invalid(format!("the range {range:?} of {path} exceeds the memory")))
}

/// The error of an object that ends before a range does.
pub(crate) fn short(path: &str, range: &Range<u64>, size: u64) -> Error {
    Error::Corrupt {
        file: path.to_owned(),
        what: format!("size, for the range {}..{}", range.start, range.end),
        expected: format!("at least {} bytes", range.end),
        found: format!("{size} bytes"),
    }
}
