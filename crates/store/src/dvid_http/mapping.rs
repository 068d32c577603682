//! The mapping of supervoxels to bodies, in no particular order: pairs of `u64`, little-endian; or, from servers that know no
//! binary form, lines of two decimal numbers. A supervoxel that is not in it is its own body. A body of 0 says that the id is
//! retired.
//!
//! The two forms are told by their first bytes: text has digits, spaces and line ends alone, which as a number would be above
//! 7 × 10¹⁷.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use url::Url;

use super::backend::Instance;
use super::client::DvidClient;
use super::corrupt;
use super::course::Course;
use crate::error::Result;

/// Bytes of a pair, and as many as the form is told by.
const PAIR: usize = 16;
/// The longest line: two numbers of twenty digits, and what is between and behind them.
const LINE_MAX: usize = 44;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    Text,
}

/// Takes a mapping apart.
#[derive(Debug, Default)]
pub struct MappingRecords {
    form: Option<Form>,
    count: u64,
    held: BytesMut,
}

impl MappingRecords {
    /// Takes the next bytes, and gives the pairs that they complete: supervoxel and body.
    pub fn take(&mut self, bytes: &[u8], pairs: &mut VecDeque<(u64, u64)>) -> Result<()> {
        self.held.extend_from_slice(bytes);
        if self.form.is_none() {
            let Some(first) = self.held.get(..PAIR) else { return Ok(()) };
            self.form = Some(form_of(first));
        }
        self.split(pairs)
    }

    fn split(&mut self, pairs: &mut VecDeque<(u64, u64)>) -> Result<()> {
        match self.form {
            Some(Form::Binary) => {
                while self.held.len() >= PAIR {
                    pairs.push_back((self.held.get_u64_le(), self.held.get_u64_le()));
                    self.count += 1;
                }
            }
            _ => {
                while let Some(at) = self.held.iter().take(LINE_MAX).position(|byte| *byte == b'\n')
                {
                    let line = self.held.split_to(at + 1);
                    let pair = parse_line(line.get(..at).unwrap_or_default());
                    pairs.push_back(pair.ok_or_else(|| self.wrong("no two numbers"))?);
                    self.count += 1;
                }
                if self.held.len() >= LINE_MAX {
                    return Err(self.wrong("a line without end"));
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, found: &str) -> crate::Error {
        corrupt(&format!("line {} of the mapping", self.count), "two numbers", found)
    }

    /// The answer is complete, and so must be its last pair. It may be so short that its form is only known now.
    pub fn end(&mut self, pairs: &mut VecDeque<(u64, u64)>) -> Result<()> {
        if self.form.is_none() {
            self.form = Some(form_of(&self.held));
        }
        self.split(pairs)?;
        match self.held.len() {
            0 => Ok(()),
            left => {
                let what = format!("end behind pair {} of the mapping", self.count);
                Err(corrupt(&what, "the end of a pair", format!("{left} bytes of another")))
            }
        }
    }
}

fn form_of(first: &[u8]) -> Form {
    let is_text = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'\n');
    if first.iter().all(is_text) { Form::Text } else { Form::Binary }
}

fn parse_line(line: &[u8]) -> Option<(u64, u64)> {
    let (supervoxel, body) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    // A plus sign would parse too.
    let number = |text: &str| text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse().ok());
    Some((number(supervoxel)??, number(body)??))
}

/// The request for a mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) instance: Instance,
    records: MappingRecords,
    complete: bool,
}

impl Mapping {
    pub(super) fn new(instance: Instance) -> Self {
        Self { instance, records: MappingRecords::default(), complete: false }
    }
}

impl Course for Mapping {
    type Item = (u64, u64);

    fn request(&mut self, client: &DvidClient) -> Option<(Url, Option<Bytes>)> {
        let url = self.instance.url(client, &["mappings"], "format=binary");
        (!self.complete).then_some((url, None))
    }

    fn take(&mut self, bytes: &[u8], items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.take(bytes, items)
    }

    fn end(&mut self, items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.complete = true;
        self.records.end(items)
    }

    fn broken(&mut self) -> bool {
        // The order may be another next time, so nothing tells where to go on.
        let can = self.records.count == 0;
        self.records = MappingRecords::default();
        can
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn read(bytes: &[u8], step: usize) -> Result<Vec<(u64, u64)>> {
        let mut records = MappingRecords::default();
        let mut found = VecDeque::new();
        for part in bytes.chunks(step) {
            records.take(part, &mut found)?;
        }
        records.end(&mut found)?;
        Ok(found.into())
    }

    #[test]
    fn both_forms_are_read() {
        let pairs = [(5u64, 0u64), (1 << 40, u64::MAX), (7, 3)];
        let binary: Vec<u8> =
            pairs.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect();
        let text: String = pairs.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
        for step in 1..60 {
            assert_eq!(read(&binary, step).unwrap(), pairs);
            assert_eq!(read(text.as_bytes(), step).unwrap(), pairs);
        }
        assert_eq!(read(b"5 0\n", 100).unwrap(), [(5, 0)]);
        assert!(read(b"", 1).unwrap().is_empty());
    }

    #[test]
    fn halves_and_words_are_errors() {
        let long = [b'1'; 100];
        for bytes in [
            &[1, 0, 0, 0, 0, 0, 0, 0, 2][..],
            b"5 0\n7",
            b"5 0\n7 \n",
            b"5 0\n7 3 1\n8 9\n10 11\n",
            b"5 0\n10 11\n12 13\nunable to write mappings\n",
            b"99999999999999999999 1\n",
            b"unable to write",
            &long,
        ] {
            for step in [1, 1000] {
                let error = read(bytes, step).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}: {error}");
            }
        }
    }
}
