//! Imports with the adapters of this workspace.

use std::path::Path;

use palog_import::{Directory, Options, Report, discover};

/// Imports every session at `source` into the directory `into`.
pub(crate) fn imported(source: &Path, into: &Path) -> Result<Report, String> {
    let found = discover(source, None).map_err(|e| e.to_string())?;
    let mut report = Report::default();
    for session in &found.sessions {
        let mut target = Directory::new(into);
        report.extend(session.import(&mut target, &Options::default()).map_err(|e| e.to_string())?);
    }
    Ok(report)
}
