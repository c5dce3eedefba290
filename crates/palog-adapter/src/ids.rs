//! Ids of logs and events, derived from what the source says so that the same records get the same ids (spec 02, R-ENV-017).

use palog::blob::hex;
use sha2::{Digest, Sha256};

use crate::Format;

/// 128 bits that stand for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId([u8; 16]);

impl EventId {
    /// The 32 hexadecimal digits of the wire.
    #[must_use]
    pub fn hex(self) -> String {
        hex(&self.0)
    }
}

/// 128 bits of the digest of the parts, each with its length before it so that no two tuples look alike.
fn id(format: &Format, domain: &str, parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in [domain, format.name].iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bits = [0; 16];
    bits.copy_from_slice(&hash.finalize()[..16]);
    bits
}

/// Id of the log of a session.
#[must_use]
pub fn log(format: &Format, session: &str) -> String {
    hex(&id(format, "log", &[session, format.mapping]))
}

/// What a record is known by in its source.
#[derive(Clone, Copy, Debug)]
pub enum Native<'a> {
    /// Its own id, at its first occurrence.
    Uuid(&'a str),
    /// Its offset in bytes.
    Offset(u64),
    /// A row of a database: its table, its key, and the digest of its line.
    Row(&'a str, &'a str, &'a str),
    /// Nothing: the importer says it of itself.
    Own,
}

/// Makes the ids of the events of one source.
#[derive(Clone, Debug)]
pub struct Ids {
    format: &'static Format,
    session: String,
    role: String,
}

impl Ids {
    /// For the source `role` of `session`.
    #[must_use]
    pub fn new(format: &'static Format, session: &str, role: &str) -> Self {
        Ids { format, session: session.into(), role: role.into() }
    }

    /// Id of the event number `ordinal` of a record.
    #[must_use]
    pub fn event(&self, native: Native<'_>, ordinal: u32) -> EventId {
        let ordinal = ordinal.to_string();
        EventId(match native {
            Native::Uuid(uuid) => id(self.format, "event", &[&self.session, &self.role, "id", uuid, &ordinal]),
            Native::Offset(at) => {
                id(self.format, "event", &[&self.session, &self.role, "at", &at.to_string(), &ordinal])
            }
            Native::Row(table, key, digest) => {
                id(self.format, "event", &[&self.session, &self.role, "row", table, key, digest, &ordinal])
            }
            Native::Own => id(self.format, "event", &[&self.session, &self.role, "own", &ordinal]),
        })
    }
}
