//! What the commands print for people.

pub(crate) mod conform;
pub(crate) mod context;
pub(crate) mod diagnostics;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod loss;
pub(crate) mod ls;
pub(crate) mod overview;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod text;
