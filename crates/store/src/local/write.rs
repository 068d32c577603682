//! Writing files.

use std::fs;
use std::io::{self, IoSlice, Write};

use bytes::Bytes;
use rustix::fs::{AtFlags, OFlags, renameat, unlinkat};

use super::File;
use super::beneath::{Root, split};
use super::durable::Directories;
use crate::error::{Error, Result};
use crate::options::Durability;

/// How the names of files start that are being written to replace another. Only a crash leaves one
/// behind, and it may be deleted.
pub const TEMP_PREFIX: &str = ".tmp-";

const OP: &str = "write";

/// Writes a file. A new one is written under its own name, which costs nothing more than the bytes
/// and is harmless because nothing refers to it yet. One that exists may be referred to, and is
/// replaced in one step by a file that is complete and durable.
pub(super) fn put(
    file: &File,
    bytes: &[Bytes],
    directories: &Directories,
    durability: Durability,
) -> Result<()> {
    match create_new(file, directories) {
        Ok(open) => fill(open, file, bytes).map(drop).map_err(|error| unwritten(file, error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            replace(file, bytes, directories, durability)
        }
        Err(error) => Err(unwritten(file, error)),
    }
}

/// A file that cannot be written is never «not found», whatever the system says about its
/// directory.
pub(super) fn unwritten(file: &File, error: io::Error) -> Error {
    file.unmade(OP, error)
}

fn replace(
    file: &File,
    bytes: &[Bytes],
    directories: &Directories,
    durability: Durability,
) -> Result<()> {
    let write = || {
        let (open, temp) = create_temp(file, directories)?;
        let open = fill(open, &temp, bytes)?;
        if durability == Durability::Full {
            // Otherwise a power cut could leave neither the old content nor the new.
            open.sync_data()?;
        }
        move_over(&temp, file).inspect_err(|_| discard(&temp))
    };
    write().map_err(|error| unwritten(file, error))
}

/// A new file beside another, which it is to replace.
pub(super) fn create_temp(file: &File, directories: &Directories) -> io::Result<(fs::File, File)> {
    let random = getrandom::u64().map_err(io::Error::other)?;
    let temp = file.beside(&format!("{TEMP_PREFIX}{random:016x}"));
    Ok((create_new(&temp, directories)?, temp))
}

fn create_new(file: &File, directories: &Directories) -> io::Result<fs::File> {
    directories.with_parents(file, || {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Root::open(&file.root)?.open_at(&file.name, flags).map(fs::File::from)
    })
}

/// Fills a file that this call created; deletes it if that fails, so that a full disk does not keep
/// half-written files.
fn fill(mut open: fs::File, file: &File, bytes: &[Bytes]) -> io::Result<fs::File> {
    match write_all(&mut open, bytes) {
        Ok(()) => Ok(open),
        Err(error) => {
            discard(file);
            Err(error)
        }
    }
}

/// Renames a file over another in the same directory.
pub(super) fn move_over(temp: &File, file: &File) -> io::Result<()> {
    let root = Root::open(&file.root)?;
    let (directory, name) = root.parent(&file.name)?;
    Ok(renameat(&directory, split(&temp.name).1, &directory, name)?)
}

/// Deletes what a failed write left, as well as possible: the caller hears of the failed write.
pub(super) fn discard(file: &File) {
    let delete = || {
        let root = Root::open(&file.root)?;
        let (directory, name) = root.parent(&file.name)?;
        unlinkat(&directory, name, AtFlags::empty()).map_err(io::Error::from)
    };
    delete().ok();
}

/// Writes several buffers back to back without copying them together.
pub(super) fn write_all(out: &mut impl Write, bytes: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> =
        bytes.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
    let mut rest = slices.as_mut_slice();
    while !rest.is_empty() {
        match out.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at a time and is interrupted every other time.
    struct Slow {
        taken: Vec<u8>,
        calls: usize,
        room: usize,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(2) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = bytes.len().min(3).min(self.room - self.taken.len());
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn buffers() -> Vec<Bytes> {
        ["", "hello", "", " ", "world", ""].map(Bytes::from).to_vec()
    }

    #[test]
    fn short_and_interrupted_writes_are_continued() {
        let mut out = Slow { taken: Vec::new(), calls: 0, room: 100 };
        write_all(&mut out, &buffers()).unwrap();
        assert_eq!(out.taken, b"hello world");
    }

    #[test]
    fn a_write_that_takes_nothing_fails_instead_of_spinning() {
        let mut out = Slow { taken: Vec::new(), calls: 0, room: 4 };
        let error = write_all(&mut out, &buffers()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
