//! libFuzzer's entry to `fuzz_adk`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_adk(data));
