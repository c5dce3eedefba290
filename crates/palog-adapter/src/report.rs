//! What an import found, kept and could not read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use palog::diagnostic::{Diagnostics, Severity};
use palog::writer::WriteError;
use serde::{Serialize, Serializer};

/// One log that was written.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogReport {
    /// Where it was written; absent for a stream or for memory.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub path: Option<PathBuf>,
    /// Native id of its session; of a subagent its agent id.
    pub session: String,
    /// Native id of the session that the subagent belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The format that it was made from.
    pub format: &'static str,
    /// Native records in it.
    pub records: u64,
    /// Events in it.
    pub events: u64,
    /// Findings about it, by severity.
    pub severities: BTreeMap<Severity, u64>,
    /// What was appended, where there was a log of the session before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onto: Option<Additions>,
}

/// What was appended to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Additions {
    /// Events, with those below.
    pub appended: u64,
    /// Messages that became other ones.
    pub revised: u64,
    /// Messages that the source does not have any more.
    pub removed: u64,
}

/// A path as text.
fn lossy<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|p| p.to_string_lossy()).serialize(s)
}

/// One file that was read.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputReport {
    /// Its path, as the user named it or within what the user named.
    pub path: String,
    /// What it is, for example `claude-code.jsonl`, `claude-code.meta`, `claude-code.status`.
    pub format: String,
    /// Physical lines; a tail without a line feed counts as one.
    pub lines: u64,
    /// Whole records.
    pub records: u64,
    /// Pieces of records that cannot be recovered.
    pub fragments: u64,
    /// Records by the vendor's own type names (`system/compact_boundary`, `attachment/file` …).
    pub by_type: BTreeMap<String, u64>,
    /// Records that are kept without being mapped.
    pub kept: u64,
    /// Records that belong to another session.
    pub foreign: u64,
}

/// What an import wrote, read and found.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The logs that were written.
    pub logs: Vec<LogReport>,
    /// The files that were read.
    pub inputs: Vec<InputReport>,
    /// What was found.
    pub diagnostics: Diagnostics,
}

impl Report {
    /// Takes in the report of another session.
    pub fn extend(&mut self, other: Report) {
        self.logs.extend(other.logs);
        self.inputs.extend(other.inputs);
        self.diagnostics.extend(other.diagnostics);
    }
}

/// Why an import stopped. What was written before it is removed by the target.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// A file could not be read.
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The log could not be written.
    Write(WriteError),
    /// The target has a log of that name already.
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The input holds no record that is known.
    NothingRecognised {
        /// Which input.
        input: String,
        /// Whose sessions were looked for.
        product: &'static str,
        /// How many physical lines were looked at.
        lines: u64,
    },
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImportError::Read { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            ImportError::Write(error) => write!(f, "{error}"),
            ImportError::Exists { path } => {
                write!(f, "{} exists already, and logs are never overwritten", path.display())
            }
            ImportError::NothingRecognised { input, product, lines } => match lines {
                0 => write!(f, "{input}: it is empty, and no session of {product}"),
                1 => write!(f, "{input}: its only line is no record of a {product} session"),
                _ => write!(f, "{input}: none of its {lines} lines is a record of a {product} session"),
            },
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImportError::Read { error, .. } => Some(error),
            ImportError::Write(error) => Some(error),
            ImportError::Exists { .. } | ImportError::NothingRecognised { .. } => None,
        }
    }
}

impl From<WriteError> for ImportError {
    fn from(error: WriteError) -> Self {
        ImportError::Write(error)
    }
}
