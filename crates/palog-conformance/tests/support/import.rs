//! Imports with the adapters of this workspace.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use palog_claude_code::{Directory, ImportError, Options, Report, Target};

/// Where the fixtures lie.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance-fixtures")
}

/// A session of either vendor.
#[expect(clippy::large_enum_variant, reason = "there are few of them")]
pub(crate) enum Session {
    ClaudeCode(palog_claude_code::Session),
    Codex(palog_codex::Session),
}

impl Session {
    /// Imports it.
    pub(crate) fn import(&self, target: &mut dyn Target) -> Result<Report, ImportError> {
        match self {
            Session::ClaudeCode(session) => palog_claude_code::import(session, target, &Options::default()),
            Session::Codex(session) => palog_codex::import(session, target, &Options::default()),
        }
    }

    /// Its id, as far as that is told without reading it.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Session::ClaudeCode(session) => session.id(),
            Session::Codex(session) => session.id(),
        }
    }
}

/// The sessions at `source`, a file by its content.
pub(crate) fn sessions(source: &Path) -> Result<Vec<Session>, String> {
    let mut head = Vec::new();
    if source.is_file() {
        let file = File::open(source).map_err(|e| e.to_string())?;
        file.take(1 << 18).read_to_end(&mut head).map_err(|e| e.to_string())?;
    }
    let mut sessions = Vec::new();
    if source.is_dir() || palog_codex::recognises(&head) {
        let found = palog_codex::discover(source).map_err(|e| e.to_string())?;
        sessions.extend(found.sessions.into_iter().map(Session::Codex));
    }
    if sessions.is_empty() {
        let found = palog_claude_code::discover(source).map_err(|e| e.to_string())?;
        sessions.extend(found.sessions.into_iter().map(Session::ClaudeCode));
    }
    Ok(sessions)
}

/// Imports every session at `source` into the directory `into`.
pub(crate) fn imported(source: &Path, into: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    for session in sessions(source)? {
        let mut target = Directory::new(into);
        let imported = session.import(&mut target).map_err(|e| format!("{}: {e}", session.id().unwrap_or_default()))?;
        report.extend(imported);
    }
    Ok(report)
}
