//! DVID's own store into a repository: a labelmap, with the history of its versions.

use std::time::Instant;

use anyhow::{Context as _, Result};
use chunkyard_engine::Error;
use chunkyard_engine::format::dvid::{DvidOptions, DvidStore, DvidUrl};
use chunkyard_engine::format::{Finding, Place};
use chunkyard_engine::labels::dvid::{ImportOptions, ImportReport, WhichVersions, import_history};
use chunkyard_engine::repo::{CreateOptions, Repository};
use chunkyard_engine::store::Limits;
use serde_json::{Value, json};

use super::Convert;
use crate::context::Context;
use crate::failure::{Target, Unsound};
use crate::units::{count, lasting, short};

/// Damaged blocks that are printed one by one.
const LISTED: usize = 20;

/// Imports the labelmap of a store into a repository, which is made if it does not exist.
pub(super) async fn run(command: &Convert, limits: Limits, context: &Context) -> Result<()> {
    let began = Instant::now();
    command.refuse_wishes()?;
    let url = DvidUrl::parse(&command.source)?;
    let skip_corrupt = command.written.skip_corrupt;
    let options = DvidOptions { store: context.store_options(limits), skip_corrupt };
    let store = DvidStore::open(&url, &options).await?;
    let versions = match command.versions.as_deref() {
        Some("all") => WhichVersions::All,
        Some(listed) => {
            WhichVersions::These(listed.split(',').map(|name| name.trim().to_owned()).collect())
        }
        None => {
            let (repo, version) = store.find(url.uuid.as_deref())?;
            let node = repo.dag.get(version);
            WhichVersions::These(node.map(|node| node.uuid.clone()).into_iter().collect())
        }
    };
    let path = command.wished.into.clone().unwrap_or_else(|| "/labels".to_owned());
    let import = ImportOptions { path, data: url.data.clone(), versions, skip_corrupt };
    if command.dry_run {
        let what =
            "--dry-run is for conversions of arrays; `chunkyard info` describes a store of DVID";
        return Err(Error::invalid(what).into());
    }
    let repo = open_or_create(command, context).await.context(Target)?;
    let watch = context.watch("importing");
    let report =
        import_history(&repo, &store, url.uuid.as_deref(), &import, context.meter()).await?;
    drop(watch);
    report.cautions.iter().for_each(|caution| context.output.warn(caution));
    // Parts of the key-value store that could not be read: which blocks they held is not known.
    let skipped = store.left_out();
    let document = document(command, &report, &skipped);
    context.output.done(&document, || summary(command, &report, began))?;
    list_parts(&skipped, context);
    list_damage(&report, context);
    match report.damaged.len() + skipped.len() {
        0 => Ok(()),
        errors => Err(Unsound { errors }.into()),
    }
}

async fn open_or_create(command: &Convert, context: &Context) -> Result<Repository> {
    match Repository::open(&command.target, context.options()).await {
        Err(Error::NotFound { .. }) => {
            let created = CreateOptions::default();
            Ok(Repository::create(&command.target, context.options(), created).await?)
        }
        other => Ok(other?),
    }
}

fn document(command: &Convert, report: &ImportReport, left_out: &[Finding]) -> Value {
    let mut document = json!({
        "source": {"url": command.source, "format": "dvid"},
        "target": {"url": command.target, "format": "repo"},
        "left-out": left_out,
    });
    if let (Some(members), Ok(Value::Object(report))) =
        (document.as_object_mut(), serde_json::to_value(report))
    {
        members.extend(report);
    }
    document
}

fn summary(command: &Convert, report: &ImportReport, began: Instant) -> String {
    let sum = |what: fn(&chunkyard_engine::labels::dvid::ImportedVersion) -> u64| {
        report.versions.iter().map(what).sum::<u64>()
    };
    let mut text = format!(
        "{}: {}, {}, {} in {}",
        command.target,
        count(report.versions.len() as u64, "version"),
        count(sum(|version| version.blocks), "block"),
        count(sum(|version| version.mutations), "mutation"),
        lasting(began.elapsed())
    );
    for version in &report.versions {
        let (uuid, snapshot) = (short(&version.uuid), short(&version.snapshot));
        text.push_str(&format!("\n  {uuid} is snapshot {snapshot} on {}", version.branch));
        if version.difference_count > 0 {
            let bodies = version.difference_count;
            text.push_str(&format!("; bodies that DVID's own index counts differently: {bodies}"));
        }
    }
    text
}

/// Warns of the parts of a store that could not be read.
pub(super) fn list_parts(left_out: &[Finding], context: &Context) {
    for Finding { file, what, .. } in left_out.iter().take(LISTED) {
        context.output.warn(&format!("left out: a part of {file}: {what}"));
    }
    if left_out.len() > LISTED {
        let more = left_out.len() - LISTED;
        context.output.warn(&format!("and {more} more parts; --json lists them"));
    }
}

fn list_damage(report: &ImportReport, context: &Context) {
    for damaged in report.damaged.iter().take(LISTED) {
        let [z, y, x] = damaged.block;
        context.output.warn(&format!(
            "left out: block z={z} y={y} x={x} of scale {} at {}: {}",
            damaged.scale,
            short(&damaged.version),
            damaged.error
        ));
    }
    if report.damaged.len() > LISTED {
        let more = report.damaged.len() - LISTED;
        context.output.warn(&format!("and {more} more; --json lists all"));
    }
}

impl Convert {
    /// Whether this is an import: of DVID's store, into a repository, without other wishes for the voxels.
    pub(super) fn is_import(&self, source: &str, target: &str) -> bool {
        let plain = self.wished.ids.is_none() && !self.wished.supervoxels;
        source == "dvid" && target == "repo" && (plain || self.versions.is_some())
    }

    /// Refuses options that say how arrays are written.
    fn refuse_wishes(&self) -> Result<()> {
        let wished = &self.wished;
        let any = !wished.arrays.is_empty()
            || wished.region.is_some()
            || wished.chunks.is_some()
            || wished.shards.is_some()
            || wished.codec.is_some()
            || wished.dtype.is_some()
            || wished.ids.is_some()
            || wished.supervoxels
            || self.written.overwrite
            || self.written.verify
            || self.written.to_branch.is_some();
        match any {
            true => Err(Error::invalid(
                "a store of DVID becomes a labelmap in a repository as it is; --ids bodies or --ids \
                 supervoxels, without --versions, converts its voxels to plain arrays with any option",
            )
            .into()),
            false => Ok(()),
        }
    }

    /// Refuses `--versions` where no history is imported.
    pub(super) fn refuse_versions(&self, target: &Place) -> Result<()> {
        match &self.versions {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!(
                "--versions is for a store of DVID that goes into a repository, and {} is none; name it *.repo",
                target.url()
            ))
            .into()),
        }
    }
}
