//! Containers: footers, statistics and seals with any content.

use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;
use chunkyard_engine::format::container::model::{AttributeValue, BlockMeta, ChunkAddress};
use chunkyard_engine::format::hostile::container::archive::{Resident, Stop, View};
use chunkyard_engine::format::hostile::container::footer::{
    self, ArrayHead, FINDINGS_MAX, NewArray, NewFooter, Root,
};
use chunkyard_engine::format::hostile::container::seal::{self, Seal};
use chunkyard_engine::format::hostile::container::stats_file;
use chunkyard_engine::{Error, ErrorKind};

/// Of a larger footer only this many chunks of an array are read.
const CHUNKS_MAX: u64 = 1000;

fn is_about_bytes(error: &Error) {
    let kind = error.kind();
    let expected = matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported);
    assert!(expected && !error.to_string().is_empty(), "bytes cannot cause {error:?}");
}

/// The result of a parser; a refusal must be about the bytes, and none may be missing.
fn found<T>(result: Result<T, Stop>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Stop::Corrupt(error)) => {
            is_about_bytes(&error);
            None
        }
        Err(Stop::Lack(range)) => panic!("all bytes are here, also {range:?}"),
    }
}

/// A whole footer.
#[derive(Debug, PartialEq)]
struct Whole {
    root: Root,
    blocks: Vec<BlockMeta>,
    heads: Vec<ArrayHead>,
    chunks: Vec<(Vec<u32>, Vec<ChunkAddress>)>,
    keys: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Whole {
    /// Reads everything that can be read; `None` if something was refused.
    fn read(view: &dyn View) -> Option<Self> {
        let root = found(footer::root(view))?;
        let positions = 0..root.arrays.len;
        let heads: Vec<_> =
            positions.map(|at| found(footer::array(view, &root, at))).collect::<Vec<_>>();
        let names = found(footer::array_names(view, &root, 0..root.arrays.len));
        let chunks: Vec<_> = heads.iter().flatten().map(|head| read_chunks(view, head)).collect();
        let keys: Vec<_> = (0..footer::keys_len(&root))
            .map(|at| found(footer::attribute_key(view, &root, at)))
            .collect();
        let values: Vec<_> = (0..footer::values_len(&root))
            .map(|at| found(footer::attribute_value(view, &root, at)))
            .collect();
        let blocks = found(footer::blocks(view, &root, 0..root.blocks.len));
        let whole = Self {
            blocks: blocks?,
            heads: heads.into_iter().collect::<Option<_>>()?,
            chunks: chunks.into_iter().collect::<Option<_>>()?,
            keys: keys.into_iter().collect::<Option<_>>()?,
            values: values.into_iter().collect::<Option<_>>()?,
            root,
        };
        for (head, named) in whole.heads.iter().zip(names?) {
            assert_eq!((&head.meta.name, head.meta.deleted), (&named.0, named.1));
        }
        Some(whole)
    }

    fn render(&self) -> Result<Vec<u8>, Error> {
        let arrays = self.heads.iter().zip(&self.chunks).map(|(head, (coords, places))| NewArray {
            meta: &head.meta,
            coords,
            addresses: places,
        });
        let arrays: Vec<_> = arrays.collect();
        footer::render(&NewFooter {
            blocks: &self.blocks,
            arrays: &arrays,
            attr_keys: &self.keys,
            attr_values: &self.values,
            overlay_index: self.root.overlay_index,
            base_file_hint: &self.root.base_file_hint,
        })
    }
}

/// The chunks of an array. If the table ascends, each is also found by its coord.
fn read_chunks(view: &dyn View, head: &ArrayHead) -> Option<(Vec<u32>, Vec<ChunkAddress>)> {
    let (rank, table) = (head.meta.shape.len(), &head.chunks);
    let some = 0..table.len.min(CHUNKS_MAX);
    let (mut coords, mut addresses) = (Vec::new(), Vec::new());
    let read = footer::chunk_flat(view, table, rank, some.clone(), &mut |coord, address| {
        assert_eq!(coord.len(), rank);
        coords.extend_from_slice(coord);
        addresses.push(address);
    });
    for coord in [&vec![0; rank], &vec![u32::MAX; rank], &head.meta.shape] {
        found(footer::find_chunk(view, table, coord, 0));
        found(footer::find_chunk(view, table, coord, u64::MAX));
    }
    if found(read).is_none() {
        assert!(addresses.is_empty(), "entries were given that were not checked");
        return None;
    }
    let entries = found(footer::chunks(view, table, rank, some)).expect("read before");
    assert!(entries.iter().map(|entry| entry.address).eq(addresses.iter().copied()));
    if table.len <= CHUNKS_MAX && entries.is_sorted_by(|a, b| a.coord < b.coord) {
        for (at, entry) in (0u64..).zip(&entries) {
            for guess in [at, 0, u64::MAX] {
                let address = found(footer::find_chunk(view, table, &entry.coord, guess));
                assert_eq!(address, Some(Some(entry.address)));
            }
        }
    }
    Some((coords, addresses))
}

/// Has only the ranges that were asked for before.
struct Lazy {
    whole: Resident,
    here: RefCell<Vec<Range<u64>>>,
}

impl View for Lazy {
    fn len(&self) -> u64 {
        self.whole.len()
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?}");
        if range.is_empty() || self.here.borrow().contains(&range) {
            return self.whole.get(range);
        }
        Err(Stop::Lack(range))
    }
}

impl Lazy {
    fn drive<T>(&self, parser: impl Fn(&dyn View) -> Result<T, Stop>) -> Option<T> {
        loop {
            match parser(self) {
                Err(Stop::Lack(range)) => {
                    let mut here = self.here.borrow_mut();
                    assert!(!here.contains(&range), "asked twice for {range:?}");
                    here.push(range);
                }
                other => return found(other),
            }
        }
    }
}

/// A footer without its trailer.
pub(crate) fn footer(data: &[u8]) {
    let view = Resident(Bytes::copy_from_slice(data));
    let findings = footer::validate(&view, data.len() as u64);
    assert!(findings.len() <= FINDINGS_MAX);
    let whole = Whole::read(&view);
    let Some(root) = found(footer::root(&view)) else {
        assert!(!findings.is_empty());
        return;
    };
    // Piece by piece it gives the same as at once.
    let lazy = Lazy { whole: view.clone(), here: RefCell::default() };
    assert_eq!(lazy.drive(footer::root).as_ref(), Some(&root));
    let piecemeal = lazy.drive(|view| footer::array(view, &root, 0));
    assert_eq!(piecemeal, found(footer::array(&view, &root, 0)));

    let Some(whole) = whole else {
        assert!(!findings.is_empty(), "a footer that cannot be read is not valid");
        return;
    };
    let shown = whole.heads.iter().all(|head| head.chunks.len <= CHUNKS_MAX);
    if whole.root.version != 4 || !shown {
        return;
    }
    // The footer may have another layout, but it must have the same meaning.
    let rendered = whole.render().expect("values that were read fit");
    let view = Resident(rendered.into());
    let again = Whole::read(&view).expect("a rendered footer can be read");
    assert_eq!(
        (&again.blocks, &again.keys, &again.values),
        (&whole.blocks, &whole.keys, &whole.values)
    );
    assert_eq!(again.chunks, whole.chunks);
    assert!(
        again.heads.iter().map(|head| &head.meta).eq(whole.heads.iter().map(|head| &head.meta))
    );
    let refusals = footer::validate(&view, u64::MAX);
    let refusals: Vec<_> =
        refusals.iter().filter(|finding| finding.starts_with("readers of")).collect();
    assert!(refusals.is_empty(), "{refusals:?}");
}

/// Statistics, with and without the trailer.
pub(crate) fn statistics(data: &[u8]) {
    if let Err(error) = stats_file::parse_file(data) {
        is_about_bytes(&error);
    }
    match stats_file::parse_payload(data) {
        Err(error) => is_about_bytes(&error),
        Ok(stats) => {
            let rendered = stats_file::render_payload(&stats);
            assert_eq!(stats_file::parse_payload(&rendered).expect("written"), stats);
            let file = stats_file::render_file(&stats);
            assert_eq!(stats_file::parse_file(&file).expect("written"), stats);
        }
    }
}

/// Seals: as they are, and with the checksum and the magic made right.
pub(crate) fn seal(data: &[u8]) {
    check_seal(data);
    let Some(tail) = data.last_chunk::<104>() else { return };
    let count = tail[80..88].first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
    let covered = count.saturating_mul(24).saturating_add(104).min(data.len() as u64);
    let crc = crc32c::crc32c(&data[data.len() - covered as usize..]);
    check_seal(&[data, &crc.to_le_bytes(), b"CYARDAF1"].concat());
}

fn check_seal(bytes: &[u8]) {
    match seal::parse_tail(bytes) {
        Err(error) => is_about_bytes(&error),
        Ok(None) => {
            seal::parse(bytes).expect_err("there is none");
            return;
        }
        Ok(Some(tail)) => assert!(tail.parse_len() <= tail.seal_len()),
    }
    let seal = match seal::parse(bytes) {
        Err(error) => return is_about_bytes(&error),
        Ok(seal) => seal,
    };
    let parts = [seal.block_crcs(0..u64::MAX), seal.page_crcs(0..u64::MAX), seal.statistics()];
    assert!(parts[0].start == 0 && parts[0].end == parts[1].start);
    assert!(parts[1].end == parts[2].start && parts[2].end < seal.len());
    // If the counted parts can be made, the rendering is the same.
    if seal.blocks <= 100 && seal.footer_size <= 1 << 20 && seal.statistics_len <= 1000 {
        let zeros = |len: u64| vec![0; usize::try_from(len).expect("small")];
        let blocks = vec![0; seal.blocks as usize];
        let rendered = seal.render(&blocks, &zeros(seal.footer_size), &zeros(seal.statistics_len));
        assert_eq!(rendered.len() as u64, seal.len());
        same(&rendered, bytes, &seal);
    }
}

/// The absorbed layers and the tail have one rendering.
fn same(rendered: &[u8], bytes: &[u8], seal: &Seal) {
    assert_eq!(&seal::parse(rendered).expect("written"), seal);
    let len = seal.absorbed.len() * 24 + 116;
    assert_eq!(rendered[rendered.len() - len..], bytes[bytes.len() - len..]);
}
