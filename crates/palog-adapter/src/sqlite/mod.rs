//! Databases: a private copy of a store that may be in use, its tables, and its rows as JSON lines (spec 01, "Kept
//! sources").
//!
//! A client that runs writes to its database while it is read. So nothing here opens the original: [`Snapshot::take`]
//! copies it together with what SQLite keeps beside it, until both fit together, and [`Store::open`] opens the copy.
//! Columns are found by name, so that older and newer schemas read; [`KeptRows`] keeps each row that was read verbatim.

mod rows;
mod snapshot;
mod store;

#[cfg(test)]
mod tests;

pub use rows::{KeptRows, Row, Scalar};
pub use snapshot::Snapshot;
pub use store::{Store, Table};
