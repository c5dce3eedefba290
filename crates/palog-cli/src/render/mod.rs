//! What the commands print for people.

pub(crate) mod diagnostics;
pub(crate) mod import;
pub(crate) mod text;
