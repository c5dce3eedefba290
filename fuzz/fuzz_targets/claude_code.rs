#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palog_fuzz::claude_code(bytes));
