//! The result of `palog export` to tables.

use palog::diagnostic::Diagnostics;
use serde::Serialize;

/// What was written, and what was found on the way.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Exported {
    /// Logs that were not there.
    pub(crate) added: u64,
    /// Logs whose rows were replaced, since they went on.
    pub(crate) replaced: u64,
    /// Logs that were there as they are.
    pub(crate) unchanged: u64,
    /// Rows that were written.
    pub(crate) rows: Rows,
    /// What was refused, and lines that are no events.
    pub(crate) diagnostics: Diagnostics,
}

/// Rows by table.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Rows {
    /// One for each line.
    pub(crate) events: u64,
    /// One for each action.
    pub(crate) actions: u64,
    /// One for each log.
    pub(crate) sessions: u64,
}
