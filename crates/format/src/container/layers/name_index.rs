//! Finding an array of a layer by its name.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use chunkyard_store::{Error, Result};

use super::layer::Layer;
use crate::container::bytes::archive::{Stop, View};
use crate::container::bytes::footer;

/// Arrays that are parsed in one go.
const BATCH: usize = 256;

/// How the arrays of a layer are found.
#[derive(Debug)]
pub(crate) enum NameIndex {
    /// By searching: they are sorted.
    Sorted,
    /// By the hash of the name: the names themselves stay in the footer.
    Hashed(HashMap<u64, Vec<u32>>),
}

impl Layer {
    /// The position of an array in the footer. Of several with the same name the last counts, as for
    /// other readers.
    pub(crate) async fn position(&self, name: &str) -> Result<Option<u64>> {
        let candidates = match self.name_index().await? {
            NameIndex::Sorted => return self.parse(|view| self.search(view, name)).await,
            NameIndex::Hashed(hashes) => match hashes.get(&hash(name)) {
                None => return Ok(None),
                Some(candidates) => candidates,
            },
        };
        self.parse(|view| {
            for &position in candidates.iter().rev() {
                if footer::array_name(view, &self.root, position.into())? == name {
                    return Ok(Some(position.into()));
                }
            }
            Ok(None)
        })
        .await
    }

    /// The names of all arrays, and whether each is deleted.
    pub(crate) async fn names(&self) -> Result<Vec<(String, bool)>> {
        let mut names = Vec::new();
        // Names in different batches share no bytes either.
        let mut left = self.footer_len();
        for range in self.array_batches() {
            let batch = self.parse(|view| footer::array_names(view, &self.root, range.clone()));
            for (name, deleted) in batch.await? {
                left = left.checked_sub(name.len() as u64).ok_or_else(|| Error::Corrupt {
                    file: self.path.to_string(),
                    what: "the names of its arrays".to_owned(),
                    expected: format!("less than the {} bytes of its footer", self.footer_len()),
                    found: "more, so that they share bytes".to_owned(),
                })?;
                names.push((name, deleted));
            }
        }
        Ok(names)
    }

    /// The positions of all arrays, in batches.
    fn array_batches(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let len = self.root.arrays.len;
        (0..len).step_by(BATCH).map(move |at| at..(at + BATCH as u64).min(len))
    }

    async fn name_index(&self) -> Result<&NameIndex> {
        self.name_index_cell()
            .get_or_try_init(|| async {
                if self.arrays_sorted() {
                    return Ok(NameIndex::Sorted);
                }
                let mut hashes: HashMap<u64, Vec<u32>> = HashMap::new();
                for range in self.array_batches() {
                    let names =
                        self.parse(|view| footer::array_names(view, &self.root, range.clone()));
                    for (position, (name, _)) in range.clone().zip(names.await?) {
                        let entry = hashes.entry(hash(&name)).or_default();
                        entry.push(u32::try_from(position).unwrap_or(u32::MAX));
                    }
                }
                Ok(NameIndex::Hashed(hashes))
            })
            .await
    }

    fn search(&self, view: &dyn View, name: &str) -> Result<Option<u64>, Stop> {
        let (mut low, mut high) = (0, self.root.arrays.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = footer::array_name(view, &self.root, middle)?;
            match found.as_str().cmp(name) {
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
