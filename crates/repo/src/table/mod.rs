//! Tables: rows with a key, versioned like everything else in a repository.
//!
//! A table is a list of sorted runs (`run`), each a Parquet file with the table's own columns. A commit
//! appends a run of the rows that it sets and deletes; the newest run that knows a key decides. `spec`
//! says what a table is, `key` how keys sort, `block` holds rows, `rows` decodes them, `write` lays them
//! out, `scan` and `get` read, `export` hands it to other programs.

mod block;
mod diff;
mod export;
mod gather;
mod get;
mod key;
mod rows;
mod scan;
mod spec;
mod write;

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use chunkyard_store::{Error, Noun, Result, Uid};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

pub use self::diff::{RowChanges, RowCounts};
pub use self::key::{KeyPart, KeyRange};
pub use self::spec::TableSpec;

pub(super) use self::block::{Block, filler, take_columns};
pub(super) use self::diff::RowDiff;
pub(super) use self::get::{lookup, same_row};
pub(super) use self::key::{KeyColumn, show};
pub(super) use self::rows::{TableFiles, TableRows};
pub(super) use self::scan::{Layers, Merged, Walk};
pub(super) use self::write::{RunLabel, RunWriter, RunWritten, level, properties};

use self::block::batch_of;
use super::node::Node;
use super::session::Session;

/// Rows of a table that answer a question by key.
#[derive(Debug, Clone)]
pub struct Found {
    /// For each key asked for, whether there is a row.
    pub found: BooleanArray,
    /// The rows, aligned to the keys asked for: all columns of the table, null where there is no row.
    pub rows: RecordBatch,
}

/// How large a table is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Rows, at most: a row that several runs hold counts several times, until they are merged.
    pub rows_max: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Runs, the session's own included.
    pub runs: u64,
}

/// A table of a session, for reading and writing rows.
#[derive(Debug, Clone)]
pub struct Table {
    session: Arc<Session>,
    uid: Uid,
    path: String,
    spec: Arc<TableSpec>,
}

impl Table {
    pub(super) fn open(session: Arc<Session>, node: &Node) -> Result<Self> {
        let spec = node.table()?.clone();
        Ok(Self { session, uid: node.uid, path: node.path.clone(), spec })
    }

    /// Its columns and its key.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.spec.schema()
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets rows. They may come in any order; of rows with one key the last counts. Columns are found by
    /// name, and a nullable one may be missing.
    pub async fn upsert(&self, rows: RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        check_count(rows.num_rows())?;
        let columns = take_columns(self.schema(), &rows)?;
        let block = Block::sorted(&self.spec, columns, false)?;
        self.session.change_table(self.uid, &self.path, block).await
    }

    /// Deletes the rows with these keys, if there are any.
    pub async fn delete(&self, keys: RecordBatch) -> Result<()> {
        if keys.num_rows() == 0 {
            return Ok(());
        }
        check_count(keys.num_rows())?;
        let mut columns = take_columns(&self.spec.key_schema(), &keys)?;
        let values = self.schema().fields().iter().skip(self.spec.key());
        columns.extend(values.map(|field| filler(field, keys.num_rows())));
        let block = Block::sorted(&self.spec, columns, true)?;
        self.session.change_table(self.uid, &self.path, block).await
    }

    /// Deletes the rows in a range, which are looked for first. Returns how many there were.
    pub async fn delete_range(&self, range: &KeyRange) -> Result<u64> {
        let names: Vec<String> =
            self.spec.key_schema().fields().iter().map(|field| field.name().clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut found = self.scan(range, Some(&names))?;
        let mut count = 0;
        while let Some(keys) = found.next().await {
            let keys = keys?;
            count += keys.num_rows() as u64;
            self.delete(keys).await?;
        }
        Ok(count)
    }

    /// The rows with these keys.
    pub async fn get(&self, keys: RecordBatch) -> Result<Found> {
        let key_schema = self.spec.key_schema();
        let columns = take_columns(&key_schema, &keys)?;
        let encoded = KeyColumn::encode(&columns);
        let layers = self.session.table_layers(&self.uid, &self.path)?;
        let kind = TableRows::new(self.spec.clone());
        let hits = lookup(self.session.repository().tables(), &kind, &layers, &encoded).await;
        let hits = match hits {
            Ok(hits) => hits,
            Err(error) => return Err(self.session.explain(error).await),
        };
        // Keys as they were asked for, whether there is a row or not.
        let values = hits.columns.into_iter().skip(self.spec.key());
        let columns = columns.into_iter().chain(values).collect();
        let rows = batch_of(&nullable(&self.spec), columns, keys.num_rows())?;
        Ok(Found { found: hits.found.into(), rows })
    }

    /// The rows in a range in the order of the key, the session's own changes on top. Of the columns only
    /// `projection`, in its order, if it is given. Later changes of the session are not seen.
    pub fn scan(
        &self,
        range: &KeyRange,
        projection: Option<&[&str]>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let bounds = range.encode(&self.spec.key_schema())?;
        let (kind, picked) = self.project(projection)?;
        let layers = self.session.table_layers(&self.uid, &self.path)?;
        let walk = Walk::new(self.session.repository().tables(), kind, &layers, bounds.keys());
        let fields: Vec<_> =
            picked.iter().map(|(field, _)| self.schema().fields()[*field].clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        let session = self.session.clone();
        let step = move |mut walk: Walk| {
            let (schema, session, picked) = (schema.clone(), session.clone(), picked.clone());
            async move {
                match walk.next().await {
                    Ok(None) => Ok(None),
                    Ok(Some(Merged { columns, rows, .. })) => {
                        let columns = picked.iter().map(|(_, at)| columns[*at].clone()).collect();
                        Ok(Some((batch_of(&schema, columns, rows)?, walk)))
                    }
                    Err(error) => Err(session.explain(error).await),
                }
            }
        };
        Ok(stream::try_unfold(walk, step).boxed())
    }

    /// The columns to decode, and of each wanted column its number and its place among them.
    fn project(&self, names: Option<&[&str]>) -> Result<(TableRows, Vec<(usize, usize)>)> {
        let fields = self.schema().fields();
        let Some(names) = names else {
            let picked = (0..fields.len()).map(|at| (at, at)).collect();
            return Ok((TableRows::new(self.spec.clone()), picked));
        };
        let number = |name: &&str| {
            fields.iter().position(|field| field.name() == name).ok_or_else(|| Error::NotFound {
                what: Noun::Column,
                name: format!("{name} of {}", self.path),
            })
        };
        let numbers = names.iter().map(number).collect::<Result<Vec<usize>>>()?;
        let kind = TableRows::only(self.spec.clone(), &numbers);
        let place = |at: usize| kind.wanted().iter().position(|known| *known == at).unwrap_or(at);
        let picked = numbers.iter().map(|at| (*at, place(*at))).collect();
        Ok((kind, picked))
    }

    /// How many rows a range has. Reads the keys of all of them.
    pub async fn count(&self, range: &KeyRange) -> Result<u64> {
        let mut found = self.scan(range, Some(&[]))?;
        let mut count = 0;
        while let Some(rows) = found.next().await {
            count += rows?.num_rows() as u64;
        }
        Ok(count)
    }

    /// How large it is, the session's own changes included. Reads nothing.
    pub fn stats(&self) -> Result<TableStats> {
        self.session.table_stats(&self.uid, &self.path)
    }
}

/// The columns of a table where some rows are missing.
fn nullable(spec: &TableSpec) -> SchemaRef {
    let field = |field: &Arc<Field>| Field::new(field.name(), field.data_type().clone(), true);
    Arc::new(Schema::new(spec.schema().fields().iter().map(field).collect::<Vec<_>>()))
}

/// Places of rows are 32-bit numbers.
fn check_count(rows: usize) -> Result<()> {
    match u32::try_from(rows) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Invalid {
            what: format!("a batch of {rows} rows; hand on at most 2^32 - 1 at once"),
        }),
    }
}
