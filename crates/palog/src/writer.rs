//! Writes a log: one event a line, in order, never a half line that is acknowledged (spec 01).

use std::io::{self, Write};

use serde::Serialize;

use crate::blob::{BlobStore, digest, sha256_hex};
use crate::envelope::{Draft, MAJOR};
use crate::json::{BlobRef, Raw, Value};

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

/// The line of an event, in the order of the wire.
#[derive(Serialize)]
struct Line<'l, 'd> {
    palog: u32,
    log: &'l str,
    seq: u64,
    id: &'l str,
    r#type: &'l str,
    time: Option<&'l crate::envelope::Time<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'l crate::envelope::Time<'d>>,
    actor: &'l crate::envelope::Actor<'d>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'l str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cause: &'l [crate::json::Str<'d>],
    #[serde(skip_serializing_if = "Option::is_none")]
    copy: Option<&'l crate::envelope::Copy<'d>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    src: &'l [crate::envelope::Src<'d>],
    #[serde(skip_serializing_if = "Option::is_none")]
    ignorable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ext: Option<&'l Raw<'d>>,
    data: &'l crate::events::Data<'d>,
}

/// Writes one log (spec 01). It numbers the events and, if asked, links each line to the one before.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    log: String,
    seq: u64,
    bulk: Bulk,
    linked: bool,
    prev: Option<String>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a new log with the id `log`.
    pub fn new(out: W, log: impl Into<String>, bulk: Bulk) -> Self {
        Writer { out, log: log.into(), seq: 0, bulk, linked: false, prev: None, line: Vec::with_capacity(8 << 10) }
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
        &self.log
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
    pub fn blob(&mut self, bytes: &[u8], media: &str, name: Option<&str>) -> Result<Option<BlobRef<'static>>, WriteError> {
        match &self.bulk {
            Bulk::Blobs(store) => Ok(Some(store.put(bytes, media, name)?)),
            Bulk::Inline => Ok(None),
        }
    }

    /// Appends an event and returns its seq.
    ///
    /// # Errors
    /// When the output refuses, or the line would exceed the limit.
    pub fn append(&mut self, draft: &mut Draft<'_>) -> Result<u64, WriteError> {
        self.render(draft)?;
        if self.line.len() > LINE_SOFT_LIMIT {
            self.shorten(draft)?;
        }
        if self.line.len() > LINE_HARD_LIMIT {
            return Err(WriteError::LineTooLong { len: self.line.len() });
        }
        if self.linked {
            self.prev = Some(sha256_hex(&self.line));
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.seq += 1;
        Ok(self.seq - 1)
    }

    /// Renders the line into the buffer.
    fn render(&mut self, draft: &Draft<'_>) -> Result<(), WriteError> {
        self.line.clear();
        let line = Line {
            palog: MAJOR,
            log: &self.log,
            seq: self.seq,
            id: &draft.id,
            r#type: draft.data.name(),
            time: draft.time.as_ref(),
            recorded: draft.recorded.as_ref(),
            actor: &draft.actor,
            epoch: draft.epoch,
            parent: draft.parent.as_deref(),
            cause: &draft.cause,
            copy: draft.copy.as_ref(),
            src: &draft.src,
            ignorable: draft.ignorable,
            prev: self.prev.as_deref(),
            ext: draft.ext.as_ref(),
            data: &draft.data,
        };
        serde_json::to_writer(&mut self.line, &line).map_err(|e| WriteError::Io(e.into()))
    }

    /// Moves the largest values to blobs until the line is short enough.
    fn shorten(&mut self, draft: &mut Draft<'_>) -> Result<(), WriteError> {
        let Bulk::Blobs(store) = self.bulk.clone() else { return Ok(()) };
        while self.line.len() > LINE_SOFT_LIMIT {
            let mut values = draft.data.values_mut();
            let Some(largest) = values.iter_mut().max_by_key(|v| v.inline_len()).filter(|v| v.inline_len() > 256) else {
                return Ok(());
            };
            if let Value::Inline(raw) = &**largest {
                **largest = Value::Blob(to_blob(&store, raw)?);
            }
            self.render(draft)?;
        }
        Ok(())
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

/// Stores a value: the characters of a string (`text/plain`), or the JSON text where the value is no string or holds lone
/// surrogates (`application/json`; spec 01, R-BYT-014).
fn to_blob(store: &BlobStore, raw: &Raw<'_>) -> io::Result<BlobRef<'static>> {
    match raw.text() {
        Some(text) if raw.lone_surrogates().is_empty() && Raw::string(&text).get() == raw.get() => {
            store.put(text.as_bytes(), "text/plain; charset=utf-8", None)
        }
        _ => store.put(raw.get().as_bytes(), "application/json", None),
    }
}

/// The digest that `action.proposed` carries of its arguments, over their bytes as proposed (spec 03, R-ACT-002).
#[must_use]
pub fn args_digest(args: &Raw<'_>) -> String {
    digest(args.get().as_bytes())
}
