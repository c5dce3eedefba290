//! The commands, one per file.

pub(crate) mod context;
pub(crate) mod import;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod validate;
