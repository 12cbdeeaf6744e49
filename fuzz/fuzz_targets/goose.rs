//! libFuzzer's entry to `fuzz_goose`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_goose(data));
