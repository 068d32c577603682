//! Writes a single Bloscpack file: one array, as the tool packs a NumPy array.
//!
//! ```text
//!  packs ─▶ superchunks of a temporary BLZ array ─▶ one temporary file, chunks as they are ─▶ rename
//! ```
//!
//! So packs may come in any order, from any worker, and again after a crash, and still the chunks of the file
//! lie in order, because its reader walks them. Everything is in a temporary directory until the rename.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::numpy;
use chunkyard_store::{Error, Result, Store};
use serde_json::{Value, json};

use super::FileSpec;
use super::source::MAGIC;
use crate::staging::Marks;
use crate::superchunk::committed::View;
use crate::superchunk::convert::pack_writer::OpenFile;
use crate::superchunk::convert::sink::BlzSink;
use crate::superchunk::handle::{Blz, BlzOptions};
use crate::superchunk::model::Column;
use crate::superchunk::write::append::chunk_len;
use crate::{
    CreateOptions, Dataset, Node, Pack, PackSink, PackWriter, Place, Published, Receipt, Sink,
    Source, Ticket,
};

/// How a Bloscpack file is recognized.
const MARKS: Marks =
    Marks { format: "Bloscpack file", known: &[], complete: &[], file: Some(MAGIC) };
/// The temporary name of the file.
const FILE: &str = "file.blp";

/// Whether the name of a place asks for a single file.
pub(crate) fn is_bloscpack_name(place: &Place) -> bool {
    place.url().ends_with(".blp")
}

/// A Bloscpack file being written.
#[derive(Debug)]
pub struct BloscpackSink {
    parts: BlzSink,
}

impl BloscpackSink {
    /// Begins to write a file at a place. The dataset must be one array.
    pub async fn create(place: &Place, dataset: &Dataset, options: CreateOptions) -> Result<Self> {
        if !place.directory().renames() {
            return Err(Error::unsupported(format!(
                "writing {}: a Bloscpack file is written in a directory; copy it from there",
                place.url()
            )));
        }
        let Some(Node::Array(array)) = dataset.nodes.get("/") else {
            let arrays: Vec<&str> = dataset.arrays().map(|(path, _)| path).collect();
            return Err(Error::unsupported(format!(
                "a group as {}: a Bloscpack file is one array; name one of {}, or write a .blz",
                place.url(),
                arrays.join(", ")
            )));
        };
        if array.spec.shape().contains(&0) {
            let what = format!("an array without elements as a Bloscpack file, {}", place.url());
            return Err(Error::unsupported(what));
        }
        Ok(Self { parts: BlzSink::begin(place, dataset, options, MARKS).await? })
    }

    /// Joins the superchunks in one file, durable and under its temporary name.
    async fn assemble(&self) -> Result<()> {
        let data = &self.parts.staging.data;
        for member in &self.parts.draft.members {
            let found = member.directory();
            let blz = Blz::of_directory(data.clone(), found, &BlzOptions::default());
            let view = View::of(blz.shared.current.committed());
            let committed = &view.committed;
            let Some(column) = committed.columns.first() else { continue };
            let per_chunk = column.chunklen.max(1);
            let (full, count) = (view.len / per_chunk, view.len.div_ceil(per_chunk));
            let spec = file_spec(column, &committed.attributes, view.len)?;
            let mut file = OpenFile::begin(data, spec, FILE.to_owned(), count).await?;
            let mut chunk = 0;
            while chunk < count {
                let (index, _) = view.find_slot(0, chunk).await?;
                let of_file = column.superchunk.min(full.saturating_sub(chunk)).max(1);
                for bytes in committed.access.chunks_of(&index, of_file).await? {
                    file.add(bytes).await?;
                }
                chunk += of_file;
            }
            file.close(data).await?;
        }
        data.sync(&[FILE.to_owned()]).await
    }
}

/// The layout of the file.
fn file_spec(
    column: &Column,
    attributes: &chunkyard_array::Attributes,
    len: u64,
) -> Result<FileSpec> {
    let rows: Vec<u64> = [len].into_iter().chain(column.row_shape.iter().copied()).collect();
    let shape = if column.scalar { Vec::new() } else { rows };
    // The keys of `pack_ndarray_to_file`, and ours, which the tool ignores.
    let mut metadata = json!({
        "dtype": numpy::repr(&column.row)?,
        "shape": shape,
        "order": "C",
        "container": "numpy",
    });
    if !attributes.is_empty() {
        metadata["attributes"] = Value::Object(attributes.clone().into_iter().collect());
    }
    if let Some(names) = &column.dimension_names {
        metadata["dimension_names"] = json!(names);
    }
    // An only chunk may be shorter than the chunk length.
    let bytes = (chunk_len(column)? as u64).min(len.saturating_mul(column.row_bytes()));
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let count = len.div_ceil(column.chunklen.max(1));
    let spec = FileSpec::new(column.params_or_default().item, bytes, count);
    let metadata = Some(metadata.to_string().into_bytes());
    Ok(FileSpec { metadata, digest: column.digest, ..spec })
}

#[async_trait]
impl PackSink for BloscpackSink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.parts.open_pack(pack).await
    }

    fn held_bytes_max(&self) -> u64 {
        self.parts.held_bytes_max()
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.parts.sync(receipts).await
    }
}

#[async_trait]
impl Sink for BloscpackSink {
    async fn adopt(&self, pack: &Pack, receipt: &Receipt) -> Result<bool> {
        self.parts.adopt(pack, receipt).await
    }

    async fn ticket(&self) -> Result<Ticket> {
        self.parts.ticket().await
    }

    async fn accept(&self, pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        self.parts.accept(pack, receipt).await
    }

    fn journal(&self) -> &Store {
        self.parts.journal()
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        self.parts.written().await
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        self.assemble().await?;
        self.parts.staging.publish_file(FILE).await?;
        Ok(Published::default())
    }
}
