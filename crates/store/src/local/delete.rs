//! Deleting files and trees. A link is deleted, its target stays.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use super::File;
use super::beneath::{Root, split};
use super::durable::Directories;
use crate::error::Result;

const OP: &str = "delete";

/// Deletes files. Names that follow each other in one directory cost one look at it.
pub(super) fn delete(files: &[File]) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let root = match present(Root::open(&first.root)).map_err(|error| first.error(OP, error))? {
        Some(root) => root,
        None => return Ok(()),
    };
    let mut last = None;
    for file in files {
        let (folder, name) = split(&file.name);
        if last.as_ref().is_none_or(|(known, _)| *known != folder) {
            let directory = present(root.directory(folder));
            last = Some((folder, directory.map_err(|error| file.error(OP, error))?));
        }
        let Some((_, Some(directory))) = &last else { continue };
        let deleted = unlinkat(directory, name, AtFlags::empty()).map_err(io::Error::from);
        present(deleted).map_err(|error| file.error(OP, error))?;
    }
    Ok(())
}

/// Deletes a directory with everything in it; of the root, only what is in it.
pub(super) fn delete_dir(directory: &File, directories: &Directories) -> Result<()> {
    directories.forget(&directory.path);
    let outcome = match directory.name.is_empty() {
        true => clear_root(directory),
        false => remove_tree(directory),
    };
    present(outcome).map(drop).map_err(|error| directory.error(OP, error))
}

fn clear_root(root: &File) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    clear(rustix::fs::open(&root.path, flags, Mode::empty())?)
}

/// An object is not below itself, so a file stays.
fn remove_tree(directory: &File) -> io::Result<()> {
    let root = Root::open(&directory.root)?;
    let (above, name) = root.parent(&directory.name)?;
    let kind =
        |flags| Ok::<_, Errno>(FileType::from_raw_mode(statat(&above, name, flags)?.st_mode));
    match kind(AtFlags::SYMLINK_NOFOLLOW)? {
        FileType::Directory => remove_directory(above.as_fd(), name),
        FileType::Symlink if kind(AtFlags::empty()) == Ok(FileType::Directory) => {
            Ok(unlinkat(&above, name, AtFlags::empty())?)
        }
        _ => Ok(()),
    }
}

fn remove_directory<N: rustix::path::Arg + Copy>(above: BorrowedFd<'_>, name: N) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(above, name, flags, Mode::empty()) {
        Ok(directory) => {
            clear(directory)?;
            Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
        }
        // It turned into a link, or into a file, meanwhile.
        Err(Errno::LOOP | Errno::NOTDIR) => Ok(unlinkat(above, name, AtFlags::empty())?),
        Err(error) => Err(error.into()),
    }
}

/// Deletes everything in a directory.
fn clear(directory: OwnedFd) -> io::Result<()> {
    let mut entries = Dir::new(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            present(remove(entries.fd()?, name, entry.file_type()))?;
        }
    }
    Ok(())
}

fn remove(above: BorrowedFd<'_>, name: &CStr, kind: FileType) -> io::Result<()> {
    match kind {
        FileType::Directory => remove_directory(above, name),
        FileType::Unknown => {
            let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => remove_directory(above, name),
                _ => Ok(unlinkat(above, name, AtFlags::empty())?),
            }
        }
        _ => Ok(unlinkat(above, name, AtFlags::empty())?),
    }
}

/// `None` if there is nothing, which is fine.
fn present<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
