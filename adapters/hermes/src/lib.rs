//! Reads the sessions that Hermes Agent keeps into portable agent logs.
//!
//! [`discover`] finds the sessions below a path, [`import()`] turns one of them into a log. They lie in a database, all in one,
//! or in files that the client exported. What each row becomes is in `spec/sources/hermes.md`; nothing is left out: a row that
//! maps to nothing is kept as it stands.
//!
//! The database is never opened, only a private copy of it. The client is not started, asked or changed, and nothing is opened
//! for writing but what the [`Target`] gives. Keys (`.env`) and settings (`config.yaml`) are not read.

mod batches;
mod calls;
mod conversation;
mod database;
mod delegations;
mod export;
mod family;
mod import;
mod listing;
mod parts;
mod paths;
mod record;
mod resume;
mod sidecars;
mod texts;
mod tools;
mod usage;

// What the functions here take and give, so that their users need no second dependency.
pub use palog_adapter::{
    Directory, ImportError, InputReport, Listed, Listing, LogName, LogReport, Options, Output, Report, Stream, Target,
};

pub use import::import;
pub use listing::list;
pub use paths::{Discovery, Session, discover, recognises, recognises_file, sessions_from_stdin};
pub use resume::{questions, resume};

use palog_adapter::Format;

/// The format that this adapter reads.
pub const FORMAT: Format =
    Format { name: "hermes", product: "Hermes Agent", mapping: "hermes/1", namespace: "com.nousresearch.hermes" };
