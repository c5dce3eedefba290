//! The result of `palog validate`.

use serde::Serialize;

use crate::output::diagnostics::Finding;

/// What was found of each log.
#[derive(Debug, Serialize)]
pub(crate) struct Validation {
    pub(crate) logs: Vec<Log>,
}

/// What was found of one log.
#[derive(Debug, Serialize)]
pub(crate) struct Log {
    pub(crate) path: String,
    pub(crate) valid: bool,
    pub(crate) diagnostics: Vec<Finding>,
}
