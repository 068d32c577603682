//! Damaged parts of a store, in words that say which blocks they held.

use super::keys::{self, BlockAt, DataKey, Key};
use crate::badger::{Badger, Skipped};
use crate::{Finding, Severity};

/// What was left out of a store so far, with the blocks that it concerns.
pub(super) fn findings(badger: &Badger) -> Vec<Finding> {
    let error = |file: String, what: String| Finding {
        severity: Severity::Error,
        file,
        what,
        snapshots: Vec::new(),
        array: None,
        chunk: None,
    };
    let mut found: Vec<Finding> = badger
        .skipped()
        .into_iter()
        .map(|part| error(part.file.clone(), format!("{} ({})", part.error, concerns(&part))))
        .collect();
    let more = badger.skipped_more();
    if more > 0 {
        found.push(error(String::new(), format!("{more} more parts could not be read")));
    }
    found
}

/// What a part of the store held.
fn concerns(part: &Skipped) -> String {
    let Some(first) = &part.first_key else {
        return "which keys it held is not known".to_owned();
    };
    let only = [first, &[0][..]].concat();
    match &part.end_key {
        Some(end) if *end == only => thing(first),
        Some(end) => format!("all from {} to before {}", thing(first), thing(end)),
        None => format!("all from {} on", thing(first)),
    }
}

/// What a key is about.
fn thing(key: &[u8]) -> String {
    let Some(Key::Data(DataKey { instance, class, rest, version, .. })) = Key::parse(key) else {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        return format!("the key {hex}");
    };
    let of = format!("of instance {instance} at version {version}");
    match (class, BlockAt::parse(rest), keys::parse_label(rest)) {
        (keys::BLOCK, Some(BlockAt { scale, at: [z, y, x] }), _) => {
            format!("block z={z} y={y} x={x} of scale {scale} {of}")
        }
        (keys::INDEX, _, Some(label)) => format!("the index of label {label} {of}"),
        _ => format!("data of class {class} {of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_by_what_they_hold() {
        let rest = BlockAt { scale: 2, at: [-3, 2, 1] }.render();
        let block = DataKey {
            instance: 7,
            class: keys::BLOCK,
            rest: &rest,
            version: 5,
            client: 0,
            tombstone: false,
        };
        let index =
            DataKey { class: keys::INDEX, rest: &[0, 0, 0, 0, 0, 0, 0, 9], ..block.clone() };
        let part = |first_key: Option<Vec<u8>>, end_key: Option<Vec<u8>>| Skipped {
            file: String::new(),
            bytes: None,
            first_key,
            end_key,
            error: String::new(),
        };
        let (block, index) = (block.render(), index.render());
        let next = [&block[..], &[0]].concat();
        assert_eq!(
            concerns(&part(Some(block.clone()), Some(next))),
            "block z=-3 y=2 x=1 of scale 2 of instance 7 at version 5"
        );
        assert_eq!(
            concerns(&part(Some(block.clone()), Some(index))),
            "all from block z=-3 y=2 x=1 of scale 2 of instance 7 at version 5 to before the index of label 9 of \
             instance 7 at version 5"
        );
        assert!(concerns(&part(Some(block), None)).ends_with("at version 5 on"));
        assert_eq!(concerns(&part(Some(vec![0xab]), None)), "all from the key ab on");
        assert_eq!(concerns(&part(None, None)), "which keys it held is not known");
    }
}
