//! Projections: views of a log that are made anew from its events (spec 04, "Projections").

mod path;
#[cfg(test)]
mod sample;

pub use path::{Live, NodeKind, NodeRef, PathIndex};
