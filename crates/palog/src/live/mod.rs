//! Writes a log while the session runs: appends to a file that exists, one writer at a time, as durably as asked for
//! (spec 01, "Writing").
//!
//! - [`LogFile::create`] and [`LogFile::open`] take the log for this process; a second writer gets [`OpenError::Locked`].
//!   What a writer that died left half written is repaired, and kept.
//! - [`LogFile::append`] and [`LogFile::append_group`] append if the log is as [`Expect`] says. What they return is
//!   acknowledged: with [`Durability::Sync`] it survives a kill and, as far as the operating system and the disk keep their
//!   word, a power loss.
//! - [`Follow`](crate::follow::Follow) reads the log as it grows, in this or another process.
//!
//! Secrets and credentials MUST NOT be written: a log is kept for good and handed on. Write a digest, or a reference to the
//! place that controls access to the secret. Nothing here looks for them.
//!
//! ```
//! # #[cfg(feature = "live")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use palog::envelope::ActorKind;
//! use palog::events::{LogOpened, MessageAdded, Part, Role};
//! use palog::live::{Durability, Expect, LogFile, draft, new_id};
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("session.palog.jsonl");
//! let opening = LogOpened::new("session-1", "my-agent");
//! let mut log = LogFile::create(&path, new_id(), &mut draft(ActorKind::Harness, opening))?;
//! let prompt = MessageAdded {
//!     role: Role::User,
//!     parts: vec![Part::text("Hello")],
//!     response: None,
//!     partial: None,
//!     purpose: Some("prompt".into()),
//!     in_context: None,
//! };
//! let head = log.append(&mut draft(ActorKind::User, prompt), Expect::default(), Durability::Sync)?;
//! assert_eq!(head.seq, 1);
//! assert!(LogFile::open(&path).is_err(), "this process holds it");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "live"))]
//! # fn main() {}
//! ```

mod error;
mod id;
mod lock;
mod log_file;
mod tail;

pub use error::{AppendError, OpenError};
pub use id::uuid_v7;
#[cfg(feature = "live")]
pub use id::{draft, new_id};
pub use log_file::LogFile;

use crate::cursor::Cursor;

/// How safe an event is when its append returns. Ordered from fast to safe (spec 01, "Writing").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In this process: it is lost if that ends without a flush. For what can be told again.
    Buffered,
    /// At the operating system: it survives the end of the process, however that comes, and others can read it.
    Flush,
    /// On the disk: it survives a power loss, as far as the operating system and the disk keep their word. For what must
    /// be known before the next step is taken, such as the start of an action.
    Sync,
}

/// What the caller takes for granted of the log; an append is refused where it does not hold (spec 04, "The execution
/// loop"). The default expects nothing.
///
/// An expected head is also what makes it safe to try again: who died before an append was acknowledged, and appends the
/// same on the same head, is refused if it had got in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expect {
    /// The head.
    pub head: Option<At>,
    /// The epoch of the caller's lease. A lower one than the newest of the log is refused.
    pub epoch: Option<u64>,
}

impl Expect {
    /// Expects that nothing was appended after `head`.
    #[must_use]
    pub fn head(head: impl Into<At>) -> Self {
        Expect { head: Some(head.into()), epoch: None }
    }

    /// Expects also that nobody took a lease after the one of this epoch.
    #[must_use]
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = Some(epoch);
        self
    }
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// By seq: enough where the log cannot have diverged.
    Seq(u64),
    /// By seq and digest.
    Cursor(Cursor),
}

impl From<u64> for At {
    fn from(seq: u64) -> Self {
        At::Seq(seq)
    }
}

impl From<Cursor> for At {
    fn from(cursor: Cursor) -> Self {
        At::Cursor(cursor)
    }
}

/// A torn tail that was cut off (R-BYT-006).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Where it began.
    pub at: u64,
    /// Its length in bytes.
    pub len: u64,
    /// `sha256:` and the digest of its bytes: the blob that keeps them.
    pub digest: String,
}

#[cfg(test)]
mod tests;
