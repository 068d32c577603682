//! `chunkyard._engine`: the engine for Python, as thin as it can be.
//!
//! Each file is a noun. Arguments are translated, the interpreter is released, the engine is called,
//! its error becomes an exception; the interface for users is written in Python on top, in
//! `python/chunkyard/`.
//!
//! - `runtime` is the one place that waits: it lets other Python threads run and honours Ctrl-C.
//! - `bridge` is for callers in asyncio.
//! - `memory` lends memory of Python to the engine, so that chunks are decoded into the NumPy array.
//! - `error` maps each sort of error once.
//! - `json` turns documents into objects of Python and back.

mod array;
mod blz;
mod bridge;
mod checksum;
mod container;
mod convert;
mod editor;
mod error;
mod export;
mod json;
mod keys;
mod label_blocks;
mod labels;
mod memory;
mod options;
mod refs;
mod repository;
mod runtime;
mod selection;
mod session;
mod shards;
mod source;
mod spec;
mod table;
mod volume;
mod watch;
mod workers;

use pyo3::prelude::*;

/// The native half of the package.
#[pymodule]
mod _engine {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::blz::{Blz, create_blz, open_blz};
    #[pymodule_export]
    use crate::checksum::{crc32c, crc32c_pieces};
    #[pymodule_export]
    use crate::container::{Container, list_element, list_json, open_container};
    #[pymodule_export]
    use crate::convert::{Conversion, link, verify};
    #[pymodule_export]
    use crate::editor::{Editor, create_editor, open_editor};
    #[pymodule_export]
    use crate::export::{make_export_job, work_on};
    #[pymodule_export]
    use crate::keys::{Keys, Listing};
    #[pymodule_export]
    use crate::label_blocks::{LabelBlocks, from_segmentation, to_segmentation};
    #[pymodule_export]
    use crate::labels::{Labelmap, diff_labels, merge_labels};
    #[pymodule_export]
    use crate::repository::Repository;
    #[pymodule_export]
    use crate::runtime::shut_down;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::shards::{StoredObject, shard_block};
    #[pymodule_export]
    use crate::source::{Source, open_source};
    #[pymodule_export]
    use crate::spec::array_document;
    #[pymodule_export]
    use crate::table::TableScan;
    #[pymodule_export]
    use crate::workers::{Coordinator, Tasks, Worker};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::start_logging(module.py());
        Ok(())
    }
}

/// Sends Rust's log messages (mostly retries of requests) to `logging`, by the names of the modules.
fn start_logging(py: Python<'_>) {
    let logger = pyo3_log::Logger::new(py, pyo3_log::Caching::LoggersAndLevels);
    let installed = logger.map(|logger| logger.filter(log::LevelFilter::Info).install().is_ok());
    if !matches!(installed, Ok(true)) {
        // Another extension in this process has set the logger, and gets our messages too.
    }
}
