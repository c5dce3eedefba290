//! What every importer and exporter of agent sessions shares.
//!
//! An adapter finds sessions, reads each source as records with their places ([`transcript`]), and appends events to a
//! [`Log`]. Here is what is the same for all of them: lines are split and damage is recovered ([`framing`]), bytes are kept
//! beside the log ([`source`]), ids are derived ([`ids`]), what was found is reported ([`report`]), and logs go to a
//! directory or a stream ([`output`]). The way back is in [`export`]. What a record *means* is the adapter's alone.

pub mod compressed;
pub mod export;
pub mod framing;
pub mod ids;
pub mod listing;
mod log;
pub mod output;
pub mod report;
pub mod resume;
pub mod source;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod transcript;

pub use listing::{Listed, Listing};
pub use log::{Document, Log};
pub use output::{Directory, LogName, Output, Stream, Target};
pub use report::{Additions, ImportError, InputReport, LogReport, Report};
pub use source::{SourceEnd, Span};
pub use transcript::{Records, Taken, Transcript};

/// A format that can be imported.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name, as `--from` takes it.
    pub name: &'static str,
    /// How people call the program that writes it.
    pub product: &'static str,
    /// Name and revision of the mapping; a new revision gives new log ids.
    pub mapping: &'static str,
    /// Reverse DNS name under which its kept records go.
    pub namespace: &'static str,
}

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
