//! What the commands print as JSON, one module per output. Members that do not apply are absent, never `null`.

pub(crate) mod conform;
pub(crate) mod explain;
#[cfg(any(test, feature = "parquet", feature = "schema"))]
pub(crate) mod export;
pub(crate) mod ls;
pub(crate) mod migrate;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod validate;
