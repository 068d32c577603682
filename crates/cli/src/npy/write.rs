//! Writing a `.npy` file that appears whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chunkyard_array::DType;
use chunkyard_array::numpy::npy;
use chunkyard_engine::{Error, Result};

/// A `.npy` file being written: its elements go in here.
pub(crate) struct Writer {
    name: String,
    sink: Box<dyn Write + Send>,
}

/// Where a file being written will appear. Until then it is a temporary file beside its place,
/// which is removed when this value is dropped: keep it where an interruption drops it, not in the
/// writing thread. Pipes and devices are written to directly.
#[must_use = "the file appears only when it is told to"]
pub(crate) struct Target {
    name: String,
    temporary: Option<Temporary>,
}

struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Writer {
    /// Begins a `.npy` file with its header.
    pub(crate) fn create(path: &Path, dtype: &DType, shape: &[u64]) -> Result<(Self, Target)> {
        Self::begin(path, &npy::render_plain(dtype, shape)?)
    }

    /// Begins a file, or standard output for `-`, with these bytes.
    pub(crate) fn begin(path: &Path, header: &[u8]) -> Result<(Self, Target)> {
        let name = path.display().to_string();
        let (sink, temporary): (Box<dyn Write + Send>, _) = if path.as_os_str() == "-" {
            (Box::new(io::stdout()), None)
        } else if path.is_dir() {
            return Err(Error::invalid(format!("{name} is a directory; name a file to write")));
        } else if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path);
            (Box::new(file.map_err(|error| Error::store("write", &name, error))?), None)
        } else {
            let temporary = Temporary::beside(path);
            let file = File::create(&temporary.path);
            (Box::new(file.map_err(|error| Error::store("create", &name, error))?), Some(temporary))
        };
        let target = Target { name: name.clone(), temporary };
        let mut writer = Self { name, sink };
        writer.push(header)?;
        Ok((writer, target))
    }

    /// Appends elements.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(|error| Error::store("write", &self.name, error))
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.sink.flush().map_err(|error| Error::store("write", &self.name, error))
    }
}

impl Target {
    /// Gives the complete file its name.
    pub(crate) fn appear(self) -> Result<()> {
        match &self.temporary {
            Some(temporary) => fs::rename(&temporary.path, &temporary.target)
                .map_err(|error| Error::store("write", &self.name, error)),
            None => Ok(()),
        }
    }
}

impl Temporary {
    fn beside(path: &Path) -> Self {
        // Through a link, so that the link stays and its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let file = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{file}.{}.part", std::process::id()));
        Self { path, target }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; otherwise an error has no reader.
        fs::remove_file(&self.path).ok();
    }
}
