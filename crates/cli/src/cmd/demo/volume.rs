//! The end of the demonstration: the segmentation as Arrow shards and as a volume that Neuroglancer shows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chunkyard_engine::export::{Emit, Exporter, Plan, Progress, Report, Request};
use chunkyard_engine::format::OpenOptions;
use chunkyard_engine::store::Store;
use chunkyard_engine::{Error, Noun};

use crate::context::Context;

/// The port of the server that the printed commands start.
const PORT: u16 = 9000;

/// The directory of the volume, beside the repository.
pub(super) fn beside(repository: &Path) -> PathBuf {
    let mut name = repository.file_name().unwrap_or_default().to_owned();
    name.push("-shards");
    repository.with_file_name(name)
}

/// Exports a labelmap.
pub(super) async fn export(
    repository: &str,
    labelmap: &str,
    to: &Path,
    context: &Context,
) -> Result<Report> {
    let place = to.display().to_string();
    let store = context.options().store;
    let limits = store.limits;
    let open = OpenOptions { store, ..OpenOptions::default() };
    let target = Store::open(&place, &open.store)?;
    let request = Request {
        source: repository.to_owned(),
        array: Some(labelmap.to_owned()),
        open,
        emit: vec![Emit::Arrow, Emit::Precomputed],
        ..Request::default()
    };
    let (plan, source) = Plan::prepare(&request, &target).await?;
    let exporter = Exporter::new(plan, source, target, limits).await?;
    Ok(exporter.run(&Progress::default()).await?)
}

/// Removes an earlier export of a repository, and refuses anything else.
pub(super) async fn make_room(repository: &str, to: &Path, context: &Context) -> Result<()> {
    let place = to.display().to_string();
    let failed = |doing: &'static str| {
        let place = place.clone();
        move |error| Error::store(doing, place, error)
    };
    match fs::read_dir(to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look into")(error).into()),
        Ok(mut entries) => {
            if entries.next().is_none() {
                return Ok(());
            }
        }
    }
    let store = context.options().store;
    match Plan::read(&Store::open(&place, &store)?).await? {
        Some(plan) if plan.source == repository => {
            Ok(fs::remove_dir_all(to).map_err(failed("remove"))?)
        }
        _ => {
            let name =
                format!("{place}, and it is no earlier demonstration; name another directory");
            Err(Error::AlreadyExists { what: Noun::Directory, name }.into())
        }
    }
}

/// How to look at the volume.
pub(super) fn look(place: &str) -> [String; 2] {
    let layer = format!(
        "%7B%22layers%22:%5B%7B%22type%22:%22segmentation%22,%22name%22:%22cells%22,\
         %22source%22:%22precomputed://http://127.0.0.1:{PORT}%22%7D%5D%7D"
    );
    [
        format!("  npx http-server {place} --cors -p {PORT}"),
        format!("  and in a browser: https://neuroglancer-demo.appspot.com/#!{layer}"),
    ]
}
