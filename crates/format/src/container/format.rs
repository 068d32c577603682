//! Containers among the formats.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::{Error, Result};

use super::editor::ContainerEditor;
use super::layers::files::files_at;
use crate::container::bytes::trailer::TRAILER_LEN;
use crate::container::convert::express;
use crate::container::convert::sink::ContainerSink;
use crate::container::convert::source::ContainerSource;
use crate::container::convert::worker::PartsWorker;
use crate::hdf5::Hdf5;
use crate::{
    CreateOptions, Dataset, Edit, EditOptions, Editor, Format, OpenOptions, PackSink, Place, Probe,
    Sink, Source, Ticket, Versions,
};

/// Many arrays in one file.
#[derive(Debug, Clone, Copy)]
pub struct ContainerFormat;

#[async_trait]
impl Format for ContainerFormat {
    fn name(&self) -> &'static str {
        "container"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["af"]
    }

    fn versions(&self) -> Versions {
        Versions::Layers
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let Ok((store, names)) = files_at(place) else {
            return Ok(Probe::No("its name does not end in .af".into()));
        };
        let meta = match store.head(&names.base()).await {
            Ok(meta) => meta,
            Err(Error::NotFound { .. }) => return Ok(Probe::No("no such file".into())),
            Err(error) => return Err(error),
        };
        let start = meta.size.saturating_sub(TRAILER_LEN);
        let trailer = match meta.size {
            0 => Default::default(),
            size => store.get_range(&names.base(), start..size).await?,
        };
        if trailer.ends_with(b"ARRF") {
            return Ok(Probe::Yes("it ends in ARRF".into()));
        }
        // A container that lost its end is a damaged container, unless the file is of another
        // format.
        match Hdf5.probe(place).await {
            Ok(Probe::Yes(_)) => Ok(Probe::No("it does not end in ARRF".into())),
            _ => Ok(Probe::Yes("it is named .af, and does not end in ARRF".into())),
        }
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(ContainerSource::open(place, options).await?))
    }

    fn express(&self, dataset: Dataset) -> Result<Dataset> {
        express::express(dataset)
    }

    async fn create(
        &self,
        place: &Place,
        dataset: Dataset,
        options: CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(ContainerSink::create(place, dataset, options).await?))
    }

    async fn join(
        &self,
        place: &Place,
        dataset: &Dataset,
        ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        Ok(Box::new(PartsWorker::join(place, dataset, ticket).await?))
    }

    fn edits(&self) -> &'static [Edit] {
        Edit::ALL
    }

    fn packs_arrays_alike(&self) -> bool {
        true
    }

    async fn edit(&self, place: &Place, options: &EditOptions) -> Result<Arc<dyn Editor>> {
        Ok(Arc::new(ContainerEditor::open(place, options).await?))
    }
}
