//! The commands, one per file.

pub(crate) mod conform;
pub(crate) mod context;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod ls;
pub(crate) mod migrate;
pub(crate) mod recover;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod validate;
