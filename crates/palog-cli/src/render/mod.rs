//! What the commands print for people.

pub(crate) mod context;
pub(crate) mod diagnostics;
pub(crate) mod import;
pub(crate) mod overview;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod text;
