//! The commands, one per file.

pub(crate) mod context;
pub(crate) mod import;
pub(crate) mod show;
