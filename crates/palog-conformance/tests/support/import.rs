//! Imports with the adapter of this workspace.

use std::path::{Path, PathBuf};

#[path = "../../../palog-cli/src/reference/import.rs"]
mod shared;

pub(crate) use shared::imported;

/// Where the fixtures lie.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures")
}
