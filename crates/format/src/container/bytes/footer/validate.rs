//! Everything that can be wrong with a footer, as sentences.

use std::collections::{HashMap, HashSet};

use super::super::archive::{Resident, Stop, View};
use super::attributes::string_numbers;
use super::walk::walk;
use super::{
    ArrayHead, CHUNK_LEN, Root, array, attribute_key, attribute_value, blocks, chunk_flat,
    keys_len, root, values_len,
};
use crate::container::model::{BlockMeta, ChunkAddress};

/// The most findings that are listed; a footer with a hundred errors is bad enough.
pub const FINDINGS_MAX: usize = 100;

/// Checks a whole footer: that readers of array-format accept it (`walk`), that names are unique, that
/// indices of attributes lead somewhere, that chunks are on their grid and in their blocks, and that
/// blocks are within the `data_len` bytes before the footer (and before the seal). Empty if nothing is
/// wrong. The view must hold the whole footer; missing bytes are a finding.
pub fn validate(view: &dyn View, data_len: u64) -> Vec<String> {
    let mut findings = Findings(Vec::new());
    if let Err(stop) = check(view, data_len, &mut findings) {
        findings.stopped("the footer", stop);
    }
    findings.0
}

struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, finding: String) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(finding);
        }
    }

    fn stopped(&mut self, what: &str, stop: Stop) {
        self.add(match stop {
            Stop::Lack(range) => format!("{what}: bytes {range:?} are not here"),
            Stop::Corrupt(error) => format!("{what}: {error}"),
        });
    }

    /// The result of a parser; if it stopped, the reason becomes a finding.
    fn take<T>(&mut self, what: &str, result: Result<T, Stop>) -> Option<T> {
        result.map_err(|stop| self.stopped(what, stop)).ok()
    }
}

fn check(view: &dyn View, data_len: u64, findings: &mut Findings) -> Result<(), Stop> {
    let view = Resident(view.get(0..view.len())?);
    let root = root(&view)?;
    let sound = findings.take("readers of array-format refuse the footer", walk(&view, &root));
    let sizes = check_blocks(&view, &root, data_len, findings);
    let order = check_keys(&view, &root, findings);
    // Values that share bytes would take forever; the walk refuses them.
    if sound.is_some() {
        check_values(&view, &root, findings);
    }
    let mut names = HashSet::new();
    // For the same reason, no more of the arrays is read than a sound footer holds.
    let mut left = view.len();
    for position in 0..root.arrays.len {
        if findings.0.len() >= FINDINGS_MAX {
            break;
        }
        let what = format!("array {position}");
        let Some(head) = findings.take(&what, array(&view, &root, position)) else { continue };
        let Some(rest) = left.checked_sub(size(&head)) else {
            findings.add(format!("{what}: it shares bytes with others"));
            break;
        };
        left = rest;
        check_array(&root, &head, &order, findings);
        check_chunks(&view, &head, &sizes, findings);
        if !names.insert(head.meta.name.clone()) {
            findings.add(format!("array {} is there more than once", shown(&head.meta.name)));
        }
    }
    Ok(())
}

/// The least bytes that an array takes in a footer.
fn size(head: &ArrayHead) -> u64 {
    let meta = &head.meta;
    let text = meta.dimension_names.iter().map(String::len).sum::<usize>() + meta.name.len();
    let numbers = meta.shape.len() + meta.chunk_shape.len() + meta.attributes.len();
    head.chunks.len.saturating_mul(CHUNK_LEN).saturating_add((text + 4 * numbers) as u64)
}

/// A name in a finding: a hostile one may be long.
fn shown(name: &str) -> String {
    match name.char_indices().nth(80) {
        None => format!("{name:?}"),
        Some((end, _)) => format!("{:?}…", name.get(..end).unwrap_or_default()),
    }
}

/// The sizes of all blocks when unpacked, by id.
fn check_blocks(
    view: &Resident,
    root: &Root,
    data_len: u64,
    findings: &mut Findings,
) -> HashMap<u32, u64> {
    let all = findings.take("the block table", blocks(view, root, 0..root.blocks.len));
    let all = all.unwrap_or_default();
    let mut sizes = HashMap::new();
    for (position, block) in (0u64..).zip(&all) {
        let BlockMeta { id, file_offset, compressed_size, uncompressed_size, codec } = block;
        let end = file_offset.checked_add(*compressed_size);
        if end.is_none_or(|end| end > data_len) {
            findings.add(format!(
                "block {id}: {compressed_size} bytes at {file_offset} are not within the {data_len} \
                 bytes of data"
            ));
        }
        if codec.is_none() && compressed_size != uncompressed_size {
            findings.add(format!(
                "block {id} is not packed, but has {compressed_size} bytes instead of \
                 {uncompressed_size}"
            ));
        }
        // 0.15 takes the id for the position.
        if root.version == 6 && u64::from(*id) != position {
            findings.add(format!("block {id} is at position {position} of the block table"));
        }
        if sizes.insert(*id, *uncompressed_size).is_some() {
            findings.add(format!("block {id} is there more than once"));
        }
    }
    sizes
}

/// The rank of each key in the order that attributes are sorted by: by text in version 6, by number
/// before.
fn check_keys(view: &Resident, root: &Root, findings: &mut Findings) -> Vec<usize> {
    let mut keys = Vec::new();
    // As for arrays: strings share no bytes.
    let mut left = view.len();
    for index in 0..keys_len(root) {
        let what = format!("attribute key {index}");
        let Some(key) = findings.take(&what, attribute_key(view, root, index)) else { break };
        let Some(rest) = left.checked_sub(key.len() as u64) else {
            findings.add(format!("{what}: it shares bytes with others"));
            break;
        };
        left = rest;
        keys.push(key);
    }
    let mut sorted: Vec<_> = keys.iter().zip(0..).collect();
    sorted.sort_unstable();
    for twins in sorted.windows(2) {
        if let [(a, _), (b, index)] = twins
            && a == b
        {
            findings.add(format!("attribute key {index} is there more than once"));
        }
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    if root.version == 6 {
        for (position, (_, index)) in sorted.into_iter().enumerate() {
            if let Some(place) = order.get_mut::<usize>(index) {
                *place = position;
            }
        }
    }
    order
}

fn check_values(view: &Resident, root: &Root, findings: &mut Findings) {
    for index in 0..values_len(root) {
        let what = format!("attribute value {index}");
        // A list of string numbers may repeat a long string without end; the strings themselves are
        // checked.
        let read = match string_numbers(view, root, index) {
            Ok(None) => attribute_value(view, root, index).map(|_| Vec::new()),
            Ok(Some(numbers)) => Ok(numbers),
            Err(stop) => Err(stop),
        };
        let Some(numbers) = findings.take(&what, read) else { break };
        if let Some(number) = numbers.iter().find(|number| u64::from(**number) >= keys_len(root)) {
            findings.add(format!("{what}: string {number} of {}", keys_len(root)));
        }
    }
}

fn check_array(root: &Root, head: &ArrayHead, order: &[usize], findings: &mut Findings) {
    let meta = &head.meta;
    let (name, rank) = (shown(&meta.name), meta.shape.len());
    if meta.chunk_shape.len() != rank {
        let found = meta.chunk_shape.len();
        findings.add(format!("array {name} has {rank} dimensions, its chunks {found}"));
    }
    let names = meta.dimension_names.len();
    if names != 0 && names != rank {
        findings.add(format!("array {name} has {rank} dimensions and names for {names}"));
    }
    // Missing keys are a finding of their own.
    let keys = meta.attributes.iter().map(|(key, _)| usize::try_from(*key).ok());
    let places = keys.filter_map(|key| order.get(key?).copied());
    if !places.is_sorted_by(|a, b| a < b) {
        findings.add(format!("array {name}: its attributes are not sorted by key"));
    }
    for (key, value) in &meta.attributes {
        for (what, index, len) in [("key", key, keys_len(root)), ("value", value, values_len(root))]
        {
            if *index >= len {
                findings.add(format!("array {name}: attribute {what} {index} of {len}"));
            }
        }
    }
}

fn check_chunks(
    view: &Resident,
    head: &ArrayHead,
    sizes: &HashMap<u32, u64>,
    findings: &mut Findings,
) {
    let meta = &head.meta;
    let (name, rank) = (shown(&meta.name), meta.shape.len());
    if meta.deleted && head.chunks.len > 0 {
        findings.add(format!("array {name} is deleted and has {} chunks", head.chunks.len));
    }
    // Where a chunk has extent 0, the grid has one place (0.13 and later store 1 instead).
    let extents = meta.shape.iter().zip(&meta.chunk_shape);
    let grid: Vec<u32> = extents.map(|(len, chunk)| len.div_ceil((*chunk).max(1)).max(1)).collect();
    let mut last: Vec<u32> = Vec::new();
    let mut ascends = true;
    let mut first = true;
    let walked = chunk_flat(view, &head.chunks, rank, 0..head.chunks.len, &mut |coord, address| {
        if let Some(wrong) = misplaced(address, sizes) {
            findings.add(format!("array {name}, chunk {coord:?}: {wrong}"));
        }
        if coord.iter().zip(&grid).any(|(at, len)| at >= len) {
            findings.add(format!("array {name}: chunk {coord:?} is not on its grid {grid:?}"));
        }
        ascends &= first || last.as_slice() < coord;
        first = false;
        last.clear();
        last.extend_from_slice(coord);
    });
    findings.take(&format!("array {name}: its chunks"), walked);
    if !ascends {
        check_twins(view, head, findings);
    }
}

/// The error in the place of a chunk, if any.
fn misplaced(address: ChunkAddress, sizes: &HashMap<u32, u64>) -> Option<String> {
    let ChunkAddress { block, offset, size } = address;
    let Some(len) = sizes.get(&block) else { return Some(format!("there is no block {block}")) };
    let end = u64::from(offset) + u64::from(size);
    (end > *len).then(|| format!("bytes {offset}..{end} of block {block}, which has {len}"))
}

/// Chunks that occur twice, in a table that is not sorted.
fn check_twins(view: &Resident, head: &ArrayHead, findings: &mut Findings) {
    let (name, rank) = (shown(&head.meta.name), head.meta.shape.len());
    let mut seen = HashSet::new();
    let all = 0..head.chunks.len;
    let walked = chunk_flat(view, &head.chunks, rank, all, &mut |coord, _| {
        if !seen.insert(coord.to_vec()) {
            findings.add(format!("array {name}: chunk {coord:?} is there more than once"));
        }
    });
    findings.take(&format!("array {name}: its chunks"), walked);
}
