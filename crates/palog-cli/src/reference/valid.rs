//! Every log that an import makes must be valid.

use std::path::Path;

use palog::blob::BlobStore;
use palog::diagnostic::Severity;
use palog::validate::{Options, validate};

/// Validates a log with the blobs beside `path`; the error names what is wrong first.
pub(crate) fn check(bytes: &[u8], path: Option<&Path>) -> Result<(), String> {
    let blobs = path.map(BlobStore::beside);
    let options = blobs.as_ref().map_or_else(Options::new, |store| Options::new().with_blobs(store));
    let found = validate(bytes, &options).map_err(|e| e.to_string())?.diagnostics;
    let wrong = found.groups().iter().find(|g| matches!(g.severity, Severity::Error | Severity::Void));
    match wrong {
        Some(group) => {
            Err(format!("the log is invalid: {} at {:?}", group.code, group.first.first().map(|d| &d.place)))
        }
        None => Ok(()),
    }
}
