//! Segmentations as Arrow shards and as volumes for Neuroglancer.

mod crash;
mod dvid;
mod shapes;
mod sources;
mod support;
mod tables;
