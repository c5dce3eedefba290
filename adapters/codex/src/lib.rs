//! Reads the sessions that Codex leaves on disk ("rollouts") into portable agent logs.
//!
//! [`discover`] finds the sessions below a path, [`import()`] turns one of them into a log. What each record becomes is in
//! `spec/sources/codex.md`; nothing is left out: a record that maps to nothing is kept as it stands, and bytes that are no
//! record are kept and reported.
//!
//! It reads files only, compressed ones as well; of databases it reads a private copy. It does not start, ask or change the
//! client, and opens nothing for writing but what the [`Target`] gives it.

mod calls;
mod export;
mod first;
mod hidden;
mod import;
mod lineage;
mod listing;
mod opened;
mod paths;
mod record;
mod resume;
mod rollout;
mod sidecars;
mod tools;
mod usage;

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
pub const FORMAT: Format =
    Format { name: "codex", product: "Codex", mapping: "codex/1", namespace: "com.openai.codex" };
