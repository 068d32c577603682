//! A `.npy` file as a volume of labels: read in boxes, never whole.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chunkyard_array::{ByteOrder, Region};
use chunkyard_engine::labels::{Volume, widen};
use chunkyard_engine::{Error, Result};

use crate::npy;

/// Labels in a file, in C order.
pub(super) struct NpyVolume {
    name: String,
    file: Mutex<File>,
    shape: [u64; 3],
    width: usize,
    big_endian: bool,
    /// Where the elements begin.
    start: u64,
}

impl NpyVolume {
    /// Checks type, order and length of the file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let reader = npy::Reader::open(path)?;
        let header = reader.header();
        let name = path.display().to_string();
        let is_unsigned = ["uint8", "uint16", "uint32", "uint64"].contains(&header.dtype.name());
        if !is_unsigned {
            return Err(Error::invalid(format!(
                "{name}: labels are unsigned integers, not {}; cast them first",
                header.dtype.name()
            )));
        }
        let shape = <[u64; 3]>::try_from(header.shape.as_slice()).map_err(|_| {
            let count = header.shape.len();
            Error::invalid(format!("{name}: a volume has the axes z, y, x; this file has {count}"))
        })?;
        if header.fortran {
            return Err(Error::unsupported(format!(
                "{name} in Fortran order; save it with numpy.ascontiguousarray first"
            )));
        }
        let failed = |error| Error::store("read", &name, error);
        let mut file = File::open(path).map_err(failed)?;
        let (width, big_endian) = (reader.item_size(), header.byte_order == ByteOrder::Big);
        let (_, _) = npy::read_text(&name, &mut file)?;
        let start = file.stream_position().map_err(failed)?;
        Ok(Self { name, file: Mutex::new(file), shape, width, big_endian, start })
    }

    fn read_rows(&self, region: &Region) -> Result<Vec<u8>> {
        let failed = |error| Error::store("read", &self.name, error);
        let mut bytes = vec![0; region.num_bytes(self.width)?];
        let (start, count) = (region.origin(), region.shape());
        let row = count[2] as usize * self.width;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, out) in bytes.chunks_exact_mut(row.max(1)).enumerate() {
            let (z, y) = (number as u64 / count[1], number as u64 % count[1]);
            let place = ((start[0] + z) * self.shape[1] + start[1] + y) * self.shape[2] + start[2];
            let at = self.start + place * self.width as u64;
            file.seek(SeekFrom::Start(at)).map_err(failed)?;
            file.read_exact(out).map_err(failed)?;
        }
        if self.big_endian {
            npy::swap_bytes(&mut bytes, self.width);
        }
        Ok(bytes)
    }
}

#[async_trait]
impl Volume for NpyVolume {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        Ok(widen(&self.read_rows(region)?, self.width))
    }
}
