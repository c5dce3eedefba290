//! The reference implementation of the specification, as the conformance runner sees it. The tests of the runner share it.

mod implementation;
mod import;
mod valid;

pub(crate) use implementation::Reference;
