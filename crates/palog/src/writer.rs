//! Writes a fresh log: one event a line, in order (spec 01).

use std::io::{self, Write};

use crate::blob::{BlobStore, digest, sha256_hex};
use crate::encode::Encoder;
use crate::envelope::Draft;
use crate::json::{BlobRef, Raw};

/// Length that a line should not exceed: larger values move to blobs (spec 01, R-BYT-010).
pub const LINE_SOFT_LIMIT: usize = 1 << 20;

/// Length that no reader needs to accept beyond (spec 01, R-BYT-011). Bytes, without the line feed.
pub const LINE_HARD_LIMIT: usize = 16 << 20;

/// Where a writer puts values that would make a line too long.
#[derive(Debug, Clone)]
pub enum Bulk {
    /// Into blobs beside the log.
    Blobs(BlobStore),
    /// Nowhere: they stay in the line, up to [`LINE_HARD_LIMIT`].
    Inline,
    /// Into blobs, but only out of lines that would exceed [`LINE_HARD_LIMIT`].
    Overflow(BlobStore),
    /// Nowhere, and lines have any length: nobody reads them.
    Discarded,
}

/// Why an event was not written. Nothing of it reached the output.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The output, or the blob store, refused.
    Io(io::Error),
    /// The line would be longer than readers accept.
    LineTooLong {
        /// Length of the line in bytes.
        len: usize,
    },
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteError::Io(error) => write!(f, "cannot write the log: {error}"),
            WriteError::LineTooLong { len } => {
                write!(f, "an event of {len} bytes is longer than the {LINE_HARD_LIMIT} bytes that readers accept")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            WriteError::LineTooLong { .. } => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}

/// Writes a fresh log to any output (spec 01). It numbers the events and, if asked, links each line to the one before.
///
/// It knows nothing of files, locks or durability: [`crate::live::LogFile`] does, and appends to a log that exists.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    encoder: Encoder,
    seq: u64,
    linked: bool,
    prev: Option<String>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a new log with the id `log`.
    pub fn new(out: W, log: impl Into<String>, bulk: Bulk) -> Self {
        let encoder = Encoder { log: log.into(), bulk };
        Writer { out, encoder, seq: 0, linked: false, prev: None, line: Vec::with_capacity(8 << 10) }
    }

    /// Makes every line name the digest of the line before (`prev`).
    #[must_use]
    pub fn linked(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Id of the log.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.encoder.log
    }

    /// The seq that the next event gets: the number of events written.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.seq
    }

    /// Puts content beside the log. `None` where values stay inline.
    ///
    /// # Errors
    /// When the blob store refuses.
    pub fn blob(
        &mut self,
        bytes: &[u8],
        media: &str,
        name: Option<&str>,
    ) -> Result<Option<BlobRef<'static>>, WriteError> {
        match &self.encoder.bulk {
            Bulk::Blobs(store) => Ok(Some(store.put(bytes, media, name)?)),
            Bulk::Inline | Bulk::Overflow(_) | Bulk::Discarded => Ok(None),
        }
    }

    /// Appends an event and returns its seq.
    ///
    /// # Errors
    /// When the output refuses, or the line would exceed the limit.
    pub fn append(&mut self, draft: &mut Draft<'_>) -> Result<u64, WriteError> {
        self.line.clear();
        self.encoder.encode(&mut self.line, self.seq, self.prev.as_deref(), draft)?;
        self.out.write_all(&self.line)?;
        if self.linked {
            self.prev = Some(sha256_hex(&self.line[..self.line.len() - 1]));
        }
        self.seq += 1;
        Ok(self.seq - 1)
    }

    /// Makes sure that everything appended has reached the operating system.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Ends writing and gives the output back, flushed.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}

/// The digest that `action.proposed` carries of its arguments, over their bytes as proposed (spec 03, R-ACT-002).
#[must_use]
pub fn args_digest(args: &Raw<'_>) -> String {
    digest(args.get().as_bytes())
}
