#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| chunkyard_fuzz::run("dvid_index", data));
