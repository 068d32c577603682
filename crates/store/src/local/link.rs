//! The steps that make a file visible under its final name.

use std::io;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, statat};
use rustix::io::Errno;

use super::File;
use super::beneath::{Directory, Root, is_link};
use super::durable::Directories;
use crate::backend::Linked;
use crate::error::{Error, Result};

/// Gives `from` the name `to` unless that is taken.
pub(super) fn link(from: &File, to: &File, directories: &Directories) -> Result<Linked> {
    let hard_link = || {
        between(from, to, |(above, name), (other, new)| {
            linkat(above, name, other, new, AtFlags::empty())
        })
    };
    match after_parents(from, to, directories, hard_link) {
        Ok(()) => Ok(Linked::Done),
        // NFS repeats a request whose reply was lost, and then finds the name taken by its own
        // first try.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(if same_file(from, to) { Linked::Done } else { Linked::Exists })
        }
        Err(error) if no_hard_links(&error) => rename_unless_taken(from, to),
        Err(error) => Err(blame(from, to, "link", error)),
    }
}

/// Renames `from` to `to`, replacing a file or an empty directory.
pub(super) fn rename(from: &File, to: &File, directories: &Directories) -> Result<()> {
    let rename =
        || between(from, to, |(above, name), (other, new)| renameat(above, name, other, new));
    let outcome = after_parents(from, to, directories, rename);
    if outcome.is_ok() && to.path.is_dir() {
        forget_both(from, to, directories);
    }
    outcome.map_err(|error| blame(from, to, "rename", error))
}

/// Gives a file its new name, in directories that are created if need be; at once if the file itself is missing.
fn after_parents(
    from: &File,
    to: &File,
    directories: &Directories,
    name: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    match name() {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && from.path.symlink_metadata().is_ok() =>
        {
            directories.with_parents(to, name)
        }
        other => other,
    }
}

/// Swaps two names.
pub(super) fn exchange(a: &File, b: &File, directories: &Directories) -> Result<()> {
    if a.path.starts_with(&b.path) || b.path.starts_with(&a.path) {
        return Err(Error::invalid(format!(
            "{} and {} cannot be exchanged: one lies in the other",
            a.name, b.name
        )));
    }
    let outcome = rename_with(a, b, RenameFlags::EXCHANGE);
    forget_both(a, b, directories);
    outcome.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::XDEV) => {
            Error::unsupported(format!(
                "the file system cannot exchange {} and {}",
                a.path.display(),
                b.path.display()
            ))
        }
        Some(Errno::NOENT) if a.path.symlink_metadata().is_ok() => b.missing(),
        Some(Errno::LOOP) => blame(a, b, "exchange", error),
        _ => a.error("exchange", error),
    })
}

/// Does something with two names, each in its directory.
fn between(
    from: &File,
    to: &File,
    act: impl FnOnce((&Directory<'_>, &str), (&Directory<'_>, &str)) -> rustix::io::Result<()>,
) -> io::Result<()> {
    let root = Root::open(&from.root)?;
    let ((above, name), (other, new)) = (root.parent(&from.name)?, root.parent(&to.name)?);
    Ok(act((&above, name), (&other, new))?)
}

fn rename_with(from: &File, to: &File, flags: RenameFlags) -> io::Result<()> {
    between(from, to, |(above, name), (other, new)| renameat_with(above, name, other, new, flags))
}

/// Directories that got another name have entries that are not durable.
fn forget_both(a: &File, b: &File, directories: &Directories) {
    directories.forget(&a.path);
    directories.forget(&b.path);
}

/// The way on file systems without hard links (exFAT, some FUSE and network mounts).
fn rename_unless_taken(from: &File, to: &File) -> Result<Linked> {
    let Err(error) = rename_with(from, to, RenameFlags::NOREPLACE) else {
        return Ok(Linked::Done);
    };
    match Errno::from_io_error(&error) {
        Some(Errno::EXIST) => Ok(Linked::Exists),
        Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(Error::unsupported(format!(
            "the file system of {} can neither link nor rename without replacing",
            to.path.display()
        ))),
        _ => Err(blame(from, to, "link", error)),
    }
}

fn no_hard_links(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK))
}

fn same_file(a: &File, b: &File) -> bool {
    let id = |file: &File| {
        let root = Root::open(&file.root).ok()?;
        let (above, name) = root.parent(&file.name).ok()?;
        let found = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    id(a).is_some() && id(a) == id(b)
}

/// A missing file here is always `from`: the directories of `to` have been created. If `from`
/// exists, then `to` is in the way.
fn blame(from: &File, to: &File, op: &'static str, error: io::Error) -> Error {
    if is_link(&error)
        && let Some(linked) = from.linked().or_else(|| to.linked())
    {
        return linked;
    }
    match from.path.symlink_metadata() {
        Ok(_) => Error::store(op, to.path.display().to_string(), error),
        Err(_) => from.error(op, error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_way_without_hard_links_does_not_replace() {
        let temp = tempfile::tempdir().unwrap();
        let file = |name: &str| File::new(&temp.path().into(), name);
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
