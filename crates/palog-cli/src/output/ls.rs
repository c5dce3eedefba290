//! The list of `palog ls`.

use palog::recover::Verdict;
use palog_adapter::Listed;
use serde::Serialize;

/// The sessions on a machine.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Sessions {
    /// The sessions, that of the latest activity first.
    pub(crate) sessions: Vec<Session>,
    /// Files whose names say that they hold a session, and whose content does not or cannot be read.
    pub(crate) unrecognised: Vec<String>,
}

/// A session.
#[derive(Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Session {
    /// What its first and last records tell.
    #[serde(flatten)]
    pub(crate) listed: Listed,
    /// What may happen next, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<Verdict>,
    /// Why there is no verdict, although it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}
