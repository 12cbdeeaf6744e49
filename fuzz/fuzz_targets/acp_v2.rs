//! libFuzzer's entry to `fuzz_acp_v2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_acp_v2(data));
