//! Reads the sessions that pi and OpenClaw leave on disk into portable agent logs.
//!
//! Both write the same entries: pi one JSON line each into a file, OpenClaw into rows of a database, and earlier into such
//! files as well. So one mapping of entries serves both ([`pi`] for pi, the root of this crate for OpenClaw). What each
//! entry and row becomes is in `spec/sources/pi.md` and `spec/sources/openclaw.md`; nothing is left out but credentials
//! and what a database derives from its own rows.
//!
//! Files are only read, and of databases private copies are opened. No client is started, asked or changed.

mod calls;
mod conversation;
mod file;
mod listing;
pub mod pi;
mod record;
mod resume;
mod store;
mod times;
mod tools;
mod tree;

// What the functions here take and give, so that their users need no second dependency.
pub use palog_adapter::{
    Directory, ImportError, InputReport, Listed, Listing, LogName, LogReport, Options, Output, Report, Stream, Target,
};

pub use resume::resume;
pub use store::{Discovery, Session, discover, import, list, recognises, session_from_stdin};

use palog_adapter::Format;

/// The format of OpenClaw's databases and files.
pub const FORMAT: Format =
    Format { name: "openclaw", product: "OpenClaw", mapping: "openclaw/1", namespace: "ai.openclaw" };
