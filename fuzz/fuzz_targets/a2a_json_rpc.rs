//! libFuzzer's entry to `fuzz_a2a_json_rpc`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_a2a_json_rpc(data));
