//! The attributes of an array, put together from its layers.
//!
//! A layer has dictionaries of keys and of values, and an array has pairs of numbers in them. A layer
//! of ours states all attributes of its arrays in its own dictionaries. A layer of array-format 0.9
//! does not: when 0.9 changes an array, it takes over the pairs of the layer below unchanged, and
//! adds new pairs for its own dictionaries. So a pair refers to the dictionaries of its layer, or of
//! the layer below. If either is possible both are kept, because 0.9 never removes attributes. Then
//! the true meaning is unknown, and the reader is [told](super::ambiguous).

use std::collections::HashSet;
use std::sync::Arc;

use chunkyard_store::Result;

use super::ambiguous::{Ambiguous, shown};
use super::array_cache::AttributeBudget;
use crate::container::bytes::footer;
use crate::container::layers::layer::Layer;
use crate::container::model::AttributeValue;

/// The attributes of an array as stored in one layer.
#[derive(Debug)]
pub(crate) struct LayerAttributes<'a> {
    /// The layer.
    pub(crate) layer: &'a Arc<Layer>,
    /// Numbers of keys and of values.
    pub(crate) pairs: Vec<(u64, u64)>,
}

impl LayerAttributes<'_> {
    /// Whether the pairs may refer to the layer below.
    fn inherits(&self) -> bool {
        self.layer.seal.is_none()
    }

    /// Whether the layer's own dictionaries have such a pair.
    fn has(&self, (key, value): (u64, u64)) -> bool {
        let root = &self.layer.root;
        key < footer::keys_len(root) && value < footer::values_len(root)
    }
}

/// An attribute, and the number that its key has in the pairs of a layer.
type NumberedAttribute = (u64, String, AttributeValue);

/// The attributes of an array, from its layers, the newest first, as far as the budget allows; and those
/// of them that may mean something else.
pub(crate) async fn attributes(
    stored: &[LayerAttributes<'_>],
    budget: &mut AttributeBudget,
) -> Result<(Vec<(String, AttributeValue)>, Vec<Ambiguous>)> {
    let mut mixed: Vec<Ambiguous> = Vec::new();
    let mut below: HashSet<(u64, u64)> = HashSet::new();
    let complete = stored.iter().position(|stored| !stored.inherits());
    let counts = stored.iter().take(complete.map_or(stored.len(), |at| at + 1));
    let mut known: Vec<NumberedAttribute> = Vec::new();
    for stored in counts.rev() {
        let numbers: HashSet<u64> = stored.pairs.iter().map(|(key, _)| *key).collect();
        known.retain(|(number, ..)| numbers.contains(number));
        let inherited: HashSet<u64> = known.iter().map(|(number, ..)| *number).collect();
        let mut own: Vec<NumberedAttribute> = Vec::with_capacity(stored.pairs.len());
        for &(key, value) in &stored.pairs {
            let taken_over = inherited.contains(&key) || below.contains(&(key, value));
            // A pair that is nowhere is read all the same, so that the parser says what is wrong. A
            // pair that was taken over may mean an attribute that was set anew since, under another
            // number.
            if stored.has((key, value)) || !taken_over {
                let root = &stored.layer.root;
                let pair = stored.layer.parse(|view| {
                    Ok((
                        footer::attribute_key(view, root, key)?,
                        footer::attribute_value(view, root, value)?,
                    ))
                });
                let (name, value) = pair.await?;
                budget.take(&name, &value)?;
                own.push((key, name, value));
            }
        }
        for (number, name, value) in &own {
            let pair = stored.pairs.iter().find(|(key, _)| key == number);
            let taken_over = pair.is_some_and(|pair| below.contains(pair));
            let other = known.iter().find(|(known, ..)| known == number);
            let Some((_, other, was)) = other.filter(|_| taken_over) else { continue };
            if (other, was) != (name, value) && !stored.layer.alone_has(*number).await? {
                let or = format!(
                    "if it was not set in {}, {other:?} is {}",
                    stored.layer.path,
                    shown(was)
                );
                mixed.retain(|mixed| mixed.key != *name);
                mixed.push(Ambiguous { key: name.clone(), value: value.clone(), or });
            }
        }
        below = stored.pairs.iter().copied().collect();
        let again: HashSet<&str> = own.iter().map(|(_, name, _)| name.as_str()).collect();
        known.retain(|(_, name, _)| !again.contains(name.as_str()));
        known.append(&mut own);
    }
    let attributes: Vec<_> = known.into_iter().map(|(_, name, value)| (name, value)).collect();
    // A later layer may be clear where an earlier one was not.
    mixed.retain(|mixed| attributes.contains(&(mixed.key.clone(), mixed.value.clone())));
    Ok((attributes, mixed))
}
