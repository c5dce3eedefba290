//! What `opencode export` prints: one JSON document with the session, its messages and their parts
//! (`spec/sources/opencode.md`, "Exports"). A pipe cuts it; what stands before the cut is read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use palog::diagnostic::{Code, Diagnostic, Severity};
use palog::envelope::{ActorKind, Draft};
use palog::events::NoteAdded;
use palog::json::{Raw, Value};
use palog_adapter::ids::Native;
use palog_adapter::source::note;
use palog_adapter::{ImportError, SourceEnd};

use crate::mapper::Mapper;
use crate::record::{Head, Named, Origin, Record};

/// Name of the source.
pub(crate) const SOURCE: &str = "export";

/// A value in the document, and where it stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    at: Range<usize>,
    pointer: String,
}

/// A message with its parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    info: Option<Piece>,
    parts: Vec<Piece>,
}

/// What the document holds, by place.
#[derive(Debug, Default, PartialEq, Eq)]
struct Document {
    info: Option<Piece>,
    messages: Vec<Message>,
    /// Members that nobody knows.
    others: Vec<Piece>,
    /// Where the value begins that is not there to its end.
    cut: Option<usize>,
}

/// A value is not there to its end, or is none.
struct Cut(usize);

type Walked = Result<(), Cut>;

/// Walks over a document.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Cursor<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Passes `byte` if it is the next one.
    fn passes(&mut self, byte: u8) -> bool {
        self.space();
        let is_next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// A whole value.
    fn value(&mut self) -> Result<Range<usize>, Cut> {
        self.space();
        let start = self.at;
        let (mut depth, mut quoted) = (0_usize, false);
        while let Some(byte) = self.bytes.get(self.at) {
            match (quoted, byte) {
                (true, b'\\') => self.at += 1,
                (_, b'"') => quoted = !quoted,
                (false, b'{' | b'[') => depth += 1,
                (false, b'}' | b']') if depth == 0 => return self.scalar(start),
                (false, b'}' | b']') => depth -= 1,
                (false, b',') if depth == 0 => return self.scalar(start),
                (false, b' ' | b'\n' | b'\r' | b'\t') if depth == 0 => return self.scalar(start),
                _ => {}
            }
            self.at += 1;
            let ends = depth == 0 && !quoted && matches!(self.bytes.get(self.at - 1), Some(b'"' | b'}' | b']'));
            if ends {
                return Ok(start..self.at);
            }
        }
        self.at = start;
        Err(Cut(start))
    }

    fn scalar(&self, start: usize) -> Result<Range<usize>, Cut> {
        if self.at > start { Ok(start..self.at) } else { Err(Cut(start)) }
    }

    /// The members of an object, each with its name; `each` passes the value.
    fn object(&mut self, mut each: impl FnMut(&mut Self, &str) -> Walked) -> Walked {
        self.space();
        let start = self.at;
        if !self.passes(b'{') {
            return Err(Cut(start));
        }
        if self.passes(b'}') {
            return Ok(());
        }
        loop {
            self.space();
            let start = self.at;
            let name = self.value()?;
            if !self.passes(b':') {
                return Err(Cut(start));
            }
            let name: String = serde_json::from_slice(&self.bytes[name]).map_err(|_| Cut(start))?;
            each(self, &name)?;
            if self.passes(b'}') {
                return Ok(());
            }
            if !self.passes(b',') {
                return Err(Cut(self.at));
            }
        }
    }

    /// The items of a list, by number.
    fn array(&mut self, mut each: impl FnMut(&mut Self, usize) -> Walked) -> Walked {
        self.space();
        let start = self.at;
        if !self.passes(b'[') {
            return Err(Cut(start));
        }
        if self.passes(b']') {
            return Ok(());
        }
        for number in 0.. {
            each(self, number)?;
            if self.passes(b']') {
                return Ok(());
            }
            if !self.passes(b',') {
                return Err(Cut(self.at));
            }
        }
        Ok(())
    }

    fn piece(&mut self, pointer: String) -> Result<Piece, Cut> {
        self.value().map(|at| Piece { at, pointer })
    }
}

impl Document {
    fn of(bytes: &[u8]) -> Self {
        let mut document = Document::default();
        let mut cursor = Cursor { bytes, at: 0 };
        let walked = cursor.object(|cursor, name| {
            match name {
                "info" => document.info = Some(cursor.piece("/info".into())?),
                "messages" => cursor.array(|cursor, number| {
                    document.messages.push(Message::default());
                    document.message(cursor, number)
                })?,
                other => document.others.push(cursor.piece(format!("/{other}"))?),
            }
            Ok(())
        });
        document.cut = match walked {
            Err(Cut(at)) => Some(at),
            Ok(()) => {
                cursor.space();
                (cursor.at < bytes.len()).then_some(cursor.at)
            }
        };
        document
    }

    fn message(&mut self, cursor: &mut Cursor<'_>, number: usize) -> Walked {
        let pointer = format!("/messages/{number}");
        cursor.object(|cursor, name| {
            let Some(message) = self.messages.last_mut() else { return Err(Cut(cursor.at)) };
            match name {
                "info" => message.info = Some(cursor.piece(format!("{pointer}/info"))?),
                "parts" => cursor.array(|cursor, part| {
                    message.parts.push(cursor.piece(format!("{pointer}/parts/{part}"))?);
                    Ok(())
                })?,
                other => self.others.push(cursor.piece(format!("{pointer}/{other}"))?),
            }
            Ok(())
        })
    }
}

/// Whether the first bytes of a file are those of an export.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let document = Document::of(head);
    let head: Option<Head<'_>> = document.info.and_then(|piece| serde_json::from_slice(&head[piece.at]).ok());
    head.is_some_and(|head| head.id.is_some() && head.time.is_some())
}

/// What an export says of its session.
pub(crate) fn info(bytes: &[u8]) -> Option<Head<'_>> {
    let info = Document::of(bytes).info?;
    serde_json::from_slice(&bytes[info.at]).ok()
}

/// The session that an export tells of, and the one that it belongs to.
pub(crate) fn head(bytes: &[u8]) -> Option<(String, Option<String>)> {
    let head = info(bytes)?;
    Some((head.id?.to_string(), head.parent.map(|p| p.to_string())))
}

/// A piece as a record. What was told of an id before has another one: its place.
fn record<'b>(bytes: &'b [u8], piece: &Piece, kind: &'static str, seen: &mut HashSet<String>) -> Record<'b> {
    let text = String::from_utf8_lossy(&bytes[piece.at.clone()]);
    let named: Named<'_> = serde_json::from_str(&text).unwrap_or_default();
    let id = named.id.map(|id| id.to_string()).unwrap_or_default();
    let created = named.time.and_then(|t| t.created);
    let is_new = !id.is_empty() && seen.insert(id.clone());
    let origin = Origin::Span {
        at: piece.at.start as u64,
        len: piece.at.len() as u64,
        line: None,
        pointer: Some(piece.pointer.clone()),
        id: is_new.then(|| id.clone()),
    };
    Record { kind: Cow::Borrowed(kind), id, created, text, origin }
}

/// Writes an export into a log.
pub(crate) fn write(mapper: &mut Mapper, bytes: &[u8]) -> Result<SourceEnd, ImportError> {
    let document = Document::of(bytes);
    let mut seen = HashSet::new();
    let mut revert = None;
    let count = |mapper: &mut Mapper, kind: &str| {
        mapper.input.records += 1;
        *mapper.input.by_type.entry(kind.to_owned()).or_default() += 1;
    };
    if let Some(info) = &document.info {
        count(mapper, "info");
        let record = record(bytes, info, "info", &mut seen);
        match record.read::<Head<'_>>() {
            Some(head) => {
                mapper.session(&record, &head)?;
                revert = head.revert.map(|revert| (record.origin.clone(), revert));
            }
            None => mapper.odd(&record)?,
        }
    }
    let mut messages = Vec::new();
    for message in &document.messages {
        let mut parts: Vec<Record<'_>> =
            message.parts.iter().map(|piece| record(bytes, piece, "part", &mut seen)).collect();
        parts.iter().for_each(|_| count(mapper, "part"));
        let info = message.info.as_ref().map(|piece| record(bytes, piece, "message", &mut seen));
        info.iter().for_each(|_| count(mapper, "message"));
        parts.sort_by(|a, b| a.id.cmp(&b.id));
        messages.push((info, parts));
    }
    if let (Some(cut), Some((_, parts))) = (document.cut, messages.last_mut()) {
        parts.extend(salvaged(bytes, cut));
    }
    messages.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) => (a.created, &a.id).cmp(&(b.created, &b.id)),
        // What stands behind the cut comes last.
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    for (info, parts) in &messages {
        match info {
            Some(info) => mapper.message(info, parts)?,
            None => mapper.strays("", parts)?,
        }
    }
    for other in &document.others {
        mapper.keep(&record(bytes, other, "unexpected", &mut seen), "unexpected")?;
    }
    if let Some((origin, revert)) = revert {
        mapper.reverted(&origin, &revert)?;
    }
    mapper.conclude()?;
    if let Some(cut) = document.cut {
        torn(mapper, bytes, cut)?;
    }
    Ok(SourceEnd::of(bytes, mapper.input.records))
}

/// A call that the cut went through: that it was made is told, how it ended is not.
fn salvaged(bytes: &[u8], cut: usize) -> Option<Record<'static>> {
    let mut members: Vec<(String, Range<usize>)> = Vec::new();
    let mut cursor = Cursor { bytes, at: cut };
    // The walk ends at the cut.
    let _ = cursor.object(|cursor, name| {
        if name != "state" {
            members.push((name.to_owned(), cursor.value()?));
            return Ok(());
        }
        cursor.object(|cursor, name| {
            members.push((format!("state.{name}"), cursor.value()?));
            Ok(())
        })
    });
    let text = |name: &str| {
        let (_, at) = members.iter().find(|(member, _)| member == name)?;
        std::str::from_utf8(&bytes[at.clone()]).ok()
    };
    let (Some("\"tool\""), Some(call), Some(tool)) = (text("type"), text("callID"), text("tool")) else { return None };
    let input = text("state.input").map(|input| format!(",\"input\":{input}")).unwrap_or_default();
    let text =
        format!("{{\"type\":\"tool\",\"callID\":{call},\"tool\":{tool},\"state\":{{\"status\":\"running\"{input}}}}}");
    let origin = Origin::Span {
        at: cut as u64,
        len: bytes[cut..].trim_ascii_end().len() as u64,
        line: None,
        pointer: None,
        id: None,
    };
    Some(Record { kind: "part".into(), id: String::new(), created: None, text: text.into(), origin })
}

/// What stands behind the last whole value.
fn torn(mapper: &mut Mapper, bytes: &[u8], cut: usize) -> Result<(), ImportError> {
    let rest = &bytes[cut..];
    let len = rest.trim_ascii_end().len() as u64;
    mapper.input.fragments += 1;
    let place = palog::diagnostic::Place {
        offset: Some(cut as u64),
        length: Some(len),
        input: Some(mapper.input.path.clone()),
        ..palog::diagnostic::Place::default()
    };
    // The client cuts it at 65,536 bytes when it writes into a pipe, and says that all went well.
    let why = "the export is not whole; export into a file, not into a pipe".to_owned();
    mapper.log.diagnostics.push(Diagnostic::new(Code::TornTail, Severity::Error, place).because(why));
    let value = match std::str::from_utf8(rest) {
        Ok(text) => Value::from(text),
        Err(_) => Value::Inline(Raw::string(&String::from_utf8_lossy(rest))),
    };
    let note = NoteAdded {
        source: Some(SOURCE.into()),
        at: Some(cut as u64),
        len: Some(len),
        bytes: Some(value),
        ..note("torn")
    };
    let id = mapper.log.ids("export/torn").event(Native::Offset(cut as u64), 0).hex();
    Ok(mapper.log.append(&mut Draft::new(id, ActorKind::Importer, note))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{ "info": {"id":"ses_1","time":{"created":1}}, "messages": [
        {"info":{"id":"msg_1","role":"user"},"parts":[{"id":"prt_1","text":"}]\"{"},{"id":"prt_2"}]},
        {"info":{"id":"msg_2"},"parts":[]} ], "more": 12 }"#;

    #[test]
    fn pieces_are_found_with_their_places() {
        let document = Document::of(WHOLE.as_bytes());
        let text = |piece: &Piece| &WHOLE[piece.at.clone()];
        assert_eq!(document.cut, None);
        assert_eq!(document.info.as_ref().map(text), Some(r#"{"id":"ses_1","time":{"created":1}}"#));
        assert_eq!(document.messages.len(), 2);
        let parts: Vec<_> = document.messages[0].parts.iter().map(|p| (text(p), p.pointer.as_str())).collect();
        assert_eq!(parts[0], (r#"{"id":"prt_1","text":"}]\"{"}"#, "/messages/0/parts/0"));
        assert_eq!(parts[1], (r#"{"id":"prt_2"}"#, "/messages/0/parts/1"));
        assert_eq!(document.others.iter().map(text).collect::<Vec<_>>(), ["12"]);
    }

    #[test]
    fn wherever_it_is_cut_whole_pieces_stand_before_and_the_rest_is_told() {
        let whole = Document::of(WHOLE.as_bytes());
        for cut in 1..WHOLE.len() {
            let document = Document::of(&WHOLE.as_bytes()[..cut]);
            let at = document.cut.expect("it is cut");
            assert!(at <= cut, "{cut}");
            for (number, message) in document.messages.iter().enumerate() {
                let full = &whole.messages[number];
                assert!(message.info.is_none() || message.info == full.info, "{cut}");
                assert_eq!(message.parts[..], full.parts[..message.parts.len()], "{cut}");
                let ends = message.parts.iter().chain(&message.info).map(|p| p.at.end).max().unwrap_or(0);
                assert!(ends <= at, "{cut}");
            }
        }
    }

    #[test]
    fn a_call_that_the_cut_went_through_is_told() {
        let text = r#"{"type":"tool","tool":"bash","callID":"call_1","state":{"status":"completed","input":{"command":"x"},"output":"abc"#;
        let record = salvaged(text.as_bytes(), 0).expect("a call");
        assert_eq!(
            record.text,
            r#"{"type":"tool","callID":"call_1","tool":"bash","state":{"status":"running","input":{"command":"x"}}}"#
        );
        assert!(salvaged(br#"{"type":"text","text":"ab"#, 0).is_none());
        assert!(salvaged(br#"{"type":"tool","tool":"ba"#, 0).is_none());
    }
}
