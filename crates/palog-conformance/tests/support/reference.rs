//! The reference implementation: that of `palog conform run`.

#[path = "../../../palog-cli/src/reference/implementation.rs"]
mod implementation;

use crate::import;

pub(crate) use implementation::Reference;
