//! The steps that make a file visible under its final name.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::File;
use super::durable::Directories;
use crate::error::{Error, Result};
use crate::store::backend::Linked;

/// Gives `from` the name `to` unless that is taken.
pub(super) fn link(from: &File, to: &File, directories: &Directories) -> Result<Linked> {
    let outcome = match fs::hard_link(&from.path, &to.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directories.create_parents(&to.path).map_err(|error| to.error("link", error))?;
            fs::hard_link(&from.path, &to.path)
        }
        other => other,
    };
    match outcome {
        Ok(()) => Ok(Linked::Done),
        // NFS repeats a request whose reply was lost and then finds the name taken by itself.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(if same_file(from, to) { Linked::Done } else { Linked::Exists })
        }
        Err(error) if no_hard_links(&error) => rename_unless_taken(from, to),
        Err(error) => Err(blame(from, to, "link", error)),
    }
}

/// Renames `from` to `to`, replacing what is there.
pub(super) fn rename(from: &File, to: &File, directories: &Directories) -> Result<()> {
    let outcome = match fs::rename(&from.path, &to.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directories.create_parents(&to.path).map_err(|error| to.error("rename", error))?;
            fs::rename(&from.path, &to.path)
        }
        other => other,
    };
    outcome.map_err(|error| blame(from, to, "rename", error))
}

/// The way on file systems without hard links (exFAT, some FUSE and network mounts).
fn rename_unless_taken(from: &File, to: &File) -> Result<Linked> {
    match renameat_with(CWD, &from.path, CWD, &to.path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Linked::Done),
        Err(Errno::EXIST) => Ok(Linked::Exists),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(Error::unsupported(format!(
            "the file system of {} can neither link nor rename without replacing",
            to.path.display()
        ))),
        Err(error) => Err(blame(from, to, "link", error.into())),
    }
}

fn no_hard_links(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK))
}

fn same_file(a: &File, b: &File) -> bool {
    let id = |file: &File| fs::metadata(&file.path).map(|found| (found.dev(), found.ino())).ok();
    id(a).is_some() && id(a) == id(b)
}

/// A missing file here is always `from`: the directories of `to` have been created.
fn blame(from: &File, to: &File, op: &'static str, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound { from.missing() } else { to.error(op, error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_without_hard_links_does_not_replace() {
        let temp = tempfile::tempdir().unwrap();
        let file = |name: &str| File { name: name.into(), path: temp.path().join(name) };
        fs::write(temp.path().join("a"), "1").unwrap();
        fs::write(temp.path().join("b"), "2").unwrap();
        let taken = rename_unless_taken(&file("a"), &file("b"));
        if matches!(taken, Err(Error::Unsupported { .. })) {
            return; // the file system below the temporary directory cannot do it
        }
        assert_eq!(taken.unwrap(), Linked::Exists);
        assert_eq!(fs::read(temp.path().join("b")).unwrap(), b"2");
        assert_eq!(rename_unless_taken(&file("a"), &file("c")).unwrap(), Linked::Done);
        assert_eq!(fs::read(temp.path().join("c")).unwrap(), b"1");
    }
}
