//! Rows of a file, block by block.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use chunkyard_array::numpy::npy::{Header, MAGIC};
use chunkyard_engine::format::superchunk::Column;
use chunkyard_engine::format::superchunk::dtype::{self, RowType};
use chunkyard_engine::{Error, Noun, Result};

use super::cell::Cells;
use super::csv::Records;
use super::layout::RowLayout;
use super::row_type;
use crate::npy::{self, read_text};

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileKind {
    /// NumPy's .npy
    Npy,
    /// Comma-separated values, the first line names the columns
    Csv,
    /// The same with tabs
    Tsv,
    /// Rows as they lie in memory, little-endian, without gaps
    Raw,
}

impl FileKind {
    /// By the ending of a name.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "npy" => Some(Self::Npy),
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "bin" | "raw" => Some(Self::Raw),
            _ => None,
        }
    }
}

/// An open file of a known kind.
pub(crate) struct Input {
    name: String,
    kind: FileKind,
    source: Box<dyn Read + Send>,
    /// The header of a `.npy` file: the type of a row, its shape, and how many there are.
    header: Option<(RowType, Vec<u64>, u64)>,
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, kind: Option<FileKind>) -> Result<Self> {
        let (name, source): (String, Box<dyn Read + Send>) = match path.to_str() {
            Some("-") => ("standard input".to_owned(), Box::new(io::stdin())),
            _ => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => {
                        Error::NotFound { what: Noun::File, name: name.clone() }
                    }
                    _ => Error::store("open", &name, error),
                })?;
                if file.metadata().is_ok_and(|found| found.is_dir()) {
                    return Err(Error::invalid(format!(
                        "{name} is a directory, not a file of rows"
                    )));
                }
                (name, Box::new(file))
            }
        };
        Self::new(name, source, kind.or_else(|| FileKind::of_name(path)))
    }

    /// The kind by the first bytes, if neither the name nor the user tells.
    fn new(name: String, mut source: Box<dyn Read + Send>, kind: Option<FileKind>) -> Result<Self> {
        let kind = match kind {
            Some(kind) => kind,
            None => {
                let mut start = Vec::new();
                let looked = source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start);
                looked.map_err(|error| Error::store("read", &name, error))?;
                let is_npy = start == MAGIC;
                source = Box::new(Cursor::new(start).chain(source));
                if is_npy { FileKind::Npy } else { FileKind::Raw }
            }
        };
        let header = match kind {
            FileKind::Npy => {
                let (text, _) = read_text(&name, &mut source)?;
                Some(header_of(&npy::parse(&text, &name)?, &name)?)
            }
            _ => None,
        };
        Ok(Self { name, kind, source, header })
    }

    /// The type and shape of a row, if the file tells.
    pub(crate) fn row(&self) -> Option<(&RowType, &[u64])> {
        self.header.as_ref().map(|(row, shape, _)| (row, shape.as_slice()))
    }

    /// How many rows it has, if the file tells.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.header.as_ref().map(|(_, _, rows)| *rows)
    }

    /// Its rows, for these columns.
    pub(crate) fn blocks(self, columns: &[Column]) -> Result<Blocks> {
        let Self { name, kind, source, header } = self;
        let (row, row_shape, left) = match (kind, header) {
            (FileKind::Csv | FileKind::Tsv, _) => {
                let delimiter = if kind == FileKind::Csv { b',' } else { b'\t' };
                let records = Records::new(&name, Box::new(BufReader::new(source)), delimiter);
                return Ok(Blocks::Text(Box::new(Text::new(records, columns)?)));
            }
            (_, Some((row, shape, rows))) => (row, shape, Some(rows)),
            (_, None) => {
                let (row, shape) = row_type(columns);
                (row, shape, None)
            }
        };
        let layout = RowLayout::new(&row, &row_shape, columns, &name)?;
        Ok(Blocks::Plain { name, source, layout, left })
    }
}

fn header_of(found: &Header, name: &str) -> Result<(RowType, Vec<u64>, u64)> {
    let row = dtype::bounded(found.row()?)?;
    let Some((rows, shape)) = found.shape.split_first() else {
        return Err(Error::invalid(format!("{name} has one element and no rows")));
    };
    if found.fortran && !shape.is_empty() {
        return Err(Error::unsupported(format!(
            "{name}: rows of an array in Fortran order lie apart; save it with \
             numpy.ascontiguousarray"
        )));
    }
    Ok((row, shape.to_vec(), *rows))
}

/// The remaining rows of a file.
pub(crate) enum Blocks {
    /// Rows of equal length, one after another.
    Plain {
        /// The file, for messages.
        name: String,
        /// Where they come from.
        source: Box<dyn Read + Send>,
        /// The values in each row.
        layout: RowLayout,
        /// Rows that remain; `None` means until the end.
        left: Option<u64>,
    },
    /// Records of text.
    Text(Box<Text>),
}

impl Blocks {
    /// The next rows, up to a limit: the elements of each column. `None` at the end.
    pub(crate) fn next(&mut self, rows: u64) -> Result<Option<Vec<Bytes>>> {
        let (name, source, layout, left) = match self {
            Self::Text(text) => return text.next(rows),
            Self::Plain { name, source, layout, left } => (name, source, layout, left),
        };
        let wanted = left.unwrap_or(u64::MAX).min(rows);
        let row_bytes = layout.row_bytes() as u64;
        let mut bytes = Vec::new();
        let read = source.take(wanted.saturating_mul(row_bytes)).read_to_end(&mut bytes);
        let read = read.map_err(|error| Error::store("read", name.as_str(), error))? as u64;
        let cut = match left {
            Some(_) => read < wanted * row_bytes,
            None => !read.is_multiple_of(row_bytes),
        };
        if cut {
            let expected = match left {
                Some(left) => format!("{} bytes of {left} more rows", *left * row_bytes),
                None => format!("whole rows of {row_bytes} bytes"),
            };
            return Err(Error::Corrupt {
                file: name.clone(),
                what: "its length".into(),
                expected,
                found: format!("{read} bytes; it is truncated"),
            });
        }
        if let Some(left) = left {
            *left -= wanted;
        }
        Ok((read > 0).then(|| layout.split(bytes)))
    }
}

/// Rows as text.
pub(crate) struct Text {
    records: Records,
    columns: Vec<Cells>,
    /// For each column, the fields of a record that are its cells.
    places: Vec<Vec<usize>>,
    width: usize,
}

impl Text {
    fn new(mut records: Records, columns: &[Column]) -> Result<Self> {
        let columns: Vec<Cells> = columns.iter().map(Cells::new).collect::<Result<_>>()?;
        let titles = records.next()?.unwrap_or_default();
        let titles: Vec<&str> = titles.iter().map(|title| title.trim()).collect();
        let mut places = Vec::new();
        for cells in &columns {
            let found = cells.titles.iter().map(|title| {
                titles.iter().position(|found| found == title).ok_or_else(|| {
                    Error::invalid(format!(
                        "{}: there is no column {title:?} among {titles:?}",
                        records.place()
                    ))
                })
            });
            places.push(found.collect::<Result<Vec<_>>>()?);
        }
        let known: usize = places.iter().map(Vec::len).sum();
        if known < titles.len() {
            let unknown = titles.iter().enumerate();
            let unknown: Vec<_> = unknown
                .filter(|(at, _)| !places.iter().flatten().any(|place| place == at))
                .map(|(_, title)| *title)
                .collect();
            return Err(Error::invalid(format!(
                "{}: the dataset has no column {unknown:?}",
                records.place()
            )));
        }
        Ok(Self { records, columns, places, width: titles.len() })
    }

    fn next(&mut self, rows: u64) -> Result<Option<Vec<Bytes>>> {
        let mut found = vec![Vec::new(); self.columns.len()];
        let mut count = 0;
        while count < rows {
            let Some(record) = self.records.next()? else { break };
            if record.len() != self.width {
                return Err(Error::invalid(format!(
                    "{}: {} fields, where the first line has {}",
                    self.records.place(),
                    record.len(),
                    self.width
                )));
            }
            for ((cells, places), out) in self.columns.iter().zip(&self.places).zip(&mut found) {
                for (place, title) in places.iter().zip(&cells.titles) {
                    let text = record.get(*place).map_or("", String::as_str);
                    cells.parse(text, out).ok_or_else(|| {
                        Error::invalid(format!(
                            "{}: {text:?} is no value of the column {title:?}",
                            self.records.place()
                        ))
                    })?;
                }
            }
            count += 1;
        }
        Ok((count > 0).then(|| found.into_iter().map(Bytes::from).collect()))
    }
}
