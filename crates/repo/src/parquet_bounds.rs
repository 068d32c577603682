//! Footers that lie: the sizes and places in a footer are checked before they are used.
//!
//! The Parquet library believes most of it. A negative length makes it panic, outside the guarded
//! calls; a count of 2^60 rows makes it ask for memory that no system has, which is not an error
//! but the end of the process.

use chunkyard_store::{Error, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::parquet_file::corrupt;
use super::thrift;

/// More rows than this per byte of a file are not believed. Rows differ at least in a coordinate, a
/// path or a name, and our own writer starts a page, with a header of dozens of bytes for each
/// column, every 1,024 rows.
const ROWS_PER_BYTE_MAX: u64 = 64;

/// This many rows are believed of any file.
const ROWS_MIN: u64 = 1 << 16;

/// Checks that the library reads a footer in the time its bytes take. `end` is the end of a file.
pub(super) fn check_footer(file: &str, end: &[u8]) -> Result<()> {
    // The metadata, its length, and the four letters of Parquet.
    let found = end.split_last_chunk::<8>().and_then(|(rest, [a, b, c, d, ..])| {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        rest.get(rest.len().checked_sub(length)?..)
    });
    match found.is_some_and(thrift::has_booleans) {
        true => Err(corrupt(file, "footer", "no list of booleans", "one")),
        false => Ok(()),
    }
}

/// Checks the same of the header of the page at a place.
pub(super) fn check_header(file: &str, start: u64, header: &[u8]) -> Result<()> {
    match thrift::has_booleans(header) {
        true => {
            let what = format!("page header at {start}");
            Err(corrupt(file, &what, "no list of booleans", "one"))
        }
        false => Ok(()),
    }
}

/// Checks the counts and places in the footer of a file whose data ends at `data_len`.
pub(super) fn check(file: &str, metadata: &ParquetMetaData, data_len: u64) -> Result<()> {
    let rows_max = data_len.saturating_mul(ROWS_PER_BYTE_MAX).max(ROWS_MIN);
    let mut total = 0u64;
    for group in metadata.row_groups() {
        let rows = count(file, "number of rows", group.num_rows())?;
        total = total.saturating_add(rows);
        if total > rows_max {
            let expected = format!("at most {rows_max} in {data_len} bytes");
            return Err(corrupt(file, "number of rows", &expected, &total.to_string()));
        }
        for column in group.columns() {
            check_column(file, column, data_len)?;
        }
    }
    Ok(())
}

/// Checks the lists of pages before they are parsed: the library makes room for as many pages as
/// the first bytes of a list promise. `end` is the end of a file of `size` bytes.
pub(super) fn check_index(
    file: &str,
    metadata: &ParquetMetaData,
    end: &[u8],
    size: u64,
) -> Result<()> {
    let end_start = size.saturating_sub(end.len() as u64);
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let (Some(offset), Some(length)) =
            (column.offset_index_offset(), column.offset_index_length())
        else {
            continue;
        };
        check_place(file, "page index", offset, length.into(), size)?;
        // A list outside these bytes is not parsed either.
        let list = (offset as u64)
            .checked_sub(end_start)
            .and_then(|start| end.get(start as usize..)?.get(..length as usize));
        if let Some(pages) = list.and_then(promised_pages)
            && pages > length as u64
        {
            let expected = format!("at most {length} pages in {length} bytes");
            return Err(corrupt(file, "page index", &expected, &pages.to_string()));
        }
    }
    Ok(())
}

/// How many elements the list at the start of an offset index claims. Thrift compact protocol: a
/// field header, then four bits of size, where 15 stands for a number that follows.
fn promised_pages(index: &[u8]) -> Option<u64> {
    let (_field, rest) = index.split_first()?;
    let (header, rest) = rest.split_first()?;
    match header >> 4 {
        15 => {
            let digits = rest.iter().take(10).enumerate();
            let mut size = 0u64;
            for (at, byte) in digits {
                size |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
                if byte & 0x80 == 0 {
                    return Some(size);
                }
            }
            None
        }
        few => Some(few.into()),
    }
}

fn check_column(file: &str, column: &ColumnChunkMetaData, data_len: u64) -> Result<()> {
    count(file, "number of values", column.num_values())?;
    count(file, "uncompressed size", column.uncompressed_size())?;
    check_place(file, "data pages", column.data_page_offset(), 0, data_len)?;
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    check_place(file, "column", start, column.compressed_size(), data_len)
}

/// Checks where the pages are, and which rows they hold.
pub(super) fn check_pages(file: &str, metadata: &ParquetMetaData, data_len: u64) -> Result<()> {
    for (at, group) in metadata.row_groups().iter().enumerate() {
        let pages = metadata.page_index_for_row_group(at);
        let indexes = (0..group.columns().len()).filter_map(|leaf| pages.offset_index(leaf));
        for index in indexes {
            let mut last = 0;
            for page in index.page_locations() {
                check_place(file, "page", page.offset, page.compressed_page_size.into(), data_len)?;
                let first = page.first_row_index;
                if !(last..=group.num_rows()).contains(&first) {
                    let expected = format!("from {last} to {}", group.num_rows());
                    let what = "first row of a page";
                    return Err(corrupt(file, what, &expected, &first.to_string()));
                }
                last = first;
            }
        }
    }
    Ok(())
}

fn check_place(file: &str, what: &str, start: i64, length: i64, data_len: u64) -> Result<()> {
    let end = count(file, what, start)?.saturating_add(count(file, what, length)?);
    if end <= data_len {
        return Ok(());
    }
    let expected = format!("a place within {data_len} bytes");
    Err(corrupt(file, what, &expected, &format!("{length} bytes at {start}")))
}

fn count(file: &str, what: &str, number: i64) -> Result<u64> {
    let negative = |_| -> Error { corrupt(file, what, "no negative number", &number.to_string()) };
    u64::try_from(number).map_err(negative)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

    use super::*;
    use crate::maintain::collection_list;

    fn file() -> (Bytes, ParquetMetaData) {
        let bytes = collection_list::render(&["c/x".into(), "i/y".into()], "d", 0).unwrap().bytes;
        let mut reader =
            ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        reader.try_parse(&bytes).unwrap();
        (bytes, reader.finish().unwrap())
    }

    /// The same footer with its one row group changed.
    fn with(
        metadata: &ParquetMetaData,
        change: impl FnOnce(RowGroupMetaData) -> RowGroupMetaData,
    ) -> ParquetMetaData {
        let group = change(metadata.row_group(0).clone());
        metadata.clone().into_builder().set_row_groups(vec![group]).build()
    }

    fn with_column(
        metadata: &ParquetMetaData,
        change: impl FnOnce(ColumnChunkMetaData) -> ColumnChunkMetaData,
    ) -> ParquetMetaData {
        with(metadata, |group| {
            let column = change(group.column(0).clone());
            group.into_builder().set_column_metadata(vec![column]).build().unwrap()
        })
    }

    #[test]
    fn a_sound_footer_passes() {
        let (bytes, metadata) = file();
        let size = bytes.len() as u64;
        check("f", &metadata, size).unwrap();
        check_index("f", &metadata, &bytes, size).unwrap();
        check_pages("f", &metadata, size).unwrap();
    }

    #[test]
    fn rows_that_no_memory_could_hold_are_refused() {
        let (bytes, metadata) = file();
        for rows in [-1, 1 << 40, i64::MAX] {
            let group =
                |group: RowGroupMetaData| group.into_builder().set_num_rows(rows).build().unwrap();
            assert!(check("f", &with(&metadata, group), bytes.len() as u64).is_err(), "{rows}");
        }
    }

    #[test]
    fn columns_that_begin_or_end_outside_the_file_are_refused() {
        let (bytes, metadata) = file();
        for place in [-1, bytes.len() as i64 + 1, i64::MAX] {
            let moved = with_column(&metadata, |column| {
                column.into_builder().set_data_page_offset(place).build().unwrap()
            });
            assert!(check("f", &moved, bytes.len() as u64).is_err(), "{place}");
            let grown = with_column(&metadata, |column| {
                column.into_builder().set_total_compressed_size(place).build().unwrap()
            });
            assert!(check("f", &grown, bytes.len() as u64).is_err(), "{place}");
        }
        assert!(check("f", &metadata, 8).is_err(), "pages after the end of the data");
        assert!(check_pages("f", &metadata, 8).is_err(), "pages after the end of the data");
    }

    #[test]
    fn an_index_of_two_billion_pages_in_ten_bytes_is_refused_before_it_is_parsed() {
        assert_eq!(promised_pages(&[0x19, 0x2c, 0]), Some(2));
        assert_eq!(
            promised_pages(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]),
            Some((1 << 31) - 1)
        );
        assert_eq!(promised_pages(&[0x19]), None);
        let (bytes, metadata) = file();
        let at = metadata.row_group(0).column(0).offset_index_offset().unwrap() as usize;
        let mut forged = bytes.to_vec();
        forged[at + 1..at + 7].copy_from_slice(&[0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
        assert!(check_index("f", &metadata, &forged, bytes.len() as u64).is_err());
        assert!(collection_list::parse("f", "d", &forged.into()).is_err());
    }
}
