//! A place of any format but the repository's, which has more to say.

use std::any::Any;
use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{Container, ContainerSource, LayerInfo};
use chunkyard_engine::format::{Format, Node, Place, Source, Survey};
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::Stored;
use crate::cmd::af;
use crate::cmd::facts::{Facts, fitted, survey_members, survey_rows};
use crate::output::Output;
use crate::units::{count, size};

/// What was found at a place.
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) format: &'static dyn Format,
    pub(super) source: Arc<dyn Source>,
    pub(super) survey: Survey,
    pub(super) arrays: Vec<Facts>,
    pub(super) stored: Option<Stored>,
    /// The layers of a container.
    pub(super) layers: Vec<LayerInfo>,
}

impl Found {
    /// Looks at everything; chunks are counted, not read.
    pub(super) async fn look(
        place: Place,
        format: &'static dyn Format,
        source: Arc<dyn Source>,
    ) -> Result<Self> {
        let mut arrays = Vec::new();
        for (path, node) in source.dataset().arrays() {
            arrays.push(Facts::of_any(&*source, path, node).await?);
        }
        let any: &dyn Any = &*source;
        let (layers, stored) = match any.downcast_ref::<ContainerSource>() {
            Some(container) => {
                let (layers, stored) = files_of(container.container()).await?;
                (layers, Some(stored))
            }
            None if arrays.iter().all(Facts::is_counted) => (Vec::new(), stored(&place).await?),
            None => (Vec::new(), None),
        };
        let survey = Survey::of(source.dataset());
        Ok(Self { place, format, source, survey, arrays, stored, layers })
    }

    fn logical_bytes(&self) -> u64 {
        self.arrays.iter().map(|facts| facts.logical_bytes).sum()
    }

    fn ratio(&self) -> Option<f64> {
        self.stored.map(|stored| self.logical_bytes() as f64 / stored.bytes.max(1) as f64)
    }

    pub(super) fn document(&self) -> Result<Value> {
        let dataset = self.source.dataset();
        let mut arrays = Vec::new();
        for facts in &self.arrays {
            let mut document = facts.document_in(&self.survey)?;
            if let Some(members) = document.as_object_mut() {
                let attributes = dataset.array(&facts.path)?.spec.attributes();
                members.insert("attributes".into(), Value::Object(attributes.clone()));
                members.insert("bytes".into(), json!(facts.logical_bytes));
            }
            arrays.push(document);
        }
        let group = |(path, group): (&str, &chunkyard_array::GroupSpec)| json!({"path": path, "type": "group", "attributes": group.attributes()});
        let losses =
            dataset.losses.iter().map(|loss| json!({"name": loss.name, "what": loss.what}));
        let mut document = json!({
            "url": self.place.directory().url(),
            "format": self.format.name(),
            "arrays": arrays,
            "groups": dataset.groups().map(group).collect::<Vec<_>>(),
            "not-read": losses.collect::<Vec<_>>(),
            "bytes": self.logical_bytes(),
            "stored-files": self.stored.map(|stored| stored.files),
            "stored-bytes": self.stored.map(|stored| stored.bytes),
            "ratio": self.ratio(),
        });
        if let Some(members) = document.as_object_mut() {
            members.extend(survey_members(&self.survey));
            if !self.layers.is_empty() {
                let layers = self.layers.iter().map(af::layer_document);
                members.insert("layers".into(), layers.collect());
            }
        }
        Ok(document)
    }

    /// How many layers there are, and whether damage to them would be noticed.
    fn layers_text(&self) -> Option<String> {
        let layers = self.layers.len() as u64;
        let sealed = self.layers.iter().filter(|layer| layer.sealed).count() as u64;
        let checksums = match sealed {
            0 => "without checksums".to_owned(),
            _ if sealed == layers => "all with checksums".to_owned(),
            _ => format!("{sealed} with checksums"),
        };
        (layers > 0).then(|| format!("{layers}, {checksums}"))
    }

    pub(super) fn text(&self, output: Output) -> Result<String> {
        let dataset = self.source.dataset();
        let mut rows = vec![
            ("place".to_owned(), self.place.directory().url().to_owned()),
            ("format".to_owned(), self.format.name().to_owned()),
            ("values".to_owned(), size(self.logical_bytes())),
        ];
        let stored = match (self.stored, self.ratio()) {
            (Some(stored), Some(ratio)) => {
                let objects = count(stored.files, "object");
                format!("{} in {objects} (ratio {ratio:.1})", size(stored.bytes))
            }
            _ => "unknown: this store cannot list".to_owned(),
        };
        rows.push(("stored".to_owned(), stored));
        rows.extend(self.layers_text().map(|text| ("layers".to_owned(), text)));
        for loss in &dataset.losses {
            rows.push(("not read".to_owned(), format!("{}: {}", loss.name, loss.what)));
        }
        rows.extend(survey_rows(&self.survey));
        if let Some(Node::Group(root)) = dataset.nodes.get("/") {
            for (key, value) in root.attributes() {
                rows.push((format!("@{key}"), value.to_string()));
            }
        }
        let mut text = fitted(rows, output);
        for facts in &self.arrays {
            text.push('\n');
            text.push_str(&facts.text(
                dataset.array(&facts.path)?.spec.attributes(),
                &self.survey,
                output,
            )?);
        }
        if self.arrays.is_empty() {
            text.push_str("\nno arrays\n");
        }
        Ok(text)
    }
}

/// The layers of a container, and the number and size of its files.
async fn files_of(container: &Container) -> Result<(Vec<LayerInfo>, Stored)> {
    let layers = container.layers().await?;
    let statistics = container.statistics_file_bytes().await?;
    let bytes: u64 = layers.iter().map(|layer| layer.bytes).sum();
    let stored = Stored {
        files: layers.len() as u64 + u64::from(statistics.is_some()),
        bytes: bytes + statistics.unwrap_or(0),
    };
    Ok((layers, stored))
}

/// Adds up the objects at a place, where the store can list them.
async fn stored(place: &Place) -> Result<Option<Stored>> {
    if let Some((store, name)) = place.object()
        && let Ok(meta) = store.head(name).await
    {
        return Ok(Some(Stored { files: 1, bytes: meta.size }));
    }
    let listed = match place.directory().list("").await {
        Ok(listed) => listed,
        Err(Error::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let sum = listed.try_fold(Stored::default(), |sum, meta| async move {
        Ok(Stored { files: sum.files + 1, bytes: sum.bytes + meta.size })
    });
    Ok(Some(sum.await?))
}
