//! Deleting files and trees, never through a link that leads elsewhere.

use std::fs;
use std::io;
use std::path::Path;

use super::durable::Directories;
use super::{File, resolved};
use crate::error::{Error, Result};

const OP: &str = "delete";

pub(super) fn delete(files: &[File]) -> Result<()> {
    for file in files {
        match fs::remove_file(&file.path).map_err(|error| file.error(OP, error)) {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Deletes a directory below `root` with everything in it; of `root` itself, only what is in it. A
/// link goes, what it leads to stays.
pub(super) fn delete_dir(directory: &Path, root: &Path, directories: &Directories) -> Result<()> {
    let failed = |error| Error::store(OP, directory.display().to_string(), error);
    directories.forget(directory);
    if directory == root {
        return missing_is_fine(clear(root)).map_err(failed);
    }
    let Some((above, name)) = directory.parent().zip(directory.file_name()) else { return Ok(()) };
    match resolved(above, root) {
        Ok(Some(above)) => missing_is_fine(remove_tree(&above.join(name))).map_err(failed),
        Ok(None) => Err(Error::invalid(format!(
            "{} leads out of {} through a link, and nothing is deleted there",
            directory.display(),
            root.display()
        ))),
        Err(error) => missing_is_fine(Err(error)).map_err(failed),
    }
}

fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        missing_is_fine(match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        })?;
    }
    Ok(())
}

/// An object is not below itself, so a file stays.
fn remove_tree(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() && fs::metadata(path).is_ok_and(|target| target.is_dir()) {
        fs::remove_file(path)
    } else if kind.is_dir() {
        // Of the standard library, and safe against a directory that turns into a link meanwhile.
        fs::remove_dir_all(path)
    } else {
        Ok(())
    }
}

fn missing_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(())
        }
        other => other,
    }
}
