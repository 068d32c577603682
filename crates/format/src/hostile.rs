//! How tests and fuzzers reach the parsers of this crate: one name each, and no other door.
//!
//! A fuzzer that stops at a checksum, a bridge or a store tests nothing, so everything here starts below them, with
//! bytes alone. Not part of the interface, and free to change.

pub use crate::hdf5::hostile::{Hdf5Content, read_hdf5};

/// The files of a Badger directory.
pub mod badger {
    pub use crate::badger::hostile::*;
}

/// The answers of a DVID server.
pub mod dvid_http {
    pub use crate::dvid_http::Info;
    pub use chunkyard_store::dvid_http::{
        Asked, BlockRecords, IndexRecords, LabelRecords, MappingRecords,
    };
}

/// The parts of a container's files.
pub mod container {
    /// Archived footers, read without trust.
    pub mod archive {
        pub use crate::container::archive::*;
    }
    /// Lists within lists, as a chunk holds them.
    pub mod elements {
        pub use crate::container::elements::*;
    }
    /// What a layer says about its arrays.
    pub mod footer {
        pub use crate::container::footer::*;
    }
    /// Checksum and lineage of a layer.
    pub mod seal {
        pub use crate::container::seal::*;
    }
    /// The last bytes of a layer.
    pub mod trailer {
        pub use crate::container::trailer::*;
    }
    /// Statistics of all arrays.
    pub mod stats_file {
        pub use crate::container::stats_file::*;
    }
}

/// The files of a superchunk directory.
pub mod superchunk {
    /// Heads and offsets of Bloscpack files.
    pub mod bloscpack {
        pub use crate::superchunk::bloscpack::*;
    }
    /// NumPy's texts for types.
    pub mod dtype {
        pub use crate::superchunk::dtype::*;
    }
    /// The documents below `meta/`.
    pub mod meta {
        pub use crate::superchunk::meta::*;
    }
    /// Which file is which superchunk.
    pub mod names {
        pub use crate::superchunk::names::*;
    }
}

/// The parts of DVID's store.
pub mod dvid {
    pub use crate::dvid::hostile::*;
}

/// Neuroglancer's volumes.
pub mod precomputed {
    pub use crate::precomputed::hostile::*;
}
