//! Reads the sessions that OpenCode leaves on disk into portable agent logs.
//!
//! [`discover`] finds the sessions at a path, [`import()`] turns one of them into a log. What each record becomes is in
//! `spec/sources/opencode.md`; nothing is left out: a record that maps to nothing is kept as it stands.
//!
//! It reads the client's database (a private copy of it), the JSON files that older clients wrote, what `opencode export`
//! prints, and recordings of the client's event stream. It does not start, ask or change the client, and opens nothing for
//! writing but what the [`Target`] gives it.

mod approvals;
mod calls;
mod compaction;
mod export;
mod import;
mod listing;
mod mapper;
mod paths;
mod preview;
mod record;
mod removed;
mod resume;
mod store;
mod stream;
mod tools;
mod tree;

// What the functions here take and give, so that their users need no second dependency.
pub use palog_adapter::{
    Directory, ImportError, InputReport, Listed, Listing, LogName, LogReport, Options, Output, Report, Stream, Target,
};

pub use import::import;
pub use listing::list;
pub use paths::{Discovery, Session, discover, recognises, session_from_stdin};
pub use resume::{questions, resume};

use palog_adapter::Format;

/// The format that this adapter reads.
pub const FORMAT: Format =
    Format { name: "opencode", product: "OpenCode", mapping: "opencode/1", namespace: "ai.opencode" };
