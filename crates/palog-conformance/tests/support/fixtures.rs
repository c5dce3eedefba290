//! Where things lie.

use std::path::{Path, PathBuf};

/// Where the fixtures lie.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures")
}
