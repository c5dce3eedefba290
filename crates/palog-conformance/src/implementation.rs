//! What is tested.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// Something that imports, reduces and recovers. It works on files, and answers in JSON.
///
/// An error is a sentence for people, and fails the case.
pub trait Implementation {
    /// Imports `source`, a file or a directory, into the empty directory `into`: one `NAME.palog.jsonl` for each log, with
    /// `NAME.palog.sources` beside it.
    ///
    /// # Errors
    /// When nothing could be imported.
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String>;

    /// Reduces a log: `{"state": …, "diagnostics": […]}`.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn state(&self, log: &Path) -> Result<Value, String>;

    /// What may happen next, at no time in particular and with nothing but the log known: `{"verdict": …, "obligations": […]}`.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn recovery(&self, log: &Path) -> Result<Value, String>;

    /// The context as messages of the Anthropic Messages API, at the head or before the event with the id `before`:
    /// `{"messages": […], "path": {"events": […], "inferred": […]}, …}`.
    ///
    /// # Errors
    /// When the log cannot be read, or has no such event.
    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String>;
}

/// What an import gave.
#[derive(Clone, Debug)]
pub struct Import {
    /// The report: `{"logs": […], "inputs": […], "diagnostics": […]}`. Paths of logs are absolute, or relative to the
    /// directory that was imported into; paths of inputs begin with the source as it was given.
    pub report: Value,
    /// How it went, as an exit status tells it.
    pub outcome: Quality,
}

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Nothing worse than information.
    Clean,
    /// Warnings: all that could be got was got.
    Diagnosed,
    /// Something could not be read.
    Partial,
}
