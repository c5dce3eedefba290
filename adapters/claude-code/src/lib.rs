//! Reads the sessions that Claude Code leaves on disk into portable agent logs.
//!
//! [`discover`] finds the sessions below a path, [`list`] tells of each what its first and last records show, [`import()`] turns one of them (with its subagents) into logs. What each
//! record becomes is in `spec/sources/claude-code.md`; nothing is left out: a record that maps to nothing is kept as it
//! stands, and bytes that are no record are kept and reported.
//!
//! It reads files only. It does not start, ask or change the client, and opens nothing for writing but what the
//! [`Target`] gives it.

mod calls;
mod children;
mod conversation;
mod export;
mod first;
mod forks;
mod graph;
mod history;
mod import;
mod listing;
mod members;
mod paths;
mod queue;
mod record;
mod resume;
mod sidecars;
mod tools;

// What the functions here take and give, so that their users need no second dependency.
pub use palog_adapter::{
    Directory, ImportError, InputReport, Listed, Listing, LogName, LogReport, Options, Output, Report, Stream, Target,
};

pub use export::{export, place};
pub use import::import;
pub use listing::list;
pub use paths::{Discovery, Session, discover, recognises, session_from_stdin};
pub use resume::{questions, resume};

use palog_adapter::Format;

/// The format that this adapter reads.
pub const FORMAT: Format = Format {
    name: "claude-code",
    product: "Claude Code",
    mapping: "claude-code/1",
    namespace: "com.anthropic.claude-code",
};
