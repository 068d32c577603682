//! The files of a directory, and the bytes that a workload added.
//!
//! Files are told apart by inode: a state file and its claim are two names of one file and count
//! once.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The files of a directory tree at one moment.
#[derive(Default)]
pub struct Disk {
    /// Size and time of the last change, by device and inode.
    files: HashMap<(u64, u64), (u64, i64, i64)>,
}

impl Disk {
    /// Looks at everything below a directory.
    pub fn of(directory: &str) -> io::Result<Self> {
        let mut disk = Self::default();
        disk.walk(Path::new(directory))?;
        Ok(disk)
    }

    fn walk(&mut self, path: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                self.walk(&entry.path())?;
            } else {
                let value = (meta.len(), meta.mtime(), meta.mtime_nsec());
                self.files.insert((meta.dev(), meta.ino()), value);
            }
        }
        Ok(())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.0).sum()
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Bytes written since `earlier`: new files whole, files that grew by their growth, files that
    /// changed in place whole. Files that were written and deleted in between are not seen.
    pub fn written_since(&self, earlier: &Self) -> u64 {
        let written = |(inode, now): (&(u64, u64), &(u64, i64, i64))| match earlier.files.get(inode)
        {
            Some(then) if then == now => 0,
            Some(then) if now.0 > then.0 => now.0 - then.0,
            _ => now.0,
        };
        self.files.iter().map(written).sum()
    }
}
