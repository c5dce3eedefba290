//! What holds of any bytes at all. The conformance tests check the same with fixtures that they damage.

#[path = "../../crates/palog-conformance/tests/support/anything.rs"]
mod anything;

use palog_import::Vendor;

/// Reads bytes as a log.
pub fn read(log: &[u8]) {
    anything::read(log);
}

/// Imports bytes as a session.
pub fn import(source: &[u8], vendor: Vendor) {
    anything::import(source, vendor);
}
