//! Label indices as the server stores them, in the order asked for:
//!
//! ```text
//!  u64 n │ u64 label │ n bytes: the stored value          all little-endian; n is 0 if there is no index
//! ```
//!
//! A record of sixteen zero bytes says that the server failed. No label is 0, so it is told from an index that is missing.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use url::Url;

use super::backend::Instance;
use super::client::DvidClient;
use super::corrupt;
use super::course::Course;
use crate::error::{Error, Result};

/// Labels of one request. A server takes 50,000; fewer keep its list, which goes in the body, short.
const LABELS_PER_REQUEST: usize = 10_000;

/// Bytes before the payload of a record.
const HEAD: usize = 16;

/// Takes an answer with label indices apart.
#[derive(Debug)]
pub struct IndexRecords {
    labels: Vec<u64>,
    /// How many have been answered.
    answered: usize,
    /// How many will have been after this answer.
    until: usize,
    bytes_max: u64,
    held: BytesMut,
}

impl IndexRecords {
    /// For an answer about these labels, of which none has an index of more bytes than `bytes_max`.
    pub fn new(labels: Vec<u64>, bytes_max: u64) -> Result<Self> {
        if labels.contains(&0) {
            return Err(Error::invalid("label 0 is the background and has no index"));
        }
        let until = labels.len();
        Ok(Self { labels, answered: 0, until, bytes_max, held: BytesMut::new() })
    }

    /// Takes the next bytes, and gives the indices that they complete; `None` where there is none.
    pub fn take(
        &mut self,
        bytes: &[u8],
        indices: &mut VecDeque<(u64, Option<Bytes>)>,
    ) -> Result<()> {
        self.held.extend_from_slice(bytes);
        while let Some(mut head) = self.held.get(..HEAD) {
            let (length, label) = (head.get_u64_le(), head.get_u64_le());
            let what = format!("index {}", self.answered);
            if (length, label) == (0, 0) {
                return Err(corrupt(&what, "an index", "the mark of an error of the server"));
            }
            match self.labels.get(self.answered).filter(|_| self.answered < self.until) {
                Some(asked) if *asked == label => {}
                Some(asked) => {
                    return Err(corrupt(&what, format!("label {asked}"), format!("label {label}")));
                }
                None => return Err(corrupt(&what, "the end", format!("label {label}"))),
            }
            if length > self.bytes_max {
                let expected = format!("at most {} bytes", self.bytes_max);
                return Err(corrupt(&what, expected, format!("{length} bytes")));
            }
            let end = usize::try_from(length).ok().and_then(|length| length.checked_add(HEAD));
            let Some(end) = end.filter(|end| self.held.len() >= *end) else { break };
            let record = self.held.split_to(end).freeze();
            self.answered += 1;
            indices.push_back((label, (length > 0).then(|| record.slice(HEAD..))));
        }
        Ok(())
    }

    /// The answer is complete: every label must have been answered.
    pub fn end(&mut self) -> Result<()> {
        match (self.until.saturating_sub(self.answered), self.held.len()) {
            (0, 0) => Ok(()),
            (missing, left) => Err(corrupt(
                "end of the indices",
                format!("{} of them", self.until),
                format!("{missing} missing, {left} bytes left over"),
            )),
        }
    }
}

/// The requests for many labels.
#[derive(Debug)]
pub(super) struct Indices {
    pub(super) instance: Instance,
    pub(super) records: IndexRecords,
}

impl Course for Indices {
    type Item = (u64, Option<Bytes>);

    fn request(&mut self, client: &DvidClient) -> Option<(Url, Option<Bytes>)> {
        let rest = self.records.labels.get(self.records.answered..).unwrap_or_default();
        let batch = rest.get(..LABELS_PER_REQUEST).unwrap_or(rest);
        if batch.is_empty() {
            return None;
        }
        self.records.until = self.records.answered + batch.len();
        let labels: Vec<String> = batch.iter().map(u64::to_string).collect();
        let body = format!("[{}]", labels.join(","));
        Some((self.instance.url(client, &["indices-compressed"], ""), Some(body.into())))
    }

    fn take(&mut self, bytes: &[u8], items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.take(bytes, items)
    }

    fn end(&mut self, _items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.end()
    }

    fn broken(&mut self) -> bool {
        self.records.held.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn record(label: u64, payload: &[u8]) -> Vec<u8> {
        [&(payload.len() as u64).to_le_bytes(), &label.to_le_bytes(), payload].concat()
    }

    fn read(labels: &[u64], bytes: &[u8], step: usize) -> Result<Vec<(u64, Option<Bytes>)>> {
        let mut records = IndexRecords::new(labels.to_vec(), 100)?;
        let mut found = VecDeque::new();
        for part in bytes.chunks(step) {
            records.take(part, &mut found)?;
        }
        records.end()?;
        Ok(found.into())
    }

    #[test]
    fn indices_come_in_the_order_asked_and_may_be_missing() {
        let bytes = [record(7, b"seven"), record(3, b"")].concat();
        for step in 1..=bytes.len() {
            let found = read(&[7, 3], &bytes, step).unwrap();
            assert_eq!(found, [(7, Some("seven".into())), (3, None)]);
        }
    }

    #[test]
    fn an_error_of_the_server_and_all_that_was_not_asked_for_is_an_error() {
        let (seven, three) = (record(7, b"seven"), record(3, b""));
        let wrong = [
            seven.clone(),
            [three.clone(), seven.clone()].concat(),
            [seven.clone(), vec![0; 16]].concat(),
            [seven.clone(), three.clone(), three.clone()].concat(),
            [seven.clone(), three.clone(), vec![0; 16]].concat(),
            [seven.clone(), three.clone(), vec![1]].concat(),
            [seven.clone(), three[..15].to_vec()].concat(),
            record(7, &[0; 101]),
            [u64::MAX.to_le_bytes(), 7u64.to_le_bytes()].concat(),
        ];
        for bytes in wrong {
            for step in [1, 9, 1000] {
                let error = read(&[7, 3], &bytes, step).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}: {error}");
            }
        }
        assert_eq!(read(&[0], b"", 1).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
