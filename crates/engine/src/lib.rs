//! Chunkyard engine.
