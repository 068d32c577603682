//! Our implementation: plays scripts, and checks the content of a container.

mod check;
mod play;

use std::path::PathBuf;

use chunkyard_engine::format::Place;
use chunkyard_engine::format::container::{Container, ContainerOptions};
use chunkyard_engine::store::{Options, block_codec};

use crate::matrix::Case;
use crate::peer::BASE;

/// A container in a directory, as we see it.
pub(crate) struct Own {
    directory: PathBuf,
    codec: &'static str,
    block: usize,
}

impl Own {
    /// The container of a case.
    pub(crate) fn of(case: &Case) -> Self {
        Self { directory: case.directory().to_owned(), codec: case.codec, block: case.block }
    }

    pub(crate) async fn create(&self) -> Container {
        Container::create(&self.place(), self.options()).await.unwrap()
    }

    pub(crate) async fn open(&self) -> Container {
        Container::open(&self.place(), self.options()).await.unwrap()
    }

    fn place(&self) -> Place {
        Place::new(self.directory.join(BASE).to_str().unwrap(), &Options::default()).unwrap()
    }

    fn options(&self) -> ContainerOptions {
        let codec = block_codec(self.codec).unwrap();
        ContainerOptions { codec, block_bytes: self.block as u64, ..ContainerOptions::default() }
    }
}
