//! What the client exports: a line of JSON for each session, with its messages in it.
//!
//! An export lacks rows that a compaction or `/undo` left behind, counts by model, delegations and approvals.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::json::Raw;
use palog::reader::{Lines, Next};
use palog_adapter::framing;
use serde::Deserialize;

use crate::family::{Family, Kin};
use crate::record::Record;

/// Members that every session of an export has.
const MARKS: [&str; 4] = ["\"id\":", "\"source\":", "\"started_at\":", "\"parent_session_id\":"];

/// An export.
#[derive(Debug)]
pub(crate) struct Export {
    /// Where it is; `-` for standard input.
    pub(crate) path: PathBuf,
    pub(crate) locator: String,
    file: File,
    /// Where each session stands, with its physical line.
    lines: Vec<(String, u64, u64, u64)>,
    pub(crate) family: Family,
    /// What stands in it that is no session.
    pub(crate) findings: Vec<Diagnostic>,
}

/// A session of an export.
pub(crate) struct Exported {
    pub(crate) bytes: Vec<u8>,
    pub(crate) session: Record,
    pub(crate) messages: Vec<Raw<'static>>,
    /// Members that hold further records.
    pub(crate) segments: bool,
}

/// The members beside the columns.
#[derive(Deserialize)]
struct Beside<'a> {
    #[serde(borrow)]
    messages: Vec<Raw<'a>>,
    segments: Option<Raw<'a>>,
}

/// Whether something begins like an export.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    text.trim_start().starts_with('{') && MARKS.iter().all(|mark| text.contains(mark))
}

impl Export {
    /// Reads where the sessions stand.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn open(mut file: File, path: PathBuf, locator: String) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let (mut lines, mut kin, mut findings) = (Vec::new(), Vec::new(), Vec::new());
        let input = path.display().to_string();
        let mut reader = Lines::new(&mut file).of_any_length();
        loop {
            let (line, torn) = match reader.next_line()? {
                Next::Line(line) => (line, false),
                Next::TornTail(line) => (line, true),
                Next::TooLong(_) | Next::End => break,
            };
            let (at, len) = (line.offset, line.bytes.len() as u64);
            let (text, invalid) = framing::text(line.bytes);
            let record = session_of(&text);
            match record.as_ref().and_then(Kin::of).filter(|_| serde_json::from_str::<Beside<'_>>(&text).is_ok()) {
                Some(own) => {
                    lines.push((own.id.clone(), at, len, line.number));
                    kin.push(own);
                    if invalid.is_empty() {
                        continue;
                    }
                }
                None if text.trim().is_empty() => continue,
                None => {}
            }
            let code = match () {
                () if !invalid.is_empty() => Code::InvalidUtf8,
                () if torn => Code::TornTail,
                () => Code::Fragment,
            };
            let place = Place {
                input: Some(input.clone()),
                line: Some(line.number),
                offset: Some(at),
                length: Some(len),
                ..Place::default()
            };
            findings.push(Diagnostic::new(code, Severity::Warning, place));
        }
        Ok(Export { path, locator, file, lines, family: Family::new(kin), findings })
    }

    /// The ids of its sessions, in their order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|(id, ..)| id.as_str())
    }

    /// A session.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(&self, id: &str) -> io::Result<Option<Exported>> {
        let Some((_, at, len, _)) = self.lines.iter().find(|(own, ..)| own == id) else { return Ok(None) };
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(*at))?;
        let mut bytes = Vec::new();
        file.take(*len).read_to_end(&mut bytes)?;
        let (text, _) = framing::text(&bytes);
        let (Some(session), Ok(beside)) = (session_of(&text), serde_json::from_str::<Beside<'_>>(&text)) else {
            return Ok(None);
        };
        let messages = beside.messages.into_iter().map(Raw::into_owned).collect();
        let segments = beside.segments.is_some();
        Ok(Some(Exported { session, messages, segments, bytes: bytes.clone() }))
    }
}

/// The columns of the session in a line.
fn session_of(line: &str) -> Option<Record> {
    let mut record = Record::exported("session", String::new(), line.trim())?.without(&["messages", "segments"]);
    record.key = record.text("id")?.into_owned();
    Some(record)
}

/// A message of a session, by its id; by its place where it has none.
pub(crate) fn message(raw: &Raw<'_>, place: usize) -> Option<Record> {
    let mut record = Record::exported("message", String::new(), raw.get())?;
    record.key = record.integer("id").map_or_else(|| format!("#{place}"), |id| id.to_string());
    Some(record)
}
