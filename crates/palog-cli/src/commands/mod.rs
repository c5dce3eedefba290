//! The commands, one per file.

pub(crate) mod import;
