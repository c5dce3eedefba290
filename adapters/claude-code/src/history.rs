//! `history.jsonl`: what was typed, of all sessions in one file. Each session gets its own lines.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::envelope::{ActorKind, Draft, SrcHow};
use palog::events::SourceOrder;
use palog::json::{Raw, Str};
use palog::reader::{Lines, Next};
use palog::writer::WriteError;
use palog_adapter::framing::{self, Piece};
use palog_adapter::ids::Native;
use palog_adapter::source::src;
use palog_adapter::{ImportError, InputReport, Records, SourceEnd, Span, Taken, Transcript, transcript};
use serde::Deserialize;

use crate::members::read;
use crate::paths::{Sidecar, is_id};

/// A record, as far as it tells whose it is.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Typed<'a> {
    #[serde(rename = "sessionId")]
    session: Option<Str<'a>>,
}

/// The session of a record; `None` if it is no record, `Some(None)` if it does not say.
fn session_of(text: &str) -> Option<Option<Str<'_>>> {
    read::<Typed<'_>>(text).ok().map(|record| record.members.session)
}

fn looks_like_record(text: &str) -> bool {
    session_of(text).is_some_and(|session| session.is_some())
}

/// Lines by the session that they belong to.
pub(crate) type Index = HashMap<String, Arc<[Span]>>;

/// Finds the lines of each session. Damage that does not tell whose it is belongs to the session of what stands before it.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn index(path: &Path) -> io::Result<Index> {
    let mut found: HashMap<String, Vec<Span>> = HashMap::new();
    let mut before = None;
    let mut lines = Lines::new(File::open(path)?).of_any_length();
    while let Next::Line(line) | Next::TornTail(line) = lines.next_line()? {
        let span = Span { at: line.offset, len: line.bytes.len() as u64, line: line.number };
        for session in sessions_of(line.bytes.trim_ascii(), &mut before) {
            let spans = found.entry(session).or_default();
            if spans.last() != Some(&span) {
                spans.push(span);
            }
        }
    }
    Ok(found.into_iter().map(|(session, spans)| (session, spans.into())).collect())
}

/// The sessions that a line belongs to. `before` is the session of the newest record that tells its own.
fn sessions_of(line: &[u8], before: &mut Option<String>) -> Vec<String> {
    let (text, _) = framing::text(line);
    if let Some(session) = session_of(&text) {
        *before = session.map(|session| session.to_string());
        return before.iter().cloned().collect();
    }
    let mut sessions = Vec::new();
    for piece in framing::recover(line, looks_like_record) {
        let told = match piece {
            Piece::Record { at, len } => {
                let (text, _) = framing::text(&line[at..at + len]);
                session_of(&text).flatten().map(|session| session.to_string())
            }
            Piece::Fragment { at, len } => readable_session(&line[at..at + len]),
            Piece::Hole { .. } => None,
        };
        *before = told.or(before.take());
        sessions.extend(before.clone());
    }
    sessions
}

/// The session id in a piece of a record.
fn readable_session(fragment: &[u8]) -> Option<String> {
    let marker = b"\"sessionId\":\"";
    let rest = &fragment[memchr::memmem::find(fragment, marker)? + marker.len()..];
    let id = std::str::from_utf8(&rest[..memchr::memchr(b'"', rest).unwrap_or(rest.len())]).ok()?;
    is_id(id).then(|| id.to_owned())
}

/// Keeps the lines of a session and tells of each record in them.
pub(crate) fn write(
    out: &mut Transcript,
    sidecar: &Sidecar,
    place: Option<&Path>,
) -> Result<Option<InputReport>, ImportError> {
    let path = sidecar.path.display().to_string();
    let lines = match read_lines(&sidecar.path, &sidecar.lines) {
        Ok(lines) => lines,
        Err(error) => {
            let place = Place { input: Some(path), ..Place::default() };
            let unreadable = Diagnostic::new(Code::Unreadable, Severity::Error, place).because(error.to_string());
            out.log.diagnostics.push(unreadable);
            return Ok(None);
        }
    };
    let source = &sidecar.source;
    out.log.open_source(source, &sidecar.locator, &[], SourceOrder::Source, place.is_some())?;
    let own = lines.concat();
    if let Some(place) = place {
        fs::write(place.join(source), &own).map_err(|e| ImportError::Write(e.into()))?;
    }
    let (told, input) = out.of_another(source.clone(), path, "claude-code.history", |out| {
        let session = out.log.session().to_owned();
        let mut history = History { out, session };
        let mut at = 0;
        for (number, (line, span)) in (1..).zip(lines.iter().zip(sidecar.lines.iter())) {
            history.out.skipped = (span.at - at, span.line - number);
            let torn = !line.ends_with(b"\n");
            transcript::read_line(&mut history, line, Span { at, len: line.len() as u64, line: number }, torn)?;
            at += line.len() as u64;
        }
        Ok::<(), WriteError>(())
    });
    told?;
    out.log.close_source(source, &SourceEnd::of(&own, input.records))?;
    Ok(Some(input))
}

/// These lines of a file, with their line feeds.
fn read_lines(path: &Path, spans: &[Span]) -> io::Result<Vec<Vec<u8>>> {
    let mut file = File::open(path)?;
    let mut read = |span: &Span| {
        file.seek(SeekFrom::Start(span.at))?;
        let mut line = Vec::new();
        Read::by_ref(&mut file).take(span.len + 1).read_to_end(&mut line)?;
        Ok(line)
    };
    spans.iter().map(&mut read).collect()
}

/// The lines of one session.
struct History<'t> {
    out: &'t mut Transcript,
    session: String,
}

impl Records for History<'_> {
    fn transcript(&mut self) -> &mut Transcript {
        self.out
    }

    fn take(&mut self, text: &str, exact: bool, span: Span) -> Result<Taken, WriteError> {
        let session = match read::<Typed<'_>>(text) {
            Ok(record) => record.members.session,
            Err(error) => return Ok(Taken::from_error(&error, text)),
        };
        let Ok(raw) = Raw::parse(text) else { return Ok(Taken::NoJson) };
        if session.is_none_or(|session| *session != *self.session) {
            self.out.input.foreign += 1;
            let place = self.out.place(span);
            self.out.warn(Code::ForeignRecord, place);
        }
        self.out.input.records += 1;
        self.out.input.kept += 1;
        let id = self.out.ids.event(Native::Offset(span.at), 0).hex();
        let how = if exact { SrcHow::Opaque } else { SrcHow::Degraded };
        let mut draft = Draft::new(id, ActorKind::Importer, self.out.log.kept("history", raw));
        draft.ignorable = Some(true);
        draft.src.push(src(&self.out.source, span, Some(how)));
        self.out.log.append(&mut draft).map(|()| Taken::Record)
    }

    fn looks_like_record(text: &str) -> bool {
        looks_like_record(text)
    }
}
