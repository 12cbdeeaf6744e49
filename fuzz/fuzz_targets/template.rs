//! libFuzzer's entry to `fuzz_template`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_template(data));
