//! The portable agent log: an append-only event format for the sessions of AI agents, its reader and writer, and the
//! reference reducer and recovery.

pub mod blob;
pub mod diagnostic;
pub mod envelope;
pub mod events;
pub mod json;
mod order;
pub mod project;
pub mod reader;
pub mod recover;
pub mod reduce;
pub mod rules;
#[cfg(feature = "schema")]
pub mod schema;
pub mod state;
pub mod validate;
mod wire;
pub mod writer;
