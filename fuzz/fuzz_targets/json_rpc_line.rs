//! libFuzzer's entry to `fuzz_json_rpc_line`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_json_rpc_line(data));
