//! Labelmaps by DVID's interface, against what a real DVID answered and by what its clients ask.

mod edits;
mod golden;
mod hostile;
mod names;
mod support;
mod voxels;
