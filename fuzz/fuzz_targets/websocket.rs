//! libFuzzer's entry to `fuzz_websocket`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_websocket(data));
