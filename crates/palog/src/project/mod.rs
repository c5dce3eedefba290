//! Projections: views of a log that are made anew from its events (spec 04, "Projections").

mod anthropic;
pub mod chat;
mod content;
mod context;
mod history;
pub mod openai;
mod path;
#[cfg(test)]
mod sample;
mod scan;
mod shown;
mod transcript;

pub use anthropic::{Context, Message, context};
pub use content::{Content, LeftOutReason};
pub use context::{At, ContextError};
pub use history::{Entry, History};
pub use path::{Live, NodeKind, NodeRef, PathIndex};
pub use shown::{LeftOut, Path, Unresolved, call_id};
pub use transcript::{Fate, Item, Told, transcript};
