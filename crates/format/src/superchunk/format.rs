//! BLZ among the formats.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::{Error, Result, Store};

use super::as_editor::BlzEditor;
use super::bloscpack::sink::{BloscpackSink, is_bloscpack_name};
use super::bloscpack::source::{BloscpackSource, is_bloscpack};
use super::convert::draft::Draft;
use super::convert::express;
use super::convert::sink::{BlzSink, Columns, style_of};
use super::convert::source::BlzSource;
use super::convert::tree::HIERARCHY;
use super::read::directory::{ROOT_DIRS, SIZES, STORAGE};
use crate::staging::Staging;
use crate::worker_packs::Member;
use crate::{
    CreateOptions, Dataset, Edit, EditOptions, Editor, Format, OpenOptions, PackSink, Place, Probe,
    Sink, Source, Ticket,
};

/// Compressed arrays and tables, in directories of Bloscpack files, and arrays in a single one.
#[derive(Debug, Clone, Copy)]
pub struct BlzFormat;

#[async_trait]
impl Format for BlzFormat {
    fn name(&self) -> &'static str {
        "blz"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["blz", "bcolz", "blp"]
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let store = place.directory();
        for name in [HIERARCHY, ROOT_DIRS] {
            if has(store, name).await? {
                return Ok(Probe::Yes(format!("it has {name}")));
            }
        }
        if is_bloscpack(place).await? {
            return Ok(Probe::Yes("it begins with blpk".into()));
        }
        match has(store, STORAGE).await? && has(store, SIZES).await? {
            true => Ok(Probe::Yes(format!("it has {STORAGE} and {SIZES}"))),
            false => Ok(Probe::No(format!(
                "neither {STORAGE} and {SIZES}, nor {ROOT_DIRS}, nor {HIERARCHY}, nor a Bloscpack file"
            ))),
        }
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("BLZ")?;
        match is_bloscpack(place).await? {
            true => Ok(Arc::new(BloscpackSource::open(place, options).await?)),
            false => Ok(Arc::new(BlzSource::open(place, options).await?)),
        }
    }

    fn stores_every_chunk(&self) -> bool {
        true
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
        match is_bloscpack_name(place) {
            true => Ok(Box::new(BloscpackSink::create(place, &dataset, options).await?)),
            false => Ok(Box::new(BlzSink::create(place, &dataset, options).await?)),
        }
    }

    async fn join(
        &self,
        place: &Place,
        dataset: &Dataset,
        ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        let columns = Columns::new(&Draft::new(dataset, style_of(place))?);
        columns.identify(&Staging::shared(place)?.journal).await?;
        Ok(Box::new(Member::join(place, columns, ticket).await?))
    }

    fn edits(&self) -> &'static [Edit] {
        &[Edit::Write, Edit::Resize, Edit::Attributes]
    }

    async fn edit(&self, place: &Place, options: &EditOptions) -> Result<Arc<dyn Editor>> {
        Ok(Arc::new(BlzEditor::open(place, options).await?))
    }
}

async fn has(store: &Store, name: &str) -> Result<bool> {
    match store.head(name).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
