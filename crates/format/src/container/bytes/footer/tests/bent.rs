//! Footers rendered here, then read in pieces, searched and damaged.

use std::cell::RefCell;

use bytes::Bytes;

use super::super::super::archive::Resident;
use super::*;
use crate::container::model::{ArrayMeta, ChunkAddress, DType, IndexWidth};

/// An array of one dimension with these chunks.
fn one_array(meta: &ArrayMeta, coords: &[u32]) -> Resident {
    let address = |at| ChunkAddress { block: 0, offset: at, size: 1 };
    let addresses: Vec<_> = (0..coords.len() as u32).map(address).collect();
    let block = BlockMeta {
        id: 0,
        file_offset: 0,
        compressed_size: 9,
        uncompressed_size: 1 << 20,
        codec: Some("zstd".into()),
    };
    let footer = NewFooter {
        blocks: &[block],
        arrays: &[NewArray { meta, coords, addresses: &addresses }],
        attr_keys: &[],
        attr_values: &[],
        overlay_index: 0,
        base_file_hint: "",
    };
    Resident(render(&footer).unwrap().into())
}

fn line(len: u32) -> ArrayMeta {
    ArrayMeta {
        name: "line".into(),
        dtype: DType::UInt8,
        shape: vec![len],
        dimension_names: vec!["x".into()],
        chunk_shape: vec![1],
        fill_value: None,
        deleted: false,
        attributes: vec![],
        index_width: IndexWidth::U16,
    }
}

#[test]
fn a_chunk_is_found_from_any_guess_in_full_and_in_sparse_tables() {
    let full: Vec<u32> = (0..50).collect();
    let sparse: Vec<u32> = (0..50).map(|at| at * at + 3).collect();
    for coords in [&full[..], &sparse, &sparse[..1], &[]] {
        let view = one_array(&line(3000), coords);
        let table = found(array(&view, &found(root(&view)), 0)).chunks;
        for wanted in 0..3000u32 {
            for guess in [u64::from(wanted), 0, 20, u64::MAX] {
                let expected = coords.iter().position(|at| *at == wanted);
                let address = found(find_chunk(&view, &table, &[wanted], guess));
                assert_eq!(address.map(|at| at.offset as usize), expected, "{wanted} {guess}");
            }
        }
        assert_eq!(validate(&view, 9), [""; 0]);
    }
}

/// Returns bytes only where they have been asked for before.
struct Lazy {
    whole: Resident,
    here: RefCell<Vec<Range<u64>>>,
}

impl View for Lazy {
    fn len(&self) -> u64 {
        self.whole.len()
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        if !range.is_empty() && !self.here.borrow().contains(&range) {
            return Err(Stop::Lack(range));
        }
        self.whole.get(range)
    }
}

impl Lazy {
    /// Calls a parser until no bytes are missing; returns the number of calls.
    fn drive<T>(&self, parser: impl Fn(&dyn View) -> Result<T, Stop>) -> (T, usize) {
        for lacks in 0.. {
            match parser(self) {
                Ok(value) => return (value, lacks),
                Err(Stop::Lack(range)) => {
                    assert!(range.end <= self.len());
                    self.here.borrow_mut().push(range);
                }
                Err(Stop::Corrupt(error)) => panic!("{error}"),
            }
        }
        unreachable!()
    }
}

#[test]
fn parsers_ask_for_what_they_lack_and_only_for_that() {
    let coords: Vec<u32> = (0..1000).collect();
    let lazy = Lazy { whole: one_array(&line(1000), &coords), here: RefCell::default() };
    let (root, _) = lazy.drive(root);
    let (head, _) = lazy.drive(|view| array(view, &root, 0));
    assert_eq!(head.meta, line(1000));
    let (address, lacks) = lazy.drive(|view| find_chunk(view, &head.chunks, &[700], 700));
    assert_eq!((address.unwrap().offset, lacks), (700, 2));
    let (entries, lacks) = lazy.drive(|view| chunks(view, &head.chunks, 1, 100..200));
    assert_eq!((entries.len(), lacks), (100, 2));
    let fetched: u64 = lazy.here.borrow().iter().map(|range| range.end - range.start).sum();
    assert!(fetched < 5000, "{fetched}");
}

#[test]
fn coords_that_are_scattered_are_read_all_the_same() {
    // Two entries whose coords are far apart: the second points to the first u32 of the footer.
    let view = one_array(&line(5000), &(0..5000).collect::<Vec<_>>());
    let table = found(array(&view, &found(root(&view)), 0)).chunks;
    let mut bytes = view.0.to_vec();
    let last = table.at + 4999 * 32;
    let place = last as usize..last as usize + 8;
    // The coords begin where the first entry points to.
    let first = found(Record::read(&view, table.at, 8)).target(0).unwrap();
    bytes[place].copy_from_slice(&first.wrapping_sub(last).to_le_bytes());
    let bent = Resident(bytes.into());
    let entries = found(chunks(&bent, &table, 1, 4990..5000));
    let coords: Vec<_> = entries.iter().map(|entry| entry.coord[0]).collect();
    assert_eq!(coords, [4990, 4991, 4992, 4993, 4994, 4995, 4996, 4997, 4998, 0]);
    let findings = validate(&bent, 9);
    assert!(findings[0].contains("readers of array-format refuse the footer"), "{findings:?}");
    assert!(findings[1].contains("chunk [0] is there more than once"), "{findings:?}");
}

#[test]
fn another_version_with_the_root_of_this_one_is_corrupt() {
    let view = one_array(&line(1), &[0]);
    // Only version 4 has these tables in its root, so another number there is damage.
    for version in [1u8, 3, 7] {
        let mut bytes = view.0.to_vec();
        let at = bytes.len() - 96;
        bytes[at] = version;
        let said = refused(root(&Resident(bytes.into())));
        let expected = format!("expected a footer of version 4 or 5, found version {version}");
        assert!(said.ends_with(&expected), "{said}");
    }
    for len in [0, 8, 71, 95, 96] {
        let error = match root(&Resident(vec![0xee; len].into())) {
            Err(Stop::Corrupt(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt);
    }
}

#[test]
fn findings_of_validate_have_names_and_numbers() {
    let mut meta = line(3);
    meta.attributes = vec![(1, 0)];
    meta.dimension_names.push("y".into());
    let findings = validate(&one_array(&meta, &[0, 1, 7]), 5);
    assert_eq!(
        findings,
        [
            "block 0: 9 bytes at 0 are not within the 5 bytes of data",
            "array \"line\" has 1 dimensions and names for 2",
            "array \"line\": attribute key 1 of 0",
            "array \"line\": attribute value 0 of 0",
            "array \"line\": chunk [7] is not on its grid [3]",
        ]
    );
}

#[test]
fn values_that_do_not_fit_a_footer_are_not_written() {
    let write = |meta: &ArrayMeta, coords: &[u32]| {
        let array =
            NewArray { meta, coords, addresses: &[ChunkAddress { block: 0, offset: 0, size: 1 }] };
        let footer = NewFooter {
            blocks: &[],
            arrays: &[array],
            attr_keys: &[],
            attr_values: &[],
            overlay_index: 0,
            base_file_hint: "",
        };
        render(&footer).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(write(&line(1), &[0]), Ok(()));
    assert!(write(&line(1), &[0, 1]).unwrap_err().contains("2 numbers in their coords"));
    let attributes = vec![(0, 65536)];
    let narrow = ArrayMeta { attributes: attributes.clone(), ..line(1) };
    assert!(write(&narrow, &[0]).unwrap_err().contains("attribute index 65536"));
    let wide = ArrayMeta { attributes, index_width: IndexWidth::U32, ..line(1) };
    assert_eq!(write(&wide, &[0]), Ok(()));
    let deep = |depth| {
        let nest = |child, _| DType::List { child: Box::new(child) };
        ArrayMeta { dtype: (1..depth).fold(DType::Int8, nest), ..line(1) }
    };
    assert_eq!(write(&deep(64), &[0]), Ok(()));
    assert!(write(&deep(65), &[0]).unwrap_err().contains("nested 64 deep or more"));
    let view = one_array(&deep(64), &[0]);
    assert_eq!(found(array(&view, &found(root(&view)), 0)).meta, deep(64));
}
