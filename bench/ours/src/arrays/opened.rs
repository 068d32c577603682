//! An array open for reading: from a session, or from a directory of any format.

use std::error::Error;

use bench_measure::Options;
use chunkyard_array::{Buffer, OutputMemory, Region};
use chunkyard_engine::format::{self, Reader};
use chunkyard_engine::repo::{Array, OpenOptions, Repository, Version};

/// An array, open for reading. Cheap to clone.
#[derive(Clone)]
pub enum Opened {
    /// Of a session of a repository.
    Session(Array),
    /// Of any format.
    Source(Reader),
}

/// Opens the array of a directory: with `layout=zarr3` as a source of that format.
pub async fn open(options: &Options) -> Result<Opened, Box<dyn Error>> {
    let directory = &options.directory;
    if options.text("layout") == "zarr3" {
        let options = format::OpenOptions::default();
        let opened = chunkyard_engine::open::open(directory, &options).await?;
        return Ok(Opened::Source(Reader::new(&opened.source, "/a")?));
    }
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let session = repo.readonly_session(&Version::branch("main")).await?;
    Ok(Opened::Session(session.array("/a").await?))
}

impl Opened {
    /// The whole array.
    pub fn whole(&self) -> Region {
        match self {
            Self::Session(array) => Region::whole(array.spec().shape()),
            Self::Source(reader) => Region::whole(reader.codecs().grid().array_shape()),
        }
    }

    /// Reads into fresh memory.
    pub async fn read(&self, region: &Region) -> chunkyard_engine::Result<Buffer> {
        match self {
            Self::Session(array) => array.read_region(region).await,
            Self::Source(reader) => reader.read_region(region).await,
        }
    }

    /// Reads into memory that the caller reuses.
    pub async fn read_into<M: OutputMemory>(
        &self,
        region: &Region,
        memory: M,
    ) -> chunkyard_engine::Result<M> {
        match self {
            Self::Session(array) => array.read_region_into(region, memory).await,
            Self::Source(reader) => reader.read_region_into(region, memory).await,
        }
    }
}
