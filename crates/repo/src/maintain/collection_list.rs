//! The list of files an announced collection will delete.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::mark::DATA_DIRECTORIES;
use crate::columns::Columns;
use crate::parquet_file::{self, Label, Sealed, corrupt};
use crate::state::CollectionList;
use crate::swap::TEMPORARY;
use crate::{Repository, check_file, id};

/// Directory of the lists.
pub(super) const LISTS: &str = "gc";

/// The directories in which a collection deletes.
pub(super) fn directories() -> impl Iterator<Item = &'static str> {
    DATA_DIRECTORIES.into_iter().chain([LISTS, TEMPORARY])
}

/// Whether a collection may delete this path: only a file that this format could have written. A
/// list with any other name is damaged, or made to do harm.
pub(crate) fn is_collectable(path: &str) -> bool {
    path.split_once('/').is_some_and(|(directory, name)| {
        directories().any(|known| known == directory) && id::is_file_name(name)
    })
}

/// Renders a list.
pub(crate) fn render(files: &[String], dataset_id: &str, now_ms: i64) -> Result<Sealed> {
    let schema = Arc::new(Schema::new(vec![Field::new("file", DataType::Utf8, false)]));
    let column: StringArray = files.iter().map(Some).collect();
    let batch = RecordBatch::try_new(schema, vec![Arc::new(column)])
        .map_err(|error| Error::Invalid { what: error.to_string() })?;
    let label = Label { format: "collection", dataset_id, created_ms: now_ms };
    let properties = parquet_file::properties(Some(&batch)).set_dictionary_enabled(false).build();
    parquet_file::seal(label, &batch, properties, &[])
}

/// Parses a list whose checksum was compared.
pub(crate) fn parse(path: &str, dataset_id: &str, bytes: &Bytes) -> Result<HashSet<String>> {
    let label = Label { format: "collection", dataset_id, created_ms: 0 };
    let (_, batches) = parquet_file::read_whole(path, &label, bytes, None)?;
    let mut files = HashSet::new();
    for batch in &batches {
        let names = Columns::of_batch(path, batch).strings("file")?;
        if names.null_count() > 0 {
            return Err(corrupt(path, "column file", "no nulls", "nulls"));
        }
        if let Some(name) = names.iter().flatten().find(|name| !is_collectable(name)) {
            let known: Vec<_> = directories().map(|directory| format!("{directory}/")).collect();
            let expected = format!("names of files in {}", known.join(", "));
            return Err(corrupt(path, "column file", &expected, &format!("{name:?}")));
        }
        files.extend(names.iter().flatten().map(str::to_owned));
    }
    Ok(files)
}

impl Repository {
    /// The files an announced collection names.
    pub(crate) async fn read_collection_list(
        &self,
        list: &CollectionList,
    ) -> Result<HashSet<String>> {
        let path = format!("{LISTS}/{}", list.file);
        let bytes = self.inner.store.backend().get(&path).await?.bytes;
        check_file(&path, &bytes, None, Some(list.crc32c))?;
        parse(&path, &self.inner.dataset_id, &bytes)
    }
}
