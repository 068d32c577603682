//! Source and target must not lie in each other.
//!
//! A target in the source changes the data while it is read, and a target around the source deletes
//! the source when it is replaced. Whether a command would do so depends on formats, stores and
//! options, so overlap is always refused.

use chunkyard_format::{Place, Source, container};
use chunkyard_store::{Error, Location, Result};

/// Refuses a source and a target that lie in each other, under any name, with [`Error::Invalid`].
/// [`Conversion`](super::Conversion) and [`link`](super::link) call it themselves.
pub(crate) fn refuse_overlap(source: &dyn Source, from: &Place, target: &str) -> Result<()> {
    refuse(from.bare_url(), target)?;
    // A repository may keep its data under another root.
    let data = source.fetcher().store().url();
    let beside = from.object().is_some_and(|(above, _)| above.url() == data);
    match beside || from.directory().url() == data {
        true => Ok(()),
        false => refuse(data, target),
    }
}

fn refuse(source: &str, target: &str) -> Result<()> {
    let (from, to) = (Location::of(source)?, Location::of(target)?);
    let why = match (to.is_within(&from), from.is_within(&to)) {
        (true, true) => "are the same place",
        (true, false) => "overlap: the target lies in the source",
        (false, true) => "overlap: the source lies in the target",
        (false, false) if shares_files(&from, &to) => "share files",
        (false, false) => return Ok(()),
    };
    Err(Error::invalid(format!(
        "the source {source} and the target {target} {why}; name a target elsewhere"
    )))
}

/// Whether one of the two keeps files beside itself at the other's place: the layers of a
/// container, or work in progress.
fn shares_files(source: &Location, target: &Location) -> bool {
    let Some((folder, name)) = target.split() else { return false };
    let work = folder.join(&format!(".{name}.chunkyard"));
    if source.is_within(&work) {
        return true;
    }
    let Some((other, source)) = source.split() else { return false };
    let beside = folder.is_within(&other) && other.is_within(&folder);
    beside && container::share_files(&source, &name)
}
