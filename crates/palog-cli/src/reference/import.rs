//! Imports with the adapters of this workspace.

use std::path::Path;

use palog_import::{Directory, Options, Report, discover};

use super::valid;

/// Imports every session at `source` into the directory `into`. Every log is valid.
pub(crate) fn imported(source: &Path, into: &Path) -> Result<Report, String> {
    let found = discover(source, None).map_err(|e| e.to_string())?;
    let mut report = Report::default();
    for session in &found.sessions {
        let mut target = Directory::new(into);
        report.extend(session.import(&mut target, &Options::default()).map_err(|e| e.to_string())?);
    }
    for path in report.logs.iter().filter_map(|log| log.path.as_deref()) {
        valid::check(&std::fs::read(path).map_err(|e| e.to_string())?, Some(path))
            .map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(report)
}
