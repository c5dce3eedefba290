//! Bytes as a file of pi.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| palog_fuzz::import(bytes, palog_import::Vendor::Pi));
