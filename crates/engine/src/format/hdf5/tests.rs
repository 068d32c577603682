//! Files that h5py and netCDF4 wrote, with what these libraries read back.

use chunkyard_array::{Codecs, ElementsBuf, Region, copy_region, fill_region};
use serde_json::Value;

use super::*;
use crate::store::{ChunkRef, Options, Store};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5");

fn store() -> Store {
    Store::open(FILES, &Options::default()).unwrap()
}

fn expected(file: &str) -> serde_json::Map<String, Value> {
    let text = std::fs::read(format!("{FILES}/expected.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    all[file].as_object().unwrap().clone()
}

async fn bytes_of(store: &Store, reference: &ChunkRef) -> bytes::Bytes {
    match reference {
        ChunkRef::Object { path, range } => store.get_range(path, range.clone()).await.unwrap(),
        ChunkRef::Inline(bytes) => bytes.clone(),
        ChunkRef::Remote { .. } => panic!("a file does not point elsewhere"),
    }
}

/// All elements of an array: little-endian bytes in hexadecimal, or a list of strings.
async fn elements(store: &Store, source: &Source, path: &str) -> Value {
    let (_, spec) = source.arrays().find(|(found, _)| *found == path).unwrap();
    let (grid, codecs) = (spec.grid().unwrap(), Codecs::new(spec).unwrap());
    if spec.data_type_name() == "string" {
        let Some(reference) = source.locate(path, 0).await.unwrap() else { panic!("{path}") };
        let decoded = codecs.decode(&bytes_of(store, &reference).await).unwrap();
        let ElementsBuf::Variable { bytes, offsets } = decoded else { panic!("{path}") };
        let text = |pair: &[u64]| {
            String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap()
        };
        return offsets.windows(2).map(text).collect();
    }
    let item = codecs.item_size().unwrap();
    let shape = spec.shape();
    let mut out = vec![0; Region::whole(shape).num_elements() as usize * item];
    for (number, index) in grid.chunks_in(&Region::whole(shape)).enumerate() {
        let stored = grid.clipped_region(&index);
        match source.locate(path, number as u64).await.unwrap() {
            Some(reference) => {
                let encoded = bytes_of(store, &reference).await;
                let decoded = codecs.decode(&encoded).unwrap();
                let ElementsBuf::Fixed(decoded) = decoded else { panic!("{path}") };
                let within = Region::whole(stored.shape());
                let (from, to) = (codecs.chunk_shape(), stored.origin());
                copy_region(&decoded, from, &within, &mut out, shape, to, item).unwrap();
            }
            None => fill_region(&mut out, shape, &stored, codecs.fill_element()).unwrap(),
        }
    }
    Value::from(out.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[tokio::test]
async fn every_element_is_what_the_writer_reads_back() {
    let store = store();
    for file in ["earliest.h5", "latest.h5", "user_block.h5", "netcdf.nc"] {
        let source = Source::open(&store, file).await.unwrap();
        let expected = expected(file);
        let mut compared = 0;
        for (path, spec) in source.arrays() {
            let Some(array) = expected.get(path) else { println!("{file}{path} ????"); continue };
            assert_eq!(Value::from(spec.shape()), array["shape"], "{file}{path}");
            if let Err(e) = source.stored(path).await { println!("{path} {e}"); continue }
            assert_eq!(elements(&store, &source, path).await, array["data"], "{file}{path}");
            compared += 1;
        }
        println!("{file} {compared} of {}", expected.len());
        for l in source.left_out() { println!("  - {} {}", l.path, l.why); }
        for (p, g) in source.groups() { if !g.attributes().is_empty() {println!("{p} {}", serde_json::to_string(g.attributes()).unwrap());} }
        for (p, a) in source.arrays() { if !a.attributes().is_empty() || a.dimension_names().is_some() {println!("{p} {} {:?}", serde_json::to_string(a.attributes()).unwrap(), a.dimension_names());} }
        for p in expected.keys() { if !source.arrays().any(|(f, _)| f == p) { println!("missing {p}") } }
    }
}
