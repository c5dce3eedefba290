//! Reads the sessions that Claude Code leaves on disk into portable agent logs.
//!
//! [`discover`] finds the sessions below a path, [`import()`] turns one of them (with its subagents) into logs. What each
//! record becomes is in `spec/sources/claude-code.md`; nothing is left out: a record that maps to nothing is kept as it
//! stands, and bytes that are no record are kept and reported.
//!
//! It reads files only. It does not start, ask or change the client, and opens nothing for writing but what the
//! [`Target`] gives it.

mod calls;
mod children;
mod conversation;
mod forks;
mod framing;
mod graph;
mod ids;
mod import;
mod output;
mod paths;
mod queue;
mod record;
mod report;
mod sidecars;
mod tools;

pub use import::import;
pub use output::{Directory, LogName, Output, Stream, Target};
pub use paths::{Discovery, Session, discover, recognises, session_from_stdin};
pub use report::{ImportError, InputReport, LogReport, Report};

/// The name of the format, as `--from` takes it.
pub const FORMAT: &str = "claude-code";

/// Name and revision of the mapping; a new revision gives new ids.
pub const MAPPING: &str = "claude-code/1";

/// What an import should do besides writing the logs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Keep the sources beside the log, where the target has a place for them.
    pub sources: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { sources: true }
    }
}
