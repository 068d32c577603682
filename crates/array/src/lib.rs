//! Chunkyard array model.
