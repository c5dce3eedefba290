//! Reads a log line by line with flat memory, and tells everything that is wrong with its bytes (spec 01).

use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::cursor::Cursor;
use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::envelope::{Event, MAJOR};
use crate::writer::LINE_HARD_LIMIT;

/// Size of a read from the source.
const CHUNK: usize = 1 << 20;

/// One line of a log and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The bytes, without the line feed.
    pub bytes: &'a [u8],
    /// Offset of the first byte in the log.
    pub offset: u64,
    /// Number of the line, from 1.
    pub number: u64,
}

impl Line<'_> {
    /// The place of the line, for a diagnostic.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            line: Some(self.number),
            offset: Some(self.offset),
            length: Some(self.bytes.len() as u64),
            ..Place::default()
        }
    }
}

/// What stands next in a log.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one turn of the caller's loop")]
pub enum Next<'a> {
    /// A whole line.
    Line(Line<'a>),
    /// A line longer than readers accept; it was skipped.
    TooLong(Diagnostic),
    /// Bytes after the last line feed: not a part of the log, never parsed (R-BYT-005).
    TornTail(Line<'a>),
    /// The end.
    End,
}

/// Splits a stream into lines, with a buffer that is never larger than the longest line allowed plus one chunk.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The bytes that are not yet handed out.
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the stream.
    offset: u64,
    number: u64,
    eof: bool,
    limit: usize,
}

impl<R: Read> Lines<R> {
    /// Starts at the first byte of `input`; lines longer than [`LINE_HARD_LIMIT`] are passed over.
    pub fn new(input: R) -> Self {
        Lines { input, buffer: Vec::new(), start: 0, end: 0, offset: 0, number: 0, eof: false, limit: LINE_HARD_LIMIT }
    }

    /// Takes lines of any length, as sources have them; the buffer grows to the longest one.
    #[must_use]
    pub fn of_any_length(mut self) -> Self {
        self.limit = usize::MAX;
        self
    }

    /// The next line, or what stands in its place.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub fn next_line(&mut self) -> io::Result<Next<'_>> {
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &pending[searched..]) {
                let len = searched + at;
                return Ok(if len > self.limit { self.skip(len) } else { Next::Line(self.take(len, 1)) });
            }
            searched = pending.len();
            if self.eof {
                return Ok(match searched {
                    0 => Next::End,
                    len => Next::TornTail(self.take(len, 0)),
                });
            }
            if searched > self.limit {
                return self.skip_unbuffered();
            }
            self.fill()?;
        }
    }

    /// Hands out `len` bytes and passes over their `ending`.
    fn take(&mut self, len: usize, ending: usize) -> Line<'_> {
        let (from, offset) = (self.start, self.offset);
        self.start += len + ending;
        self.offset += (len + ending) as u64;
        self.number += 1;
        Line { bytes: &self.buffer[from..from + len], offset, number: self.number }
    }

    fn skip(&mut self, len: usize) -> Next<'static> {
        let line = self.take(len, 1);
        Next::TooLong(too_long(line.place(), len as u64))
    }

    /// Passes over a line that does not fit the buffer.
    fn skip_unbuffered(&mut self) -> io::Result<Next<'static>> {
        let (offset, mut len) = (self.offset, 0);
        loop {
            let pending = &self.buffer[self.start..self.end];
            let found = memchr::memchr(b'\n', pending);
            let step = found.unwrap_or(pending.len());
            len += step as u64;
            self.start += step + usize::from(found.is_some());
            if found.is_some() || self.eof {
                self.number += 1;
                self.offset = offset + len + u64::from(found.is_some());
                let place =
                    Place { line: Some(self.number), offset: Some(offset), length: Some(len), ..Place::default() };
                return Ok(Next::TooLong(too_long(place, len)));
            }
            self.fill()?;
        }
    }

    /// Reads more, after moving what is pending to the front.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            let more = CHUNK.max(self.buffer.len() / 2);
            // A new buffer comes zeroed from the system; growing the old one would write every byte of it.
            let mut larger = vec![0; self.end + more];
            larger[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = larger;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }
}

pub(crate) fn too_long(place: Place, len: u64) -> Diagnostic {
    Diagnostic::new(Code::LineTooLong, Severity::Error, place)
        .because(format!("a line of {len} bytes; readers accept {LINE_HARD_LIMIT}"))
        .rule("R-BYT-011")
}

/// What a reader hands out.
#[derive(Debug)]
pub enum Item<'a> {
    /// An event and the line that holds it.
    Event(Event<'a>, Line<'a>),
    /// Something that is no event, in its place.
    Fault(Diagnostic),
}

/// Reads events from a stream (spec 01, 02). Order and payloads are judged by [`crate::validate`] and [`crate::reduce`].
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
}

impl<R: Read> Reader<R> {
    /// Starts at the first byte of `input`.
    pub fn new(input: R) -> Self {
        Reader { lines: Lines::new(input) }
    }

    /// Starts behind the line that `cursor` names: every later line comes once (R-BYT-020). `input` is the whole log, from
    /// its first byte; what is wrong with the lines before is not told again.
    ///
    /// # Errors
    /// When the stream cannot be read, or the line in that place is another one or is not there: the log diverged.
    pub fn after(input: R, cursor: &Cursor) -> Result<Self, ResumeError> {
        let mut reader = Reader::new(input);
        reader.pass(cursor)?;
        Ok(reader)
    }

    /// Reads up to the line that `cursor` names, and returns its number, offset and length.
    pub(crate) fn pass(&mut self, cursor: &Cursor) -> Result<(u64, u64, usize), ResumeError> {
        loop {
            let diverged = match self.next()? {
                None => Diagnostic::new(Code::Diverged, Severity::Error, Place::default())
                    .because(format!("the log ends before seq {}", cursor.seq)),
                Some(Item::Fault(_)) => continue,
                Some(Item::Event(event, _)) if event.seq < cursor.seq => continue,
                Some(Item::Event(event, line))
                    if event.seq == cursor.seq && Cursor::of(event.seq, line.bytes) == *cursor =>
                {
                    return Ok((line.number, line.offset, line.bytes.len()));
                }
                Some(Item::Event(event, line)) => Diagnostic::new(Code::Diverged, Severity::Error, line.place())
                    .because(format!("the line at seq {} is not the one that was read last", event.seq)),
            };
            return Err(ResumeError::Diverged(Box::new(diverged.rule("R-BYT-020"))));
        }
    }

    /// The next event or fault; `None` at the end. A fault is no end: the lines behind it are read (R-BYT-007).
    ///
    /// # Errors
    /// When the stream cannot be read.
    #[expect(clippy::should_implement_trait, reason = "an item borrows from the reader, which an iterator cannot say")]
    pub fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        Ok(match self.lines.next_line()? {
            Next::End => None,
            Next::TooLong(diagnostic) => Some(Item::Fault(diagnostic)),
            Next::TornTail(line) => Some(Item::Fault(
                Diagnostic::new(Code::TornTail, Severity::Warning, line.place())
                    .because("the bytes after the last line feed are not a part of the log")
                    .rule("R-BYT-005"),
            )),
            Next::Line(line) => Some(match parse(line) {
                Ok(event) => Item::Event(event, line),
                Err(diagnostic) => Item::Fault(diagnostic),
            }),
        })
    }
}

/// Why reading could not go on from a cursor.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResumeError {
    /// The log cannot be read.
    Io(io::Error),
    /// It is another log than the one that was read before, or it diverged ([`Code::Diverged`]).
    Diverged(Box<Diagnostic>),
}

impl std::fmt::Display for ResumeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResumeError::Io(error) => write!(f, "cannot read the log: {error}"),
            ResumeError::Diverged(diagnostic) => {
                write!(f, "the log diverged: {}", diagnostic.why.as_deref().unwrap_or(diagnostic.code.meaning()))
            }
        }
    }
}

impl std::error::Error for ResumeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ResumeError::Io(error) => Some(error),
            ResumeError::Diverged(_) => None,
        }
    }
}

impl From<io::Error> for ResumeError {
    fn from(error: io::Error) -> Self {
        ResumeError::Io(error)
    }
}

/// Reads one line; the phase of the failure is in the code (spec 07).
///
/// # Errors
/// What is wrong with a line that is no event.
#[expect(clippy::result_large_err, reason = "an event is larger than a diagnostic")]
pub fn parse(line: Line<'_>) -> Result<Event<'_>, Diagnostic> {
    let error = |code, rule, why: String| Diagnostic::new(code, Severity::Error, line.place()).because(why).rule(rule);
    let text = simdutf8::compat::from_utf8(line.bytes).map_err(|e| {
        let place = Place { offset: Some(line.offset + e.valid_up_to() as u64), length: None, ..line.place() };
        Diagnostic::new(Code::InvalidUtf8, Severity::Error, place).because("a line that is not UTF-8").rule("R-BYT-001")
    })?;
    if line.number == 1 && text.starts_with('\u{feff}') {
        return Err(error(Code::ByteOrderMark, "R-BYT-002", "the log begins with a byte order mark".into()));
    }
    if text.ends_with('\r') {
        return Err(error(Code::CarriageReturn, "R-BYT-002", "the line ends in a carriage return".into()));
    }
    Event::parse(text)
        .map_err(|e| {
            use serde_json::error::Category;
            match e.classify() {
                Category::Data if text.trim_start().starts_with('{') => match version(text) {
                    Some(major) if major != u64::from(MAJOR) => error(
                        Code::UnsupportedVersion,
                        "R-ENV-001",
                        format!("major version {major}; this reader knows {MAJOR}"),
                    ),
                    _ => error(Code::BadEnvelope, "R-ENV-002", detail(&e)),
                },
                Category::Data => {
                    error(Code::BadEnvelope, "R-ENV-002", "the line holds a JSON value that is no object".into())
                }
                // Half of a surrogate pair is JSON, and no string of an envelope.
                Category::Syntax
                    if text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() =>
                {
                    error(Code::BadEnvelope, "R-ENV-002", detail(&e))
                }
                Category::Syntax | Category::Eof | Category::Io => error(Code::BadJson, "R-BYT-003", detail(&e)),
            }
        })
        .and_then(|event| {
            if event.palog == MAJOR {
                Ok(event)
            } else {
                let why = format!("major version {}; this reader knows {MAJOR}", event.palog);
                Err(error(Code::UnsupportedVersion, "R-ENV-001", why))
            }
        })
}

/// The major version that a line claims, whatever else is wrong with it.
fn version(text: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Major {
        palog: u64,
    }
    serde_json::from_str::<Major>(text).ok().map(|m| m.palog)
}

/// The parser's own words, with the column as an offset within the line.
fn detail(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} (byte {} of the line)", e.column())
}
