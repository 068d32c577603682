//! The served places that hold labelmaps: repositories, and stores of DVID.

use std::sync::Arc;

use chunkyard_engine::format::Place as Location;
use chunkyard_engine::format::dvid::{DvidOptions, DvidStore, DvidUrl};
use chunkyard_engine::open::recognise;
use chunkyard_engine::repo::Repository;
use chunkyard_engine::{ErrorKind, Result};

use crate::State;
use crate::places::Place;

/// The format of DVID's stores.
const DVID: &str = "dvid";

/// A served place that can hold labelmaps.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    /// A repository, whose labelmaps can be edited.
    Repository(Repository),
    /// A store of DVID, which is only read, and what its URL says.
    Store(Arc<DvidStore>, Arc<DvidUrl>),
}

/// What a served place holds, if it can hold labelmaps. Stores of DVID are opened once.
pub(crate) async fn served(state: &State, name: &str) -> Result<Option<Served>> {
    let place = state.places().get(name)?;
    if DvidUrl::is_one(place.url()) {
        return store(state, name, place).await.map(Some);
    }
    if let Some(repository) = place.repository().await? {
        return Ok(Some(Served::Repository(repository.clone())));
    }
    match is_store(state, name, place).await? {
        true => store(state, name, place).await.map(Some),
        false => Ok(None),
    }
}

async fn store(state: &State, name: &str, place: &Place) -> Result<Served> {
    let key = name.to_owned();
    let url = DvidUrl::parse(place.url())?;
    if let Some(known) = state.dvid().stores.get(&key) {
        return Ok(Served::Store(known, Arc::new(url)));
    }
    let options = DvidOptions { store: place.options().store.clone(), ..DvidOptions::default() };
    let opened = DvidStore::open(&url, &options).await?;
    Ok(Served::Store(state.dvid().stores.put(key, opened), Arc::new(url)))
}

/// Whether a place without a scheme of its own is a store of DVID. That does not change while the server runs.
async fn is_store(state: &State, name: &str, place: &Place) -> Result<bool> {
    let key = name.to_owned();
    if let Some(known) = state.dvid().formats.get(&key) {
        return Ok(*known);
    }
    let location = Location::new(place.url(), &place.options().store)?;
    let found = match recognise(&location).await {
        Ok(format) => format.name() == DVID,
        // It is something else, or nothing yet.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    Ok(*state.dvid().formats.put(key, found))
}
