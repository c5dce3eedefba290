//! Reads an append-only source of JSON lines, record by record, with every byte accounted for.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::NoteAdded;
use palog::json::{Raw, Value};
use palog::reader::{Lines, Next};
use palog::writer::WriteError;

use crate::framing::{self, Piece};
use crate::ids::{Ids, Native};
use crate::log::Log;
use crate::report::{ImportError, InputReport};
use crate::source::{Hashing, SourceEnd, Span, note, src};

/// A source of JSON lines and the log that its records go into.
pub struct Transcript {
    /// The log.
    pub log: Log,
    /// Name of the source.
    pub source: String,
    /// Makes the ids of its events.
    pub ids: Ids,
    /// What was read of it.
    pub input: InputReport,
    /// Where the source is a part of the file that was read: how many bytes and lines of the file before the record at hand are
    /// not in the source.
    pub skipped: (u64, u64),
}

/// What became of a line that was offered as one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is a record.
    Record,
    /// It is JSON, and has not the form of a record; with the reason.
    Shapeless(String),
    /// It is no JSON.
    NoJson,
}

impl Taken {
    /// What an error of reading a record means for its line.
    #[must_use]
    pub fn from_error(error: &serde_json::Error, text: &str) -> Self {
        if error.is_data() && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok() {
            Taken::Shapeless(error.to_string())
        } else {
            Taken::NoJson
        }
    }
}

/// Maps the records of one transcript.
pub trait Records {
    /// The transcript that the records come from.
    fn transcript(&mut self) -> &mut Transcript;

    /// Maps a record if `text` is one. `exact` says that `text` is the source's own bytes: without it, bytes that are no
    /// UTF-8 were replaced.
    ///
    /// # Errors
    /// When the output refuses.
    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError>;

    /// Whether the text of an object that was found inside a damaged line can be a record of this format.
    fn looks_like_record(text: &str) -> bool;

    /// The id of the record that a fragment was a part of, if it can still be read.
    fn readable_id(_fragment: &[u8]) -> Option<String> {
        None
    }
}

impl Transcript {
    /// A transcript that nothing was read of.
    #[must_use]
    pub fn new(mut log: Log, source: String, path: String, format: &str) -> Self {
        if log.again {
            let place =
                Place { input: Some(path.clone()), session: Some(log.session().to_owned()), ..Place::default() };
            let why =
                "another file of the same session was imported before; the log of this one has a number in its name";
            log.diagnostics.push(Diagnostic::new(Code::SessionRepeated, Severity::Warning, place).because(why));
        }
        let ids = log.ids(&source);
        Transcript {
            log,
            source,
            ids,
            input: InputReport { path, format: format.into(), ..InputReport::default() },
            skipped: (0, 0),
        }
    }

    /// Reads another source into the same log, by `read`. Returns what that gives, and what was read.
    pub fn of_another<T>(
        &mut self,
        source: String,
        path: String,
        format: &str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> (T, InputReport) {
        let ids = self.log.ids(&source);
        let input = InputReport { path, format: format.into(), ..InputReport::default() };
        let mut other = (source, ids, input, (0, 0));
        self.swap(&mut other);
        let result = read(self);
        self.swap(&mut other);
        (result, other.2)
    }

    fn swap(&mut self, other: &mut (String, Ids, InputReport, (u64, u64))) {
        std::mem::swap(&mut self.source, &mut other.0);
        std::mem::swap(&mut self.ids, &mut other.1);
        std::mem::swap(&mut self.input, &mut other.2);
        std::mem::swap(&mut self.skipped, &mut other.3);
    }

    /// The place of a record, for a diagnostic.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        Place {
            input: Some(self.input.path.clone()),
            line: Some(span.line + self.skipped.1),
            offset: Some(span.at + self.skipped.0),
            length: Some(span.len),
            ..Place::default()
        }
    }

    /// Reports a warning.
    pub fn warn(&mut self, code: Code, place: Place) {
        self.log.diagnostics.push(Diagnostic::new(code, Severity::Warning, place));
    }

    /// Reports something worth knowing.
    pub fn info(&mut self, code: Code, place: Place) {
        self.log.diagnostics.push(Diagnostic::new(code, Severity::Info, place));
    }

    /// Counts a record of the kind `kind`.
    pub fn count(&mut self, kind: String) {
        self.input.records += 1;
        *self.input.by_type.entry(kind).or_default() += 1;
    }

    /// Reports lone surrogates in a record.
    pub fn look_at_text(&mut self, text: &str, exact: bool, span: Span) {
        if memchr::memmem::find(text.as_bytes(), b"\\u").is_none() {
            return;
        }
        for at in palog::json::lone_surrogates(text.as_bytes()) {
            let span = if exact { Span { at: span.at + at as u64, len: 6, ..span } } else { span };
            let place = self.place(span);
            self.warn(Code::LoneSurrogate, place);
        }
    }

    fn damage(&mut self, code: Code, span: Span, why: String) {
        let place = self.place(span);
        self.log.diagnostics.push(Diagnostic::new(code, Severity::Warning, place).because(why));
    }

    /// Keeps bytes that are no record, in a note of the kind `kind`.
    fn fragment(&mut self, span: Span, bytes: &[u8], kind: &'static str) -> Result<(), WriteError> {
        let value = match std::str::from_utf8(bytes) {
            _ if kind == "hole" => None,
            Ok(text) => Some(Value::from(text)),
            Err(_) => Some(Value::Inline(Raw::of(&serde_json::json!({ "base64": BASE64.encode(bytes) })))),
        };
        let note = NoteAdded {
            source: Some(self.source.as_str().into()),
            at: Some(span.at),
            len: Some(span.len),
            bytes: value,
            ..note(kind)
        };
        let id = self.ids.event(Native::Offset(span.at), 0).hex();
        self.log.append(&mut Draft::new(id, ActorKind::Importer, note))
    }

    /// Keeps a JSON value that is a record by its place and has not the form of one. It may be a part of a response
    /// (R-TRN-011).
    fn shapeless(&mut self, text: &str, span: Span, why: String) -> Result<(), WriteError> {
        self.damage(Code::UnexpectedShape, span, why);
        self.count("(other)".into());
        self.input.kept += 1;
        let Ok(raw) = Raw::parse(text) else { return Ok(()) };
        let id = self.ids.event(Native::Offset(span.at), 0).hex();
        let data = self.log.kept("unexpected", raw);
        let mut draft =
            Draft::new(id.clone(), ActorKind::Importer, data).from(src(&self.source, span, Some(SrcHow::Opaque)));
        draft.ignorable = Some(true);
        self.log.append(&mut draft)?;
        let note = NoteAdded { about: Some(id.into()), ..note("unread") };
        let id = self.ids.event(Native::Offset(span.at), 1).hex();
        self.log.append(&mut Draft::new(id, ActorKind::Importer, note).from(src(
            &self.source,
            span,
            Some(SrcHow::Opaque),
        )))
    }
}

/// Reads a transcript from its beginning to its end.
///
/// # Errors
/// When the file cannot be read, or the output refuses.
pub fn read<R: Records>(records: &mut R, bytes: &mut File) -> Result<SourceEnd, ImportError> {
    let path = records.transcript().input.path.clone();
    let unreadable = |error: io::Error| ImportError::Read { path: path.clone().into(), error };
    bytes.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut hashing = Hashing::new(bytes);
    let mut terminated = true;
    {
        let mut lines = Lines::new(&mut hashing).of_any_length();
        loop {
            let (line, torn) = match lines.next_line().map_err(unreadable)? {
                Next::Line(line) => (line, false),
                Next::TornTail(line) => (line, true),
                Next::TooLong(_) | Next::End => break,
            };
            terminated = !torn;
            let span = Span { at: line.offset, len: line.bytes.len() as u64, line: line.number };
            read_line(records, line.bytes, span, torn)?;
        }
    }
    let (digest, len) = hashing.finish();
    Ok(SourceEnd { digest, len, records: records.transcript().input.records, terminated })
}

/// Reads one line, which should be one record; white space around it does not count. `torn`: it has no line feed.
///
/// # Errors
/// When the output refuses.
pub fn read_line<R: Records>(records: &mut R, line: &[u8], span: Span, torn: bool) -> Result<(), WriteError> {
    let mark = if span.at == 0 && line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let lead = mark + line[mark..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    let bytes = line[lead..].trim_ascii_end();
    records.transcript().input.lines += 1;
    if bytes.is_empty() {
        return Ok(());
    }
    let span = Span { at: span.at + lead as u64, len: bytes.len() as u64, ..span };
    take_line(records, bytes, span, torn)
}

fn take_line<R: Records>(records: &mut R, bytes: &[u8], span: Span, torn: bool) -> Result<(), WriteError> {
    let (text, invalid) = framing::text(bytes);
    for (at, len) in &invalid {
        let span = Span { at: span.at + *at as u64, len: *len as u64, ..span };
        records.transcript().damage(Code::InvalidUtf8, span, "bytes that are not UTF-8".into());
    }
    match records.take(&text, invalid.is_empty(), span)? {
        Taken::Record => return Ok(()),
        Taken::Shapeless(why) => return records.transcript().shapeless(&text, span, why),
        Taken::NoJson => {}
    }
    let pieces = framing::recover(bytes, R::looks_like_record);
    let whole = pieces.iter().filter(|p| matches!(p, Piece::Record { .. })).count();
    if whole > 1 {
        records.transcript().damage(Code::ConcatenatedRecords, span, format!("{whole} records on one line"));
    }
    for piece in pieces {
        let (Piece::Record { at, len } | Piece::Fragment { at, len } | Piece::Hole { at, len }) = piece;
        let own = Span { at: span.at + at as u64, len: len as u64, ..span };
        let bytes = &bytes[at..at + len];
        match piece {
            Piece::Hole { .. } => {
                records.transcript().damage(Code::NulRun, own, format!("{len} zero bytes"));
                records.transcript().fragment(own, bytes, "hole")?;
            }
            Piece::Fragment { .. } => {
                let is_tail = torn && own.at + own.len == span.at + span.len;
                let (code, kind) = if is_tail { (Code::TornTail, "torn") } else { (Code::Fragment, "fragment") };
                let transcript = records.transcript();
                transcript.input.fragments += 1;
                let place = Place { record: R::readable_id(bytes), ..transcript.place(own) };
                transcript.warn(code, place);
                transcript.fragment(own, bytes, kind)?;
            }
            Piece::Record { .. } => {
                let (text, invalid) = framing::text(bytes);
                match records.take(&text, invalid.is_empty(), own)? {
                    Taken::Record => {}
                    Taken::Shapeless(why) => records.transcript().shapeless(&text, own, why)?,
                    Taken::NoJson => records.transcript().fragment(own, bytes, "fragment")?,
                }
            }
        }
    }
    Ok(())
}

/// Offers the text of each record of a file, in order, until `take` says that it has enough; and goes back to the beginning.
/// Returns the number of physical lines that were looked at.
///
/// # Errors
/// When the file cannot be read.
pub fn peek(
    bytes: &mut File,
    looks_like_record: impl Fn(&str) -> bool,
    mut take: impl FnMut(&str) -> bool,
) -> io::Result<u64> {
    bytes.seek(SeekFrom::Start(0))?;
    let count = each(&mut *bytes, looks_like_record, |text, _| take(text))?;
    bytes.seek(SeekFrom::Start(0))?;
    Ok(count)
}

/// Offers the text of each record, with its place, until `take` says that it has enough. Returns the number of physical lines
/// that were looked at.
///
/// # Errors
/// When the input cannot be read.
pub fn each(
    input: impl io::Read,
    looks_like_record: impl Fn(&str) -> bool,
    mut take: impl FnMut(&str, Span) -> bool,
) -> io::Result<u64> {
    let mut count = 0;
    let mut lines = Lines::new(input).of_any_length();
    while let Next::Line(line) | Next::TornTail(line) = lines.next_line()? {
        count += 1;
        let mark = if line.offset == 0 && line.bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let lead = mark + line.bytes[mark..].len() - line.bytes[mark..].trim_ascii_start().len();
        let bytes = line.bytes[lead..].trim_ascii_end();
        let span =
            |at: usize, len: usize| Span { at: line.offset + (lead + at) as u64, len: len as u64, line: line.number };
        let (text, _) = framing::text(bytes);
        if serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok() {
            if take(&text, span(0, bytes.len())) {
                break;
            }
            continue;
        }
        for piece in framing::recover(bytes, &looks_like_record) {
            let Piece::Record { at, len } = piece else { continue };
            let (text, _) = framing::text(&bytes[at..at + len]);
            if take(&text, span(at, len)) {
                return Ok(count);
            }
        }
    }
    Ok(count)
}
