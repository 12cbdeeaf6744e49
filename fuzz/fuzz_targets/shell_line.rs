//! libFuzzer's entry to `fuzz_shell_line`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gander_fuzz::fuzz_shell_line(data));
