//! Where the values of columns lie in the rows of a file.

use bytes::Bytes;
use chunkyard_array::{Buffer, ByteOrder};
use chunkyard_engine::format::superchunk::Column;
use chunkyard_engine::format::superchunk::dtype::{Field, RowType, item_bytes, render};
use chunkyard_engine::{Error, Result};

use super::{names_of, title_of};
use crate::npy::{swap_bytes, swap_unit};

/// How a row of a file holds the values of columns.
#[derive(Debug, Clone)]
pub(crate) struct RowLayout {
    row_bytes: usize,
    /// One for each column.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: usize,
    bytes: usize,
    /// Bytes that the file holds in another order; 1 if none.
    swap: usize,
}

impl RowLayout {
    /// Rows of a type and shape, for these columns. Refuses a type or shape that is not exactly theirs.
    pub(crate) fn new(
        row: &RowType,
        row_shape: &[u64],
        columns: &[Column],
        file: &str,
    ) -> Result<Self> {
        let row_bytes = bytes_of(row, row_shape)?;
        let mut pieces = Vec::new();
        let mut used = 0;
        for column in columns {
            let names = names_of(column);
            let (offset, kind, shape) = find(row, row_shape, &names).ok_or_else(|| {
                let title = names.join("/");
                Error::invalid(format!("{file} has no field {title:?}, which is a column"))
            })?;
            if !alike(kind, &column.row) || shape != column.row_shape {
                return Err(Error::invalid(format!(
                    "{}: the column has type {} and shape {:?}, {file} has {} and {shape:?}",
                    title_of(column),
                    render(&column.row)?,
                    column.row_shape,
                    render(kind)?,
                )));
            }
            let bytes = bytes_of(kind, shape)?;
            used += bytes;
            pieces.push(Piece { offset: size(offset)?, bytes, swap: swap_of(kind) });
        }
        if used < row_bytes {
            let columns: Vec<_> = columns.iter().map(title_of).collect();
            return Err(Error::invalid(format!(
                "{file} has more fields than there are columns ({})",
                columns.join(", ")
            )));
        }
        Ok(Self { row_bytes, pieces })
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Splits whole rows into the elements of each column, little-endian.
    pub(crate) fn split(&self, rows: Vec<u8>) -> Vec<Bytes> {
        if let [Piece { bytes, swap, .. }] = self.pieces.as_slice()
            && *bytes == self.row_bytes
        {
            let mut rows = rows;
            swap_bytes(&mut rows, *swap);
            return vec![rows.into()];
        }
        let count = rows.len() / self.row_bytes.max(1);
        let columns = self.pieces.iter().map(|piece| {
            let mut column = Vec::with_capacity(count * piece.bytes);
            for row in rows.chunks_exact(self.row_bytes.max(1)) {
                let part = row.get(piece.offset..piece.offset + piece.bytes);
                column.extend_from_slice(part.unwrap_or_default());
            }
            swap_bytes(&mut column, piece.swap);
            column.into()
        });
        columns.collect()
    }

    /// Builds rows from the elements of each column.
    pub(crate) fn join(&self, columns: &[Buffer], count: usize) -> Vec<u8> {
        let mut rows = vec![0; count * self.row_bytes];
        for (piece, column) in self.pieces.iter().zip(columns) {
            let parts = column.chunks_exact(piece.bytes.max(1));
            for (row, part) in rows.chunks_exact_mut(self.row_bytes.max(1)).zip(parts) {
                if let Some(place) = row.get_mut(piece.offset..piece.offset + piece.bytes) {
                    place.copy_from_slice(part);
                }
            }
        }
        rows
    }
}

/// The type of a row of these columns, little-endian: fields nested as their names are. The shape of a
/// row goes with the one column that has no name.
pub(crate) fn row_type(columns: &[Column]) -> (RowType, Vec<u64>) {
    if let [only] = columns
        && names_of(only).is_empty()
    {
        return (little(&only.row), only.row_shape.clone());
    }
    let mut fields = Vec::new();
    for column in columns {
        add(&mut fields, &names_of(column), column);
    }
    (RowType::Struct(fields), Vec::new())
}

fn add(fields: &mut Vec<Field>, names: &[String], column: &Column) {
    let Some((name, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        let (kind, shape) = (little(&column.row), column.row_shape.clone());
        fields.push(Field { name: name.clone(), kind, shape });
        return;
    }
    let known = fields.iter_mut().find(|field| field.name == *name);
    if let Some(Field { kind: RowType::Struct(inner), .. }) = known {
        add(inner, rest, column);
        return;
    }
    let mut inner = Vec::new();
    add(&mut inner, rest, column);
    fields.push(Field { name: name.clone(), kind: RowType::Struct(inner), shape: Vec::new() });
}

/// The type in little-endian order. A struct whose values lie together counts as bytes, and stays.
pub(super) fn little(row: &RowType) -> RowType {
    match row {
        RowType::Plain { dtype, .. } => {
            RowType::Plain { dtype: dtype.clone(), order: ByteOrder::Little }
        }
        RowType::Struct(_) => row.clone(),
    }
}

/// Where a column lies in a row, and its type there.
fn find<'a>(
    row: &'a RowType,
    shape: &'a [u64],
    names: &[String],
) -> Option<(u64, &'a RowType, &'a [u64])> {
    let Some((name, rest)) = names.split_first() else { return Some((0, row, shape)) };
    let RowType::Struct(fields) = row else { return None };
    let mut offset = 0;
    for field in fields {
        if field.name == *name {
            let (inner, kind, shape) = find(&field.kind, &field.shape, rest)?;
            return Some((offset + inner, kind, shape));
        }
        let items: u64 = field.shape.iter().product();
        offset += item_bytes(&field.kind) * items;
    }
    None
}

/// Whether two types differ only in byte order.
fn alike(a: &RowType, b: &RowType) -> bool {
    match (a, b) {
        (RowType::Plain { dtype: a, .. }, RowType::Plain { dtype: b, .. }) => {
            a.to_numpy() == b.to_numpy()
        }
        _ => a == b,
    }
}

fn swap_of(kind: &RowType) -> usize {
    match kind {
        RowType::Plain { dtype, order: ByteOrder::Big } => {
            let numpy = dtype.to_numpy().unwrap_or_default();
            swap_unit(&numpy, dtype.item_size().unwrap_or(1))
        }
        _ => 1,
    }
}

fn bytes_of(kind: &RowType, shape: &[u64]) -> Result<usize> {
    size(shape.iter().fold(item_bytes(kind), |bytes, extent| bytes.saturating_mul(*extent)))
}

fn size(bytes: u64) -> Result<usize> {
    let most = i32::MAX as u64;
    usize::try_from(bytes)
        .ok()
        .filter(|_| bytes <= most)
        .ok_or_else(|| Error::unsupported(format!("rows of {bytes} bytes; {most} are")))
}
