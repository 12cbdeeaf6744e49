//! libFuzzer's entry to `fuzz_session_import`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_session_import(data));
