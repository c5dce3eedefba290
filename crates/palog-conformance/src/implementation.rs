//! What is tested.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Something that imports, reads, reduces and recovers. It works on files, and answers in JSON.
///
/// Every operation takes paths and documents and gives one document, so that each fits a pipe. Scalars in states, recoveries
/// and events are strings and booleans. An error is a sentence for people, and fails the case.
pub trait Implementation {
    /// Imports `source`, a file or a directory, into the empty directory `into`: one `NAME.palog.jsonl` for each log, with
    /// `NAME.palog.sources` beside it.
    ///
    /// # Errors
    /// When nothing could be imported.
    fn import(&self, source: &Path, into: &Path) -> Result<Import, String>;

    /// Reads a log, from its beginning or after a cursor: `{"events": [{"seq", "id", "type", "data"}], "diagnostics": […]}`, with
    /// the text of `data` as it stands. Where the log is another one than the cursor is of, there are no events, and the
    /// diagnostics say so.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn read(&self, log: &Path, after: Option<&str>) -> Result<Value, String>;

    /// Validates a log, with the blobs that lie beside it: `{"diagnostics": […]}`.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn validate(&self, log: &Path) -> Result<Value, String>;

    /// Reduces a log: `{"state": …, "diagnostics": […]}`.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn state(&self, log: &Path) -> Result<Value, String>;

    /// What may happen next: `{"verdict": …, "obligations": […], "evidence": […]}`.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn recovery(&self, log: &Path, world: &World) -> Result<Value, String>;

    /// The context as messages of the Anthropic Messages API, at the head or before the event with the id `before`:
    /// `{"messages": […], "path": {"events": […], "inferred": […]}, …}`.
    ///
    /// # Errors
    /// When the log cannot be read, or has no such event.
    fn context(&self, log: &Path, before: Option<&str>) -> Result<Value, String>;
}

/// What recovery knows beside the log; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct World {
    /// The time.
    pub now: Option<String>,
    /// What look-ups have just seen: observations as they stand in a state.
    pub observations: Vec<Value>,
    /// What a worker would have (spec 05, "Admission").
    pub environment: Option<Value>,
    /// The log of the parent, if it is at hand.
    #[serde(skip)]
    pub parent: Option<PathBuf>,
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
