//! State files.

use chunkyard_engine::repo::{State, Version, hostile};

use crate::error::is_about_bytes;

/// Below the checksum, where the fuzzer chooses the whole document; and above it.
pub(crate) fn check(data: &[u8]) {
    if let Err(error) = hostile::parse_state(data) {
        is_about_bytes(&error);
    }
    let state = match State::parse(data, hostile::FILE) {
        Ok(state) => state,
        Err(error) => return is_about_bytes(&error),
    };
    let rendered = state.render().expect("a parsed state can be rendered");
    let again = State::parse(&rendered, hostile::FILE).expect("a rendered state can be parsed");
    assert_eq!(again, state);

    // Questions that readers and writers ask of any state.
    for reference in state.refs.values() {
        assert!(state.ancestry(&reference.snapshot_id).count() <= state.snapshots.len());
    }
    assert!(state.reachable().len() <= state.snapshots.len());
    for version in [Version::Default, Version::Named(state.id.clone())] {
        let _found = state.resolve(&version).is_ok();
    }
    let next = state.successor(0).expect("a state that is accepted can be replaced");
    assert_eq!(next.generation, state.generation + 1);
    if !state.unknown.contains_key("crc32c") {
        let sealed = hostile::seal_state(&next).expect("a state can be sealed");
        assert_eq!(hostile::parse_state(&sealed).expect("a sealed state can be opened"), next);
    }
}
