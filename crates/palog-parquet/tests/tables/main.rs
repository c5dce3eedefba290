//! What the tables hold, read back from their files.

mod common;
mod dataset;
mod rebuild;
mod schema;
