//! The report of `palog import`.

use std::collections::BTreeMap;

use palog::diagnostic::Severity;
use palog_claude_code as claude_code;
use serde::Serialize;

use crate::output::diagnostics::{Finding, findings};

/// What an import wrote, read and found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    logs: Vec<Log>,
    inputs: Vec<Input>,
    diagnostics: Vec<Finding>,
}

/// One log that was written.
#[derive(Debug, Serialize)]
struct Log {
    /// Absent where it went to standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    session: String,
    /// The session that a subagent belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    format: &'static str,
    records: u64,
    events: u64,
    severities: Severities,
}

/// Findings about one log, by severity.
#[derive(Debug, Serialize)]
struct Severities {
    error: u64,
    void: u64,
    warning: u64,
    info: u64,
}

/// One file that was read.
#[derive(Debug, Serialize)]
struct Input {
    path: String,
    format: String,
    lines: u64,
    records: u64,
    fragments: u64,
    by_type: BTreeMap<String, u64>,
    kept: u64,
    foreign: u64,
}

impl Report {
    /// The report of an adapter in the form that is printed.
    pub(crate) fn new(report: &claude_code::Report) -> Self {
        let logs = report.logs.iter().map(|log| {
            let of = |severity| log.severities.get(&severity).copied().unwrap_or_default();
            Log {
                path: log.path.as_ref().map(|p| p.to_string_lossy().into_owned()),
                session: log.session.clone(),
                parent: log.parent.clone(),
                format: claude_code::FORMAT.name,
                records: log.records,
                events: log.events,
                severities: Severities {
                    error: of(Severity::Error),
                    void: of(Severity::Void),
                    warning: of(Severity::Warning),
                    info: of(Severity::Info),
                },
            }
        });
        let inputs = report.inputs.iter().map(|input| Input {
            path: input.path.clone(),
            format: input.format.clone(),
            lines: input.lines,
            records: input.records,
            fragments: input.fragments,
            by_type: input.by_type.clone(),
            kept: input.kept,
            foreign: input.foreign,
        });
        Report { logs: logs.collect(), inputs: inputs.collect(), diagnostics: findings(&report.diagnostics) }
    }
}
