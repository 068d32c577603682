//! NumPy files. Reading them belongs to the command, and a binary has no interface: so its source is
//! compiled in here. The header, which it hands to `array`, is reached this way alone.

#[expect(dead_code, unused_imports, reason = "the command uses all of it")]
#[path = "../../../crates/cli/src/npy/mod.rs"]
mod command;

use std::io::Cursor;

use chunkyard_array::numpy::npy;
use chunkyard_engine::Error;

use self::command::Reader;

/// Files longer than this are not read to the end.
const ELEMENTS_MAX: u64 = 1 << 12;

/// A file, as if from a disk and as if from a pipe.
pub(crate) fn check(data: &[u8]) {
    for length in [None, Some(data.len() as u64)] {
        let source = Box::new(Cursor::new(data.to_vec()));
        let mut reader = match Reader::new("fuzzed", source, length) {
            Ok(reader) => reader,
            Err(error) => {
                let about = matches!(
                    error,
                    Error::Corrupt { .. }
                        | Error::Invalid { .. }
                        | Error::Unsupported { .. }
                        | Error::Array(_)
                );
                assert!(about, "a file cannot cause {error:?}");
                continue;
            }
        };
        let header = reader.header().clone();
        let count = header.shape.iter().fold(1u64, |count, &n| count.saturating_mul(n));
        if let Ok(rendered) = npy::render_plain(&header.dtype, &header.shape) {
            let source = Box::new(Cursor::new(rendered));
            let again = Reader::new("fuzzed", source, None).expect("a written file can be read");
            assert_eq!(again.header().shape, header.shape);
            assert_eq!(again.header().dtype, header.dtype);
        }
        match reader.read_slab(&header.shape) {
            Ok(slab) => assert_eq!(slab.len() as u64, count * reader.item_size() as u64),
            Err(error) => assert!(length.is_none() && matches!(error, Error::Corrupt { .. })),
        }
        assert!(count <= ELEMENTS_MAX.max(data.len() as u64) || length.is_none());
    }
}
