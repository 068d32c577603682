//! Converting, linking and verifying whole datasets.

use std::sync::Arc;

use chunkyard_engine::format::{CreateOptions, Node, Place, Versions, check};
use chunkyard_engine::open::recognise;
use chunkyard_engine::pipeline::{self, Linked, Outcome, Request, RunOptions, Wishes, stem};
use chunkyard_engine::repo::Level;
use chunkyard_engine::store::Limits;
use chunkyard_engine::{Meter, repo};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::json;
use crate::options::{OpenOptions, Version};
use crate::repository::parse_level;
use crate::runtime::wait;
use crate::watch::Watch;
use crate::workers::Coordinator;

/// How a target is written.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Written {
    overwrite: bool,
    restart: bool,
    message: Option<String>,
    branch: Option<String>,
}

impl Written {
    fn options(self) -> CreateOptions {
        CreateOptions {
            overwrite: self.overwrite,
            restart: self.restart,
            message: self.message,
            branch: self.branch,
            ..CreateOptions::default()
        }
    }
}

/// A planned conversion that has not begun.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Conversion {
    inner: pipeline::Conversion,
    limits: Limits,
}

#[pymethods]
impl Conversion {
    /// Opens the source and plans. Nothing is written.
    #[staticmethod]
    #[pyo3(signature = (source, target, options, version, to, wishes))]
    fn prepare(
        py: Python<'_>,
        source: String,
        target: String,
        options: OpenOptions,
        version: Option<Version>,
        to: Option<String>,
        wishes: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let open = options.any(version.map(|version| version.0));
        let limits = open.store.limits;
        let wishes: Wishes = json::of_python(wishes)?;
        let request = Request { source, target, open, to, wishes };
        Ok(Self { inner: wait(py, pipeline::Conversion::prepare(request))?, limits })
    }

    /// The plan, as a document.
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plan = &self.inner.plan;
        let arrays = plan.arrays.iter().map(|array| {
            json!({
                "source": *array.source,
                "target": *array.target,
                "movement": array.movement.to_string(),
                "why": array.why,
                "nbytes": array.bytes,
            })
        });
        let document = json!({
            "source_format": self.inner.from.name(),
            "target_format": self.inner.to.name(),
            "arrays": arrays.collect::<Vec<Value>>(),
            "packs": plan.packs(),
            "nbytes": plan.bytes(),
        });
        json::to_python(py, &document)
    }

    /// Converts everything in this process; gives the outcome, as a document.
    fn run<'py>(
        &self,
        py: Python<'py>,
        written: Written,
        verify: bool,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.run_options(verify);
        let watch = Watch::new(options.meter.clone(), report);
        let outcome = watch.wait(py, self.inner.run(written.options(), &options))?;
        json::to_python(py, &outcome_document(&outcome))
    }

    /// Begins it; workers then carry it out.
    fn hand_out(
        &self,
        py: Python<'_>,
        written: Written,
        verify: bool,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Coordinator> {
        let options = self.run_options(verify);
        let watch = Watch::new(options.meter.clone(), report);
        let begin = pipeline::Coordinator::begin(&self.inner, written.options(), options);
        Ok(Coordinator::new(wait(py, begin)?, watch))
    }
}

impl Conversion {
    fn run_options(&self, verify: bool) -> RunOptions {
        RunOptions { limits: self.limits, verify, ..RunOptions::default() }
    }
}

/// The outcome of a conversion.
pub(crate) fn outcome_document(outcome: &Outcome) -> Value {
    json!({
        "packs": outcome.packs,
        "packs_resumed": outcome.resumed,
        "chunks": outcome.chunks,
        "nbytes": outcome.bytes,
        "nbytes_stored": outcome.bytes_stored,
        "snapshot": outcome.published.snapshot,
    })
}

/// Puts references to the chunks of a source into a repository, in one commit.
#[pyfunction]
#[pyo3(signature = (source, repository, options, version, wishes, written, report))]
#[expect(clippy::too_many_arguments, reason = "one for each of the Python function")]
pub(crate) fn link<'py>(
    py: Python<'py>,
    source: &str,
    repository: &str,
    options: OpenOptions,
    version: Option<Version>,
    wishes: &Bound<'_, PyAny>,
    written: Written,
    report: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let open = options.any(version.map(|version| version.0));
    let wishes: Wishes = json::of_python(wishes)?;
    let meter = Arc::<Meter>::default();
    let watch = Watch::new(meter.clone(), report);
    let (linked, allow) = watch.wait(py, async {
        let place = Place::new(source, &open.store)?;
        let opened = recognise(&place).await?.open(&place, &open).await?;
        let is_array = matches!(opened.dataset().nodes.get("/"), Some(Node::Array(_)));
        let name = if is_array { stem(source) } else { "" };
        let create = CreateOptions { store: open.store.clone(), ..written.options() };
        let target = Place::new(repository, &open.store)?;
        let linked =
            pipeline::link(&opened, &place, &target, &wishes, name, create, &meter).await?;
        Ok((linked, opened.fetcher().store().object_url("")))
    })?;
    json::to_python(py, &linked_document(&linked, &allow))
}

fn linked_document(linked: &Linked, allow: &str) -> Value {
    json!({
        "arrays": linked.arrays,
        "references": linked.chunks,
        "nbytes": linked.bytes,
        "copied_chunks": linked.copied.0,
        "copied_bytes": linked.copied.1,
        "snapshot": linked.published.snapshot,
        "allow": allow,
    })
}

/// Checks a dataset of any format. Without a level, a repository is checked for missing files, and
/// other formats, which keep no separate checksums, are decoded in full.
#[pyfunction]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    url: &str,
    options: OpenOptions,
    version: Option<Version>,
    level: Option<&str>,
    report: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let level = level.map(parse_level).transpose()?;
    let open = options.any(version.map(|version| version.0));
    let meter = Arc::<Meter>::default();
    let watch = Watch::new(meter.clone(), report);
    let found = watch.wait(py, async {
        let place = Place::new(url, &open.store)?;
        let format = recognise(&place).await?;
        if format.versions() == Versions::Commits {
            let how = repo::OpenOptions { meter: meter.clone(), ..options.repository() };
            let found = repo::Repository::open_in(place.directory().clone(), how).await?;
            let found = found.verify(level.unwrap_or(Level::Existence)).await?;
            return Ok(serde_json::to_value(found));
        }
        let source = format.open(&place, &open).await?;
        let found = check(&source, level.unwrap_or(Level::Bytes), &meter).await?;
        Ok(serde_json::to_value(found))
    })?;
    let found = found.map_err(|error| {
        crate::error::to_python(chunkyard_engine::Error::invalid(format!("a report: {error}")))
    })?;
    json::to_python(py, &found)
}
