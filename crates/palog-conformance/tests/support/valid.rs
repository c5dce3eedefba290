//! Every log that a test produces is valid, and so is each of its lines against the published schema.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use palog::blob::BlobStore;
use palog::diagnostic::{Code, Severity};
use palog::validate::{Options, validate};
use palog_conformance::json;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/v1/event.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema of an event is committed");
    jsonschema::validator_for(&json::value(&text).expect("JSON")).expect("a schema")
});

/// Lines that were found to be valid: the prefixes of a log share them.
static KNOWN: LazyLock<Mutex<HashSet<Vec<u8>>>> = LazyLock::new(Mutex::default);

/// Checks the bytes of a log, in which nothing came too late; `path` is where it lies, if it does, for its blobs.
pub(crate) fn check(bytes: &[u8], path: Option<&Path>) -> Result<(), String> {
    check_but(bytes, path, &[])
}

/// The same, where some things came too late: so often is each of these codes void.
pub(crate) fn check_but(bytes: &[u8], path: Option<&Path>, late: &[(Code, u64)]) -> Result<(), String> {
    let blobs = path.map(BlobStore::beside);
    let options = blobs.as_ref().map_or_else(Options::new, |store| Options::new().with_blobs(store));
    let validation = validate(bytes, &options).map_err(|e| e.to_string())?;
    let errors = validation
        .diagnostics
        .groups()
        .iter()
        .filter(|g| g.severity == Severity::Error || g.severity == Severity::Void)
        .filter(|g| g.severity == Severity::Error || !late.contains(&(g.code, g.count)));
    let errors: Vec<String> =
        errors.map(|g| format!("{} at {:?}", g.code, g.first.first().map(|d| (&d.place, &d.why)))).collect();
    if !errors.is_empty() {
        return Err(format!("the log is invalid: {errors:?}"));
    }
    let lines = bytes.strip_suffix(b"\n").ok_or("the log does not end in a line feed")?.split(|b| *b == b'\n');
    for line in lines {
        if KNOWN.lock().map_err(|e| e.to_string())?.contains(line) {
            continue;
        }
        let text = std::str::from_utf8(line).map_err(|e| e.to_string())?;
        let event = json::value(text).map_err(|e| e.to_string())?;
        if let Err(error) = SCHEMA.validate(&event) {
            return Err(format!("{error} at {}: {text}", error.instance_path()));
        }
        KNOWN.lock().map_err(|e| e.to_string())?.insert(line.to_vec());
    }
    Ok(())
}
