//! A table as one Parquet file, for programs that know nothing of repositories.

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use chunkyard_store::Result;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::{KeyRange, Table};
use crate::parquet_file::{self, FileWriter};

/// Rows of a row group: what programs that read such files in parallel like.
const GROUP_ROWS: usize = 1 << 17;

/// A file in the making.
struct Export {
    rows: BoxStream<'static, Result<RecordBatch>>,
    /// `None` when it has ended.
    writer: Option<FileWriter>,
}

impl Table {
    /// The rows of a range as one Parquet file, in the order of the key and with the session's changes: its bytes,
    /// piece by piece. Memory holds one row group. Of the columns only `projection`, if it is given.
    pub fn parquet(
        &self,
        range: &KeyRange,
        projection: Option<&[&str]>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let rows = self.scan(range, projection)?;
        let writer = FileWriter::with_arrow_schema(self.projected(projection), properties())?;
        let export = Export { rows, writer: Some(writer) };
        Ok(stream::try_unfold(export, |mut export| async move {
            let Some(mut writer) = export.writer.take() else { return Ok(None) };
            while let Some(batch) = export.rows.try_next().await? {
                writer.write(&batch)?;
                let piece = writer.take()?;
                if !piece.is_empty() {
                    export.writer = Some(writer);
                    return Ok(Some((piece, export)));
                }
            }
            Ok(Some((writer.end()?, export)))
        })
        .boxed())
    }

    /// The columns of a scan.
    fn projected(&self, names: Option<&[&str]>) -> SchemaRef {
        let Some(names) = names else { return self.schema().clone() };
        let fields = names.iter().filter_map(|name| self.schema().field_with_name(name).ok());
        Schema::new(fields.cloned().collect::<Vec<_>>()).into()
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(parquet_file::writer_name())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build()
}
