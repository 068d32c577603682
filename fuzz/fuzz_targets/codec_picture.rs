#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| chunkyard_fuzz::run("codec_picture", data));
