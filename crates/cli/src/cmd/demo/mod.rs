//! `chunkyard demo`: commits, branches, conflicts, time travel, verification and an export on generated data.

mod climate;
mod segmentation;
mod story;
mod volume;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use chunkyard_engine::repo::{CreateOptions, Repository};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::json;

use self::story::Story;
use crate::context::Context;

/// The property by which an earlier demonstration is recognised.
const MARKER: &str = "chunkyard-demo";

/// See all of it on generated data, in some seconds
///
/// Makes a repository in DIR, and a volume for Neuroglancer in DIR-shards. It replaces an earlier demonstration, and refuses
/// directories with anything else in them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chunkyard demo /tmp/demo-repo")]
pub(crate) struct Demo {
    /// Where to make the repository
    #[arg(default_value = "demo-repo")]
    dir: PathBuf,
}

impl Demo {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let started = Instant::now();
        let place = self.dir.display().to_string();
        context.about(&place);
        volume::make_room(&place, &volume::beside(&self.dir), context).await?;
        make_room(&self.dir, &place, context).await?;
        let mut properties = serde_json::Map::new();
        properties.insert(MARKER.into(), json!(true));
        properties.insert("title".into(), json!("A year of air temperature"));
        let create = CreateOptions { properties, ..CreateOptions::default() };
        let repo = Repository::create(&place, context.options(), create).await?;
        let report = Story::new(repo, context, &self.dir).tell().await?;
        if context.output.is_json() {
            return context.output.document(&report);
        }
        context.output.text(&format!(
            "{}\n{}\n(all of this took {:.1} s)\n",
            context.output.bold("\nLook further"),
            look_further(&place, &volume::beside(&self.dir).display().to_string()),
            started.elapsed().as_secs_f64()
        ))
    }
}

fn look_further(place: &str, shards: &str) -> String {
    let commands = [
        format!("  chunkyard info {place}"),
        format!("  chunkyard repo log {place} --all"),
        format!("  chunkyard repo diff {place} v1 main"),
        format!("  chunkyard repo get {place} /air/temperature -o day0.npy --region 0 --tag v1"),
        format!("  chunkyard labels bodies {place}"),
        format!("  chunkyard verify {place} --level bytes"),
        format!(
            "  chunkyard export-shards {place} {shards} --array {} --emit arrow,precomputed --check",
            segmentation::PATH
        ),
        "  chunkyard repo --help".into(),
    ];
    let look = volume::look(shards);
    let seen = ["\nSee the cells in Neuroglancer".to_owned()].into_iter().chain(look);
    commands.into_iter().chain(seen).collect::<Vec<_>>().join("\n")
}

/// Removes an earlier demonstration, and refuses anything else.
async fn make_room(dir: &Path, place: &str, context: &Context) -> Result<()> {
    let failed = |error| Error::store("look into", place, error);
    match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error).into()),
        Ok(mut entries) => {
            if entries.next().is_none() {
                return Ok(());
            }
        }
    }
    let ours = match Repository::open(place, context.options()).await {
        Ok(repo) => repo.state().await?.properties.contains_key(MARKER),
        Err(_) => false,
    };
    if !ours {
        let name = format!("{place}, and it is no earlier demonstration; name another directory");
        return Err(Error::AlreadyExists { what: Noun::Directory, name }.into());
    }
    // Only files of a repository. The state goes last: it holds the mark.
    let locks = ["state.next", "state.turn", "state.lock"];
    for name in
        ["c", "i", "s", "a", "gc", ".tmp", "g"].into_iter().chain(locks).chain(["state.json"])
    {
        let path = dir.join(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::store("remove", path.display().to_string(), error).into());
            }
            _ => {}
        }
    }
    Ok(())
}
