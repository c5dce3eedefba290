//! Runs a case about a log.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Outcome;
use crate::case::{LogCase, Operation};
use crate::compare;
use crate::implementation::Implementation;
use crate::json;

pub(super) fn run(case: &LogCase, implementation: &dyn Implementation) -> Result<Outcome, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    if !case.patches.is_empty() {
        let base = place(folder.path(), "base", &case.base()?, case.base_blobs.as_deref())?;
        passes(case.operation, implementation, &base).map_err(|why| format!("the base does not pass: {why}"))?;
    }
    let log = place(folder.path(), "input", &case.bytes()?, case.blobs.as_deref())?;
    let mut failures = Vec::new();
    let mut compared = |what: &str, found: &Value, expected: &Value| {
        compare::document(what, found, expected, case.partial, &mut failures);
    };
    let found = match case.operation {
        Operation::Read => {
            let read = implementation.read(&log, case.after.as_deref()).map_err(|e| format!("read: {e}"))?;
            if let Some(expected) = &case.expected.events {
                compared("events", &read["events"], expected);
            }
            match case.after {
                Some(_) => read,
                None => implementation.validate(&log).map_err(|e| format!("validate: {e}"))?,
            }
        }
        Operation::Reduce | Operation::Recover => {
            let reduced = implementation.state(&log).map_err(|e| format!("state: {e}"))?;
            if let Some(expected) = &case.expected.state {
                compared("state", &reduced["state"], expected);
            }
            if let Some(expected) = &case.expected.context {
                let context = implementation.context(&log, None).map_err(|e| format!("context: {e}"))?;
                compared("context", &context, expected);
            }
            if let Some(expected) = &case.expected.recovery {
                let recovery = implementation.recovery(&log, &case.world).map_err(|e| format!("recovery: {e}"))?;
                compared("recovery", &recovery, expected);
            }
            reduced
        }
    };
    compare::codes(json::list(&found, "/diagnostics"), &case.codes, &mut failures);
    Ok(Outcome { failures })
}

/// What is wrong is what the patch changes, and nothing else.
fn passes(operation: Operation, implementation: &dyn Implementation, base: &Path) -> Result<(), String> {
    let found = match operation {
        Operation::Read => implementation.validate(base)?,
        Operation::Reduce | Operation::Recover => implementation.state(base)?,
    };
    let mut failures = Vec::new();
    compare::codes(json::list(&found, "/diagnostics"), &[], &mut failures);
    if failures.is_empty() { Ok(()) } else { Err(failures.join(", ")) }
}

/// Puts a log and its blobs into a folder.
fn place(folder: &Path, name: &str, bytes: &[u8], blobs: Option<&Path>) -> Result<PathBuf, String> {
    let log = folder.join(format!("{name}.palog.jsonl"));
    fs::write(&log, bytes).map_err(|e| format!("{}: {e}", log.display()))?;
    if let Some(blobs) = blobs {
        copy(blobs, &folder.join(format!("{name}.palog.blobs"))).map_err(|e| format!("{}: {e}", blobs.display()))?;
    }
    Ok(log)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
