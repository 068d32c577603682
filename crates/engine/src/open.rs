//! From a URL to whatever is there: all formats, and which of them a place is.

use std::sync::Arc;

use chunkyard_format::container::ContainerFormat;
use chunkyard_format::dvid::DvidFormat;
use chunkyard_format::dvid_http::DvidHttp;
use chunkyard_format::hdf5::Hdf5;
use chunkyard_format::precomputed::Precomputed;
use chunkyard_format::superchunk::BlzFormat;
use chunkyard_format::zarr3::Zarr3;
use chunkyard_format::{Format, OpenOptions, Place, Probe, Source, TABLE};
use chunkyard_repo::RepoFormat;
use chunkyard_store::{Error, Kind, Noun, Result};
use futures::future;

use crate::block_table::BlockTable;

/// All formats.
pub static FORMATS: &[&dyn Format] = &[
    &RepoFormat,
    &Zarr3,
    &Hdf5,
    &ContainerFormat,
    &BlzFormat,
    &Precomputed,
    &DvidFormat,
    &DvidHttp,
    &BlockTable,
];

/// What was found at a URL.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Name of the format.
    pub format: &'static str,
    /// What is there.
    pub source: Arc<dyn Source>,
}

/// Opens whatever is at a URL.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Opened> {
    let place = Place::new(url, &options.store)?;
    let format = recognise(&place).await?;
    Ok(Opened { format: format.name(), source: format.open(&place, options).await? })
}

/// The format of what is at a place, by its content. Where that is none or not clear, the error
/// lists what was tried.
pub async fn recognise(place: &Place) -> Result<&'static dyn Format> {
    if let Some(format) = claimed(place.url()) {
        return Ok(format);
    }
    let (found, tried) = probe_all(place).await?;
    match found.as_slice() {
        [(format, _)] => Ok(*format),
        [] => Err(nothing(place, &tried).await),
        several => Err(Error::invalid(format!(
            "{} is more than one thing:{}\nname the part that is meant",
            place.url(),
            listed(several)
        ))),
    }
}

/// The format that the scheme of a URL belongs to.
pub fn claimed(url: &str) -> Option<&'static dyn Format> {
    if url.starts_with(TABLE) {
        return Some(&BlockTable);
    }
    let (scheme, _) = url.split_once("://")?;
    FORMATS.iter().copied().find(|format| format.schemes().contains(&scheme))
}

/// Tells an unknown thing from a bucket that is not there, in which every object is missing.
async fn nothing(place: &Place, tried: &[Verdict]) -> Error {
    if let Kind::Object { .. } = place.directory().kind()
        && let Err(error @ Error::NotFound { .. }) = place.directory().list_dir("").await
    {
        return error;
    }
    let name = format!("{} is none of these:{}", place.url(), listed(tried));
    Error::NotFound { what: Noun::Dataset, name }
}

/// The format named so.
pub fn format_named(name: &str) -> Result<&'static dyn Format> {
    let known = FORMATS.iter().find(|format| format.name() == name);
    known.copied().ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
        Error::invalid(format!("there is no format {name:?}; there are {}", names.join(", ")))
    })
}

/// The format that something new is to have: what is there already if anything is, or what its name
/// ends with, or plain Zarr.
pub async fn format_of_target(place: &Place) -> Result<&'static dyn Format> {
    if let Some(format) = claimed(place.url()) {
        return Ok(format);
    }
    let (found, _) = probe_all(place).await?;
    if let [(format, _)] = found.as_slice() {
        return Ok(*format);
    }
    let name = place.url().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let Some((_, extension)) = name.rsplit_once('.') else { return Ok(&Zarr3) };
    let fits = |format: &&&dyn Format| format.extensions().contains(&extension);
    FORMATS.iter().find(fits).copied().ok_or_else(|| {
        // Those that are only read have no ending of their own.
        let written = FORMATS.iter().filter(|format| !format.extensions().is_empty());
        let names: Vec<_> = written.map(|format| format.name()).collect();
        Error::invalid(format!(
            "the ending of {name} is that of no format that can be written: name one of {} with \
             --to or to=, or end it in .zarr, .af or .blz{}",
            names.join(", "),
            match extension {
                "npy" => "; `chunkyard get` writes .npy files",
                _ => "",
            }
        ))
    })
}

type Verdict = (&'static dyn Format, String);

/// Asks every format: those that recognise the place, and those that do not, with the reasons.
async fn probe_all(place: &Place) -> Result<(Vec<Verdict>, Vec<Verdict>)> {
    place.refuse_irregular().await?;
    let probes = FORMATS.iter().map(|format| async move { (*format, format.probe(place).await) });
    let (mut found, mut tried) = (Vec::new(), Vec::new());
    for (format, probe) in future::join_all(probes).await {
        match probe {
            Ok(Probe::Yes(why)) => found.push((format, why)),
            Ok(Probe::No(why)) => tried.push((format, why)),
            // A web server without ranges, say: one format that cannot look is no obstacle to others.
            Err(Error::Unsupported { what }) => tried.push((format, what)),
            Err(error) => return Err(error),
        }
    }
    Ok((found, tried))
}

fn listed(verdicts: &[Verdict]) -> String {
    let line = |(format, why): &Verdict| format!("\n  {}: {why}", format.name());
    verdicts.iter().map(line).collect()
}
