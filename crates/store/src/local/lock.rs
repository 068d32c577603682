//! Locks between processes and between tasks of one.

use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

use super::File;
use super::beneath::Root;
use super::durable::Directories;
use super::read::regular;
use crate::backend::Lock;
use crate::error::{Error, Result};

/// Waits for the lock. The kernel releases it when the file is closed, also if the process dies.
pub(super) fn lock(file: &File, directories: &Directories) -> Result<Lock> {
    let unlocked = |error| unlocked(file, error);
    loop {
        let held = open(file, directories)?;
        exclusive(&held).map_err(unlocked)?;
        // If the file was deleted meanwhile, no other process sees this lock.
        if is_still(file, &held).map_err(unlocked)? {
            return Ok(Lock::new(held));
        }
    }
}

/// The lock, if it is free.
pub(super) fn try_lock(file: &File, directories: &Directories) -> Result<Option<Lock>> {
    let unlocked = |error| unlocked(file, error);
    let held = open(file, directories)?;
    match held.try_lock() {
        Ok(()) => Ok(is_still(file, &held).map_err(unlocked)?.then(|| Lock::new(held))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unlocked(error)),
    }
}

/// A lock is created, so it is never «not found», whatever the system says about its directory.
pub(super) fn unlocked(file: &File, error: io::Error) -> Error {
    file.unmade("lock", error)
}

pub(super) fn open(file: &File, directories: &Directories) -> Result<fs::File> {
    // A pipe in its place must not be waited for.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
    // The last holder of the lock may remove its folder at any moment.
    let opened = directories.with_parents(file, || {
        Root::open(&file.root).and_then(|root| root.open_at(&file.name, flags))
    });
    let open = fs::File::from(opened.map_err(|error| unlocked(file, error))?);
    let metadata = open.metadata().map_err(|error| unlocked(file, error))?;
    regular(file, &metadata)?;
    Ok(open)
}

pub(super) fn exclusive(held: &fs::File) -> io::Result<()> {
    loop {
        match held.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

pub(super) fn is_still(file: &File, held: &fs::File) -> io::Result<bool> {
    let ours = held.metadata()?;
    match fs::symlink_metadata(&file.path) {
        Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
