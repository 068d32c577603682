//! The ids of all bodies, ascending: `u64` each, or `u64` id and `u64` voxels, little-endian. Four zeros say that the server
//! failed; no body has the id 0.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use url::Url;

use super::backend::Instance;
use super::client::DvidClient;
use super::corrupt;
use super::course::Course;
use crate::error::Result;

/// Labels of one request. A server gives at most ten million.
const LABELS_PER_REQUEST: u64 = 1_000_000;

/// Takes a list of labels apart, and asks for it page by page.
#[derive(Debug)]
pub struct LabelRecords {
    sizes: bool,
    /// The first label that may come; `None` behind the largest number.
    start: Option<u64>,
    /// How many an answer has at most.
    page: u64,
    /// How many this answer had.
    count: u64,
    complete: bool,
    held: BytesMut,
}

impl LabelRecords {
    /// For a list of labels from `start` on, with the voxels of each or without, in answers of at most `page`.
    pub fn new(start: u64, sizes: bool, page: u64) -> Self {
        let held = BytesMut::new();
        Self { sizes, start: Some(start), page, count: 0, complete: false, held }
    }

    /// Takes the next bytes, and gives the labels that they complete, with their voxels if these were asked for.
    pub fn take(&mut self, bytes: &[u8], labels: &mut VecDeque<(u64, Option<u64>)>) -> Result<()> {
        self.held.extend_from_slice(bytes);
        let each = if self.sizes { 16 } else { 8 };
        while self.held.len() >= each {
            let label = self.held.get_u64_le();
            let voxels = self.sizes.then(|| self.held.get_u64_le());
            let what = format!("label {} of the answer", self.count);
            if label == 0 {
                return Err(corrupt(&what, "a label", "0, the mark of an error of the server"));
            }
            match self.start {
                Some(start) if label >= start => {}
                _ => return Err(corrupt(&what, "ascending labels", format!("{label}"))),
            }
            if self.count == self.page {
                return Err(corrupt(&what, format!("at most {} labels", self.page), "more"));
            }
            self.count += 1;
            self.start = label.checked_add(1);
            labels.push_back((label, voxels));
        }
        Ok(())
    }

    /// The answer is complete; if it was not full, it was the last.
    pub fn end(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            let found = format!("{} bytes of a label", self.held.len());
            return Err(corrupt("end of the labels", "whole labels", found));
        }
        self.complete = self.count < self.page || self.start.is_none();
        self.count = 0;
        Ok(())
    }
}

/// The requests for all labels.
#[derive(Debug)]
pub(super) struct Labels {
    pub(super) instance: Instance,
    pub(super) records: LabelRecords,
}

impl Labels {
    pub(super) fn new(instance: Instance, start: u64, sizes: bool) -> Self {
        Self { instance, records: LabelRecords::new(start, sizes, LABELS_PER_REQUEST) }
    }
}

impl Course for Labels {
    type Item = (u64, Option<u64>);

    fn request(&mut self, client: &DvidClient) -> Option<(Url, Option<Bytes>)> {
        let LabelRecords { start, page, sizes, complete, .. } = &self.records;
        let start = start.filter(|_| !complete)?;
        let sizes = if *sizes { "&sizes=true" } else { "" };
        let query = format!("start={start}&number={page}{sizes}");
        Some((self.instance.url(client, &["listlabels"], &query), None))
    }

    fn take(&mut self, bytes: &[u8], items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.take(bytes, items)
    }

    fn end(&mut self, _items: &mut VecDeque<Self::Item>) -> Result<()> {
        self.records.end()
    }

    fn broken(&mut self) -> bool {
        // What has arrived stays; the next request begins behind it.
        self.records.held.clear();
        self.records.count = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn bytes(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    type Listed = Vec<(u64, Option<u64>)>;

    /// The labels of an answer, and whether it was the last.
    fn read(sizes: bool, page: u64, bytes: &[u8]) -> Result<(Listed, bool)> {
        let mut records = LabelRecords::new(3, sizes, page);
        let mut found = VecDeque::new();
        for part in bytes.chunks(5) {
            records.take(part, &mut found)?;
        }
        records.end()?;
        Ok((found.into(), records.complete))
    }

    #[test]
    fn an_answer_that_is_not_full_is_the_last() {
        assert_eq!(read(false, 3, &bytes(&[3, 9])).unwrap(), (vec![(3, None), (9, None)], true));
        let sized = vec![(3, Some(8)), (9, Some(0))];
        assert_eq!(read(true, 2, &bytes(&[3, 8, 9, 0])).unwrap(), (sized, false));
        assert_eq!(read(false, 3, b"").unwrap(), (vec![], true));
        assert!(read(false, 1, &bytes(&[u64::MAX])).unwrap().1);
    }

    #[test]
    fn zeros_disorder_and_halves_are_errors() {
        for (sizes, numbers) in [
            (false, &[3, 0, 0, 0, 0][..]),
            (true, &[3, 5, 0, 0, 0, 0]),
            (false, &[3, 3]),
            (false, &[2]),
            (false, &[u64::MAX, 5]),
            (false, &[3, 4, 5, 6]),
        ] {
            let error = read(sizes, 3, &bytes(numbers)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{numbers:?}");
        }
        let cut = bytes(&[3, 4]);
        assert!(read(true, 3, &cut[..15]).is_err());
        assert!(read(true, 3, &bytes(&[3])).is_err());
    }
}
