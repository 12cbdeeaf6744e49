//! libFuzzer's entry to `fuzz_sse`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_sse(data));
