//! Locks between processes and between tasks of one.

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::File;
use super::durable::Directories;
use crate::error::{Error, Result};
use crate::store::backend::Lock;

/// How often a folder is made again that others take away; a link that leads nowhere never ends.
const ATTEMPTS: usize = 1000;

/// Waits for the lock. The kernel releases it when the file is closed, also if the process dies.
pub(super) fn lock(file: &File, directories: &Directories) -> Result<Lock> {
    let wait = || loop {
        let held = open(file, directories)?;
        exclusive(&held)?;
        // Whoever waited for a file that was deleted meanwhile holds a lock that nobody else sees.
        if is_still(file, &held)? {
            return Ok(Lock::new(held));
        }
    };
    wait().map_err(|error| unlocked(file, error))
}

/// The lock, if nobody holds it.
pub(super) fn try_lock(file: &File, directories: &Directories) -> Result<Option<Lock>> {
    let try_once = || {
        let held = open(file, directories)?;
        match held.try_lock() {
            Ok(()) => Ok(is_still(file, &held)?.then(|| Lock::new(held))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    };
    try_once().map_err(|error| unlocked(file, error))
}

/// A lock is created, so it is never «not found», whatever the system says of its directory.
fn unlocked(file: &File, error: io::Error) -> Error {
    Error::store("lock", file.path.display().to_string(), error)
}

fn open(file: &File, directories: &Directories) -> io::Result<fs::File> {
    let mut attempts = 0;
    loop {
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file.path)
        {
            // Its folder is not there yet, or whoever held the lock before took it away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS => {
                attempts += 1;
                match directories.create_parents(&file.path) {
                    // It was there when it was to be made, and is not any more.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    other => other?,
                }
            }
            other => return other,
        }
    }
}

fn exclusive(held: &fs::File) -> io::Result<()> {
    loop {
        match held.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn is_still(file: &File, held: &fs::File) -> io::Result<bool> {
    let ours = held.metadata()?;
    match fs::metadata(&file.path) {
        Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
