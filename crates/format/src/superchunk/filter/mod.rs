//! Which rows fulfil a condition: comparisons of columns with values, all of which must hold.
//!
//! ```text
//!  x > 3 and name == 'abc' and `a column` <= 2.5        columns of a table by name
//!  value != 0                                           the rows of an array
//! ```
//!
//! Numbers are compared as numbers, exactly, whatever their types. Nothing compares with NaN or NaT, so only
//! `!=` holds for them. Dates are compared by the number they store.

mod compare;
mod parse;

use std::collections::BTreeMap;
use std::ops::Range;

use chunkyard_array::Region;
use chunkyard_store::{Error, Noun, Result};

use self::compare::hold;
use super::dtype::RowType;
use super::handle::Blz;
use super::model::Column;

/// The name of the rows where columns have no names.
const VALUE: &str = "value";

/// A condition on rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    terms: Vec<Term>,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    column: String,
    relation: Relation,
    value: Literal,
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    Equal,
    Unequal,
    AtLeast,
    Greater,
}

/// A value that columns are compared with.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Whole(i128),
    Real(f64),
    Text(String),
}

impl Filter {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self> {
        parse::parse(text)
    }
}

impl Blz {
    /// The rows of a range that fulfil a condition, in order.
    pub async fn matching(&self, filter: &Filter, rows: Range<u64>) -> Result<Vec<u64>> {
        let count = rows.end.saturating_sub(rows.start);
        let within = usize::try_from(count).ok().filter(|_| rows.end <= self.len());
        let within = within.ok_or_else(|| {
            Error::invalid(format!("rows {}:{} of {}", rows.start, rows.end, self.len()))
        })?;
        let mut kept = vec![true; within];
        let mut read = BTreeMap::new();
        for term in &filter.terms {
            let column = self.compared(&term.column)?;
            if !read.contains_key(&column.path) {
                let region = Region::new([rows.start], [count])?;
                let bytes = self.reader(&column.path)?.read_region(&region).await?;
                read.insert(column.path.clone(), bytes);
            }
            let Some(bytes) = read.get(&column.path) else { continue };
            hold(&mut kept, bytes, &column, term)?;
        }
        let found = (rows.start..).zip(&kept).filter(|(_, kept)| **kept);
        Ok(found.map(|(row, _)| row).collect())
    }

    /// How many rows of these columns take about `bytes` bytes, in whole chunks where that is possible.
    pub fn rows_of_bytes(&self, columns: &[Column], bytes: u64) -> u64 {
        let row_bytes: u64 = columns.iter().map(Column::row_bytes).sum();
        let chunklen = columns.iter().map(|column| column.chunklen).max().unwrap_or(1).max(1);
        let rows = (bytes / row_bytes.max(1)).max(1);
        if rows < chunklen { rows } else { rows - rows % chunklen }
    }

    /// The column that a comparison names.
    fn compared(&self, name: &str) -> Result<Column> {
        let column = match self.is_table() {
            true => self.column(&super::names::field_path(name))?,
            false if name == VALUE => self.column("/")?,
            false => {
                return Err(Error::NotFound {
                    what: Noun::Column,
                    name: format!(
                        "{name}: columns have no names here; its rows are called {VALUE}"
                    ),
                });
            }
        };
        match (&column.row, column.row_shape.is_empty()) {
            (RowType::Plain { .. }, true) => Ok(column),
            _ => Err(Error::unsupported(format!(
                "comparing {name}, whose rows have more than one value"
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
