//! Bodies, supervoxels, the mapping, mutations, and what each mutation did to a supervoxel.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::Schema;
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{
    Bounds, Row, batch, column, i64s, list_column, lists, u64_column, u64_list, u64s, wrong,
};

const BOUNDS: [&str; 6] = ["z0", "y0", "x0", "z1", "y1", "x1"];

/// A body at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// Its id.
    pub body: u64,
    /// How many voxels it has.
    pub voxels: u64,
    /// How many supervoxels it has.
    pub supervoxels: u64,
    /// The box that it lies in.
    pub bounds: Bounds,
    /// The last mutation that changed it; 0 if none did.
    pub mutation: u64,
}

/// A supervoxel at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervoxel {
    /// Its id.
    pub supervoxel: u64,
    /// How many voxels it has; 0 if it is retired.
    pub voxels: u64,
    /// Its body; 0 if it is retired.
    pub body: u64,
    /// The box that it lies in; empty if it is retired.
    pub bounds: Bounds,
}

impl Supervoxel {
    /// One that was cut up.
    pub(crate) fn retired(supervoxel: u64) -> Self {
        Self { supervoxel, voxels: 0, body: 0, bounds: Bounds::EMPTY }
    }
}

/// What sort of edit a mutation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bodies became part of another.
    Merge,
    /// Supervoxels left a body and became one of their own.
    Cleave,
    /// A supervoxel was cut in two.
    SplitSupervoxel,
    /// Voxels of a body became another body.
    SplitBody,
    /// A body got another id.
    Renumber,
    /// Supervoxels were given to bodies.
    Map,
    /// An earlier mutation was undone.
    Revert,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Merge,
        Self::Cleave,
        Self::SplitSupervoxel,
        Self::SplitBody,
        Self::Renumber,
        Self::Map,
        Self::Revert,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Cleave => "cleave",
            Self::SplitSupervoxel => "split-supervoxel",
            Self::SplitBody => "split-body",
            Self::Renumber => "renumber",
            Self::Map => "map",
            Self::Revert => "revert",
        }
    }
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutation {
    /// Its id, unique in all branches; later ones are greater.
    pub mutation: u64,
    /// What it did.
    pub kind: Kind,
    /// The body that was edited: the one that stays, or is left. 0 where there is none.
    pub body: u64,
    /// The body that came of it, or the mutation that was undone. 0 where there is none.
    pub other: u64,
    /// All bodies that it touched, by id.
    pub bodies: Vec<u64>,
    /// All supervoxels that it touched, by id.
    pub supervoxels: Vec<u64>,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// By whom.
    pub user: String,
    /// Why.
    pub note: String,
}

/// A row of the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MappingRow {
    pub(crate) supervoxel: u64,
    pub(crate) body: u64,
}

/// What a mutation did to a supervoxel: the body before it and after it. 0 before it was made, and after it
/// was retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryRow {
    pub(crate) supervoxel: u64,
    pub(crate) mutation: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The supervoxel that it was cut from; 0 if it was not cut.
    pub(crate) origin: u64,
}

fn bounds_columns(bounds: impl Iterator<Item = Bounds> + Clone) -> impl Iterator<Item = ArrayRef> {
    (0..6).map(move |at| u64_column(bounds.clone().map(move |bounds| bounds.columns()[at])))
}

fn bounds_of(batch: &RecordBatch) -> Result<impl Fn(usize) -> Bounds + '_> {
    let columns = BOUNDS.map(|name| u64s(batch, name));
    let [a, b, c, d, e, f] = columns;
    let columns = [a?, b?, c?, d?, e?, f?];
    Ok(move |at: usize| Bounds::of_columns(columns.map(|column| column[at])))
}

impl Row for Body {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let mut columns = vec![
            u64_column(rows.iter().map(|row| row.body)),
            u64_column(rows.iter().map(|row| row.voxels)),
            u64_column(rows.iter().map(|row| row.supervoxels)),
        ];
        columns.extend(bounds_columns(rows.iter().map(|row| row.bounds)));
        columns.push(u64_column(rows.iter().map(|row| row.mutation)));
        batch(schema, columns)
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let (ids, voxels) = (u64s(batch, "body")?, u64s(batch, "voxels")?);
        let (supervoxels, mutations) = (u64s(batch, "supervoxels")?, u64s(batch, "mutation")?);
        let bounds = bounds_of(batch)?;
        let row = |(at, &body)| Self {
            body,
            voxels: voxels[at],
            supervoxels: supervoxels[at],
            bounds: bounds(at),
            mutation: mutations[at],
        };
        Ok(ids.iter().enumerate().map(row).collect())
    }
}

impl Row for Supervoxel {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let mut columns = vec![
            u64_column(rows.iter().map(|row| row.supervoxel)),
            u64_column(rows.iter().map(|row| row.voxels)),
            u64_column(rows.iter().map(|row| row.body)),
        ];
        columns.extend(bounds_columns(rows.iter().map(|row| row.bounds)));
        batch(schema, columns)
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let (ids, voxels) = (u64s(batch, "supervoxel")?, u64s(batch, "voxels")?);
        let bodies = u64s(batch, "body")?;
        let bounds = bounds_of(batch)?;
        let row = |(at, &supervoxel)| Self {
            supervoxel,
            voxels: voxels[at],
            body: bodies[at],
            bounds: bounds(at),
        };
        Ok(ids.iter().enumerate().map(row).collect())
    }
}

impl Row for MappingRow {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let ids = u64_column(rows.iter().map(|row| row.supervoxel));
        batch(schema, vec![ids, u64_column(rows.iter().map(|row| row.body))])
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let rows = u64s(batch, "supervoxel")?.iter().zip(u64s(batch, "body")?);
        Ok(rows.map(|(&supervoxel, &body)| Self { supervoxel, body }).collect())
    }
}

impl Row for HistoryRow {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let columns = vec![
            u64_column(rows.iter().map(|row| row.supervoxel)),
            u64_column(rows.iter().map(|row| row.mutation)),
            u64_column(rows.iter().map(|row| row.before)),
            u64_column(rows.iter().map(|row| row.after)),
            u64_column(rows.iter().map(|row| row.origin)),
        ];
        batch(schema, columns)
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let (ids, mutations) = (u64s(batch, "supervoxel")?, u64s(batch, "mutation")?);
        let (before, after) = (u64s(batch, "before")?, u64s(batch, "after")?);
        let origins = u64s(batch, "origin")?;
        let row = |(at, &supervoxel)| Self {
            supervoxel,
            mutation: mutations[at],
            before: before[at],
            after: after[at],
            origin: origins[at],
        };
        Ok(ids.iter().enumerate().map(row).collect())
    }
}

impl Row for Mutation {
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let text = |value: fn(&Self) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
        };
        let columns = vec![
            u64_column(rows.iter().map(|row| row.mutation)),
            text(|row| row.kind.name()),
            u64_column(rows.iter().map(|row| row.body)),
            u64_column(rows.iter().map(|row| row.other)),
            list_column::<UInt64Type>(rows.iter().map(|row| row.bodies.clone())),
            list_column::<UInt64Type>(rows.iter().map(|row| row.supervoxels.clone())),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.time_ms))),
            text(|row| &row.user),
            text(|row| &row.note),
        ];
        batch(schema, columns)
    }

    fn parse(batch: &RecordBatch) -> Result<Vec<Self>> {
        let (ids, bodies) = (u64s(batch, "mutation")?, u64s(batch, "body")?);
        let (others, times) = (u64s(batch, "other")?, i64s(batch, "time_ms")?);
        let (touched, supervoxels) = (lists(batch, "bodies")?, lists(batch, "supervoxels")?);
        let text = |name: &str| {
            let column = column(batch, name)?;
            let typed = column.as_string_opt::<i32>();
            typed.ok_or_else(|| wrong(name, &column.data_type().to_string()))
        };
        let (kinds, users, notes) = (text("kind")?, text("user")?, text("note")?);
        let mut rows = Vec::with_capacity(ids.len());
        for (at, &mutation) in ids.iter().enumerate() {
            let kind = kinds.value(at);
            let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
            rows.push(Self {
                mutation,
                kind: known.ok_or_else(|| {
                    Error::unsupported(format!("a mutation of the kind {kind:?}"))
                })?,
                body: bodies[at],
                other: others[at],
                bodies: u64_list(touched, at, "bodies")?,
                supervoxels: u64_list(supervoxels, at, "supervoxels")?,
                time_ms: times[at],
                user: users.value(at).to_owned(),
                note: notes.value(at).to_owned(),
            });
        }
        Ok(rows)
    }
}
