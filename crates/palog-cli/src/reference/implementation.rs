//! The reference implementation, behind the same interface as any other.

use std::fs::File;
use std::path::Path;

use palog::blob::BlobStore;
use palog::diagnostic::{Diagnostics, Severity};
use palog::project::{At, context};
use palog::recover::{Context, recover};
use palog::reduce::reduce;
use palog_conformance::{Implementation, Import, Quality};
use serde_json::{Value, json};

use super::import::imported;

/// Importer, reducer, recovery and projection of this workspace.
pub(crate) struct Reference;

impl Implementation for Reference {
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String> {
        let report = imported(source, into)?;
        let outcome = quality(&report.diagnostics);
        Ok(Import { report: value(&report)?, outcome })
    }

    fn state(&self, log: &Path) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let (state, diagnostics) = reduce(file).map_err(|e| e.to_string())?;
        Ok(json!({"state": value(&state)?, "diagnostics": value(&diagnostics)?}))
    }

    fn recovery(&self, log: &Path) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let (state, _) = reduce(file).map_err(|e| e.to_string())?;
        value(&recover(&state, &Context::new()))
    }

    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String> {
        let file = File::open(log).map_err(|e| e.to_string())?;
        let at = before.map_or(At::Head, At::Before);
        let blobs = BlobStore::beside(log);
        value(&context(file, at, Some(&blobs)).map_err(|e| e.to_string())?)
    }
}

fn value(of: &impl serde::Serialize) -> Result<Value, String> {
    palog_conformance::json::value(&serde_json::to_string(of).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn quality(diagnostics: &Diagnostics) -> Quality {
    if diagnostics.count(Severity::Error) > 0 {
        Quality::Partial
    } else if diagnostics.count(Severity::Void) + diagnostics.count(Severity::Warning) > 0 {
        Quality::Diagnosed
    } else {
        Quality::Clean
    }
}
