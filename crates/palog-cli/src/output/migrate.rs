//! The document of `palog migrate`.

use palog_import::LossReport;
use serde::Serialize;

/// How a session was moved.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Migration {
    /// The log, which is closed as transferred.
    pub(crate) log: String,
    /// The file that was written, or would be.
    pub(crate) path: String,
    /// Whether it was written.
    pub(crate) written: bool,
    /// The command that goes on with it; absent where it cannot be copied into a shell as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
    /// What is lost.
    pub(crate) report: LossReport,
}
