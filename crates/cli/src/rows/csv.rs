//! Comma-separated values (RFC 4180): records of fields, which may be quoted.

use std::io::{BufRead, Read};

use chunkyard_engine::{Error, Result};

/// A longer record is an error.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// Reads records.
pub(crate) struct Records {
    name: String,
    source: Box<dyn BufRead + Send>,
    delimiter: u8,
    /// Lines read so far.
    line: u64,
}

impl Records {
    pub(crate) fn new(name: &str, source: Box<dyn BufRead + Send>, delimiter: u8) -> Self {
        Self { name: name.to_owned(), source, delimiter, line: 0 }
    }

    /// Where the last record ended, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.name, self.line)
    }

    /// The fields of the next record; `None` at the end. Empty lines are skipped.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<String>>> {
        let mut record = Vec::new();
        let mut open = false;
        loop {
            let seen = record.len();
            let room = RECORD_BYTES_MAX - seen as u64;
            let read = self.source.by_ref().take(room).read_until(b'\n', &mut record);
            let read = read.map_err(|error| Error::store("read", &self.name, error))?;
            self.line += u64::from(record.last() == Some(&b'\n'));
            // Only the new line is looked at: a record may have a million.
            let quotes = record.iter().skip(seen).filter(|byte| **byte == b'"').count();
            open ^= quotes % 2 == 1;
            match (read, open) {
                (0, true) => {
                    let what = format!("{}: a quote that is not closed", self.place());
                    return Err(Error::invalid(what));
                }
                (0, false) if record.is_empty() => return Ok(None),
                (_, true) => {}
                (_, false) if record.trim_ascii().is_empty() => record.clear(),
                (_, false) => break,
            }
        }
        let text = String::from_utf8(record)
            .map_err(|_| Error::invalid(format!("{}: no UTF-8", self.place())))?;
        let text = text.trim_end_matches('\n').trim_end_matches('\r');
        Ok(Some(fields(text, char::from(self.delimiter))))
    }
}

/// The fields of a record, in which quotes are even.
fn fields(record: &str, delimiter: char) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = record.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            c if c == delimiter && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// A field as it is written: in quotes where it needs them.
pub(crate) fn quoted(field: &str, delimiter: char) -> String {
    let needs = |c: char| matches!(c, '"' | '\n' | '\r') || c == delimiter;
    match field.contains(needs) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Result<Vec<Vec<String>>> {
        let source = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        let mut records = Records::new("x.csv", source, b',');
        let mut all = Vec::new();
        while let Some(record) = records.next()? {
            all.push(record);
        }
        Ok(all)
    }

    #[test]
    fn quoted_fields_hold_anything() {
        let text = "a,b\r\n\r\n1,\"x, \"\"y\"\"\nz\"\n,";
        assert_eq!(records(text).unwrap(), [["a", "b"], ["1", "x, \"y\"\nz"], ["", ""]]);
        assert!(records("a\n\"b").is_err());
    }

    #[test]
    fn a_long_record_of_many_lines_is_read_in_one_go() {
        // A reader that looks at the whole record again after each line takes hours.
        let long = "1234567\n".repeat(1 << 20);
        let found = records(&format!("a,b\n\"{long}\",end\n")).unwrap();
        assert!(found == [["a", "b"], [long.as_str(), "end"]]);
    }

    #[test]
    fn written_fields_are_read_back() {
        for field in ["", "a", "a,b", "\"", "a\nb", "a \"b\""] {
            let line = format!("{},end\n", quoted(field, ','));
            assert_eq!(records(&line).unwrap(), [[field, "end"]]);
        }
    }
}
