//! Bytes as a log.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palog_fuzz::read(bytes));
