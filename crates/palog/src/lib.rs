//! The portable agent log: an append-only event format for the sessions of AI agents, its reader and writer, and the
//! reference reducer and recovery.
//!
//! An agent is its log: everything that happened, one event a line, never changed afterwards. This crate writes such logs,
//! reads them, and says what state a session is in and what to do about it after a crash.
//!
//! ```
//! use palog::envelope::{ActorKind, Draft, Time};
//! use palog::events::{Data, LogClosed, LogEnd, LogOpened};
//! use palog::reader::{Item, Reader};
//! use palog::writer::{Bulk, Writer};
//!
//! // Write two events …
//! let mut writer = Writer::new(Vec::new(), "log-1", Bulk::Inline);
//! let opened = LogOpened::new("session-1", "my-agent");
//! let closed = LogClosed { how: LogEnd::Complete, reason: None };
//! writer.append(&mut Draft::new("e0", ActorKind::Harness, opened).at(Time::parse("2026-11-29T12:08:59Z")))?;
//! writer.append(&mut Draft::new("e1", ActorKind::Harness, closed))?;
//! let bytes = writer.finish()?;
//!
//! // … and read them back.
//! let mut reader = Reader::new(&bytes[..]);
//! let Some(Item::Event(first, _)) = reader.next()? else { panic!("an event") };
//! assert!(matches!(first.data()?, Data::LogOpened(opened) if opened.session == *"session-1"));
//! let Some(Item::Event(last, line)) = reader.next()? else { panic!("an event") };
//! assert_eq!((last.seq, &*last.kind, line.number), (1, "log.closed", 2));
//! assert!(reader.next()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The examples `live_agent` and `follow` write a log from an agent's loop, and follow it from another process.
//!
//! # The nouns
//!
//! | | |
//! |---|---|
//! | [`Event`](envelope::Event), [`Draft`](envelope::Draft) | a line as read, and before the writer gives it its place |
//! | [`Data`](events::Data) | the payload of an event, by its type |
//! | [`Raw`](json::Raw), [`Value`](json::Value) | JSON that is carried and never interpreted; it may lie in a blob |
//! | [`Reader`](reader::Reader), [`Follow`](follow::Follow) | read a log with flat memory, once or as it grows |
//! | [`Cursor`](cursor::Cursor) | a line by its place and digest: where to read on, or that the log diverged |
//! | [`Writer`](writer::Writer) | writes a fresh log to any output |
//! | [`LogFile`](live::LogFile) | appends to a log file: locked, repaired, conditional, durable |
//! | [`BlobStore`](blob::BlobStore) | content beside the log, by its SHA-256 |
//! | [`Code`](diagnostic::Code), [`Diagnostic`](diagnostic::Diagnostic) | what is wrong and where; values, not text |
//!
//! # What it does not do
//!
//! - It knows no vendor's format: the adapters do, in crates of their own.
//! - It calls no model, runs no tool and opens no network connection. It says what can be done next; somebody else does it.
//! - It keeps nothing secret and decides on no access. A writer must not hand it secrets, and it looks for none.
//! - It has no async interface. A blocking call is short, and a [`LogFile`](live::LogFile) can be moved to a thread.
//! - Reducer, recovery and projections see no clock, no randomness and no files. Only [`live`], [`follow`] and [`blob`] touch
//!   the file system, and none of them starts a thread.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `live`: fresh UUIDv7 ids for live events, [`live::new_id`](https://docs.rs/palog/latest/palog/live/fn.new_id.html) (adds
//!   `uuid`). Without it [`live::uuid_v7`] makes one from the caller's clock and randomness.
//! - `schema`: the JSON Schemas of the wire types (adds `schemars`).
//!
//! # Versions
//!
//! The minimum supported Rust version is 1.95; a later one comes with a minor release only. The crate follows semantic
//! versioning, apart from the version of the format: a log names the format's version itself ([`envelope::SPEC`]), and every
//! release reads all minors of the majors that an earlier one read. Enums that may grow are `non_exhaustive`, and so is
//! [`Code`](diagnostic::Code): a code never changes its meaning. The payload structs have the members that the specification
//! names and are written as literals, so a new minor of the format that adds one is a breaking release of this crate.

pub mod blob;
pub mod cursor;
pub mod diagnostic;
mod disk;
mod encode;
pub mod envelope;
pub mod events;
mod fence;
pub mod follow;
pub mod json;
pub mod live;
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
