//! What the commands print as JSON, one module per output. Members that do not apply are absent, never `null`.

pub(crate) mod conform;
pub(crate) mod explain;
pub(crate) mod ls;
pub(crate) mod migrate;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod validate;
