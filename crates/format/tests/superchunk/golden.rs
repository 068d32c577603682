//! Files of BLZ and bcolz are read, element by element.

use std::path::{Path, PathBuf};

use chunkyard_array::{ByteOrder, OutputMemory as _, Region};
use chunkyard_format::Place;
use chunkyard_format::superchunk::dtype::{self, RowType};
use chunkyard_format::superchunk::{Blz, Column};
use chunkyard_store::Options;

use super::support::open;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/superchunk")
}

/// The type of a `.npy` file, and its elements as they are stored.
fn npy(path: &Path) -> (RowType, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + len]).unwrap();
    let descr = header.split("'descr': ").nth(1).unwrap();
    let descr = descr.split(", 'fortran_order'").next().unwrap();
    (dtype::parse(descr).unwrap(), bytes[10 + len..].to_vec())
}

/// All rows of a column, in the byte order of the file.
async fn read(blz: &Blz, column: &Column) -> Vec<u8> {
    let node = blz.node(&column.path).unwrap();
    let reader = blz.reader(&column.path).unwrap();
    let mut read = reader.read_region(&Region::whole(node.spec.shape())).await.unwrap();
    let mut bytes = read.as_mut_slice().to_vec();
    if let RowType::Plain { dtype, order: ByteOrder::Big } = &column.row {
        bytes.chunks_exact_mut(dtype.item_size().unwrap()).for_each(<[u8]>::reverse);
    }
    bytes
}

/// One field of rows of a struct.
fn field(rows: &[u8], row: &RowType, name: &str) -> Vec<u8> {
    let RowType::Struct(fields) = row else { panic!("{row:?} is no struct") };
    let whole = dtype::item_bytes(row) as usize;
    let mut at = 0;
    for field in fields {
        let items: u64 = field.shape.iter().product();
        let bytes = (dtype::item_bytes(&field.kind) * items) as usize;
        if field.name == name {
            return rows.chunks_exact(whole).flat_map(|row| row[at..at + bytes].to_vec()).collect();
        }
        at += bytes;
    }
    panic!("no field {name}")
}

#[tokio::test]
async fn directories_of_other_programs_are_read() {
    let mut seen = 0;
    for program in ["bcolz", "blz"] {
        for entry in std::fs::read_dir(testdata().join(program)).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                continue;
            }
            let expected = path.with_extension("npy");
            let (row, rows) = npy(&expected);
            let place = Place::new(path.to_str().unwrap(), &Options::default()).unwrap();
            let blz = open(&place).await;
            assert_eq!(blz.cautions(), [""; 0], "{path:?}");
            for column in blz.columns().iter() {
                let found = read(&blz, column).await;
                match blz.is_table() {
                    true => assert_eq!(
                        found,
                        field(&rows, &row, &column.path[1..]),
                        "{path:?} {}",
                        column.path
                    ),
                    false => assert_eq!(found, rows, "{path:?}"),
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} directories");
}
