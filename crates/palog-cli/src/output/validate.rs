//! The result of `palog validate`.

use palog::diagnostic::Diagnostics;
use serde::Serialize;

/// What was found of each log.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Validation {
    /// The logs, as they were given.
    pub(crate) logs: Vec<Log>,
}

/// What was found of one log.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Log {
    /// Where it is, as it was given.
    pub(crate) path: String,
    /// Whether nothing in it is corrupt or illegal.
    pub(crate) valid: bool,
    /// What was found.
    pub(crate) diagnostics: Diagnostics,
}
