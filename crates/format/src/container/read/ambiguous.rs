//! Attributes that array-format 0.9 reads differently, or whose meaning its layers leave open.
//!
//! 0.9 looks up an attribute in three steps. The number of the key comes from the newest layer that
//! has the key, in any array. With it, the number of the value comes from the array's pairs. The value
//! comes from the newest layer that has so many values. None of these need be the layer in which the
//! pair was written, so with two dictionaries 0.9 may answer with a value of another array. We read by
//! the layer that holds the pair. If the two answers differ, or if a pair may have been written here
//! or taken over from below, the reader is [told](Container::mixed).

use std::collections::HashMap;

use chunkyard_store::{Error, Result};

use super::attributes::LayerAttributes;
use crate::container::bytes::footer;
use crate::container::handle::Container;
use crate::container::layers::layer::Layer;
use crate::container::layers::stack::Stack;
use crate::container::mapping::attribute_json;
use crate::container::model::AttributeValue;

/// Keys that are parsed in one go.
const BATCH: u64 = 256;

/// The most arrays of a layer that are asked whether they have a key.
const ASKED_MAX: u64 = 10_000;

/// An attribute for which the layers give more than one value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ambiguous {
    pub(crate) key: String,
    /// The value that we read.
    pub(crate) value: AttributeValue,
    /// The other possible value, and why.
    pub(crate) or: String,
}

/// The dictionary of a layer, as 0.9 searches it.
#[derive(Debug)]
pub(crate) struct Dictionary {
    keys: HashMap<String, u64>,
    values_len: u64,
}

impl Container {
    /// Warnings about the attributes of an array: those for which layers of other programs give more
    /// than one value, or that array-format 0.9 reads differently.
    pub async fn mixed(&self, name: &str) -> Result<Vec<String>> {
        let stack = self.open.committed().stack;
        let Some(array) = stack.array(name).await? else { return Ok(Vec::new()) };
        Ok(array.mixed.iter().map(|mixed| mixed.sentence(name)).collect())
    }
}

impl Ambiguous {
    fn sentence(&self, array: &str) -> String {
        let Self { key, value, or } = self;
        format!(
            "attribute {key:?} of {array:?} is taken for {}, but {or}: layers of array-format 0.9 mix \
             the attributes of several arrays; `af attrs --set` says what is meant",
            shown(value)
        )
    }
}

/// A value, cut if it is long.
pub(crate) fn shown(value: &AttributeValue) -> String {
    const CHARS_MAX: usize = 60;
    let text = attribute_json(value).to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

impl Stack {
    /// The attributes that 0.9 reads differently; `stored` holds the array's attributes by layer, the
    /// newest first.
    pub(crate) async fn read_otherwise(
        &self,
        stored: &[LayerAttributes<'_>],
        attributes: &[(String, AttributeValue)],
    ) -> Result<Vec<Ambiguous>> {
        let Some(newest) = stored.first().filter(|newest| newest.layer.seal.is_none()) else {
            return Ok(Vec::new());
        };
        let words = |layer: &Layer| footer::keys_len(&layer.root) + footer::values_len(&layer.root);
        let several = self.layers.iter().filter(|layer| words(layer) > 0).count() > 1;
        if !several || self.layers.iter().any(|layer| layer.root.version != 4) {
            return Ok(Vec::new());
        }
        let dictionaries = self.dictionaries.get_or_try_init(|| self.read_dictionaries()).await?;
        let pairs: HashMap<u64, u64> = newest.pairs.iter().copied().collect();
        let mut mixed = Vec::new();
        for (key, value) in attributes {
            let number = dictionaries.iter().find_map(|layer| layer.keys.get(key));
            let at = number.and_then(|number| pairs.get(number));
            let layers = dictionaries.iter().zip(self.layers.iter().rev());
            let of = |at: u64| layers.clone().find(|(words, _)| at < words.values_len);
            let read = match at.and_then(|&at| Some((at, of(at)?.1))) {
                None => None,
                Some((at, layer)) => {
                    Some(layer.parse(|view| footer::attribute_value(view, &layer.root, at)).await?)
                }
            };
            if read.as_ref() != Some(value) {
                let or = match read {
                    Some(read) => format!("array-format 0.9 reads {}", shown(&read)),
                    None => "array-format 0.9 finds none".to_owned(),
                };
                mixed.push(Ambiguous { key: key.clone(), value: value.clone(), or });
            }
        }
        Ok(mixed)
    }

    /// The dictionaries of all layers, the newest first.
    async fn read_dictionaries(&self) -> Result<Vec<Dictionary>> {
        let mut all = Vec::with_capacity(self.layers.len());
        for layer in self.layers.iter().rev() {
            let len = footer::keys_len(&layer.root);
            let mut keys = HashMap::new();
            // Keys share no bytes, so all of them are shorter than their footer.
            let mut left = layer.footer_len();
            for from in (0..len).step_by(BATCH as usize) {
                let range = from..(from + BATCH).min(len);
                let batch = layer.parse(|view| {
                    let keys = range.clone().map(|at| footer::attribute_key(view, &layer.root, at));
                    keys.collect::<Result<Vec<_>, _>>()
                });
                for (at, key) in range.clone().zip(batch.await?) {
                    left = left.checked_sub(key.len() as u64).ok_or_else(|| Error::Corrupt {
                        file: layer.path.to_string(),
                        what: "the keys of its attributes".to_owned(),
                        expected: format!(
                            "less than the {} bytes of its footer",
                            layer.footer_len()
                        ),
                        found: "more, so that they share bytes".to_owned(),
                    })?;
                    keys.entry(key).or_insert(at);
                }
            }
            all.push(Dictionary { keys, values_len: footer::values_len(&layer.root) });
        }
        Ok(all)
    }
}

impl Layer {
    /// Whether only one array of the layer has a key. Then the key was set there: every entry of the
    /// dictionary was set on some array of the layer.
    pub(crate) async fn alone_has(&self, key: u64) -> Result<bool> {
        let arrays = self.root.arrays.len;
        if arrays > ASKED_MAX {
            return Ok(false);
        }
        let mut found = 0;
        for position in 0..arrays {
            let head = self.parse(|view| footer::array(view, &self.root, position)).await?;
            found += u64::from(head.meta.attributes.iter().any(|(number, _)| *number == key));
            if found > 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
