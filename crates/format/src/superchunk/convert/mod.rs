//! BLZ as a source and as a sink of the pipeline.

pub(crate) mod draft;
pub(crate) mod express;
pub(crate) mod pack_writer;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod tree;
