//! What holds of any bytes at all: `damage` checks it with fixtures that it damages, and so do the targets of the fuzzer
//! (`fuzz/`).

#[path = "any_log.rs"]
mod any_log;

use std::io::{self, Cursor, Seek, Write};
use std::sync::{Arc, Mutex};

use palog::diagnostic::Severity;
use palog::project::{At, openai};
use palog::validate::{self, validate};
use palog_import::{ImportError, Options, Session, Stream, Vendor};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes that can be had back from whoever was given a handle.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads bytes as a log, also as a context of another form.
pub(crate) fn read(log: &[u8]) {
    any_log::read(log);
    let _ = openai::context(Cursor::new(log), At::Head, None);
}

/// The log of the first session; `None` where nothing in it is known, or a line would be too long for a stream.
fn imported(source: &[u8], vendor: Vendor) -> Option<Vec<u8>> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(source).and_then(|()| file.rewind()).expect("it is written");
    let shared = Shared::default();
    let session = Session::from_stdin(file, Some(vendor)).expect("it can be read").into_iter().next()?;
    match session.import(&mut Stream::new(shared.clone()), &Options::default()) {
        Ok(_) => Some(std::mem::take(&mut *shared.0.lock().expect("nobody panicked"))),
        Err(ImportError::NothingRecognised { .. } | ImportError::Write(_)) => None,
        // Of a compressed file, what is damaged cannot be read.
        Err(ImportError::Read { .. }) if source.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The lines of a log up to its closing block.
fn body(log: &[u8]) -> Vec<&[u8]> {
    let is_end = |line: &&[u8]| event(line).is_some_and(|e| e.r#type == "note.added" && e.note().kind == "source_end");
    log.split(|b| *b == b'\n').filter(|line| !line.is_empty()).take_while(|line| !is_end(line)).collect()
}

/// What a line tells of a source. The rest of it may hold what a generic tree cannot.
#[derive(Deserialize)]
struct Event<'l> {
    r#type: String,
    #[serde(default)]
    src: Vec<Place>,
    copy: Option<&'l RawValue>,
    #[serde(borrow)]
    data: &'l RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Note {
    kind: String,
    at: Option<usize>,
    len: Option<usize>,
}

#[derive(Deserialize)]
struct Place {
    at: usize,
    len: usize,
}

fn event(line: &[u8]) -> Option<Event<'_>> {
    serde_json::from_slice(line).ok()
}

impl Event<'_> {
    fn note(&self) -> Note {
        serde_json::from_str(self.data.get()).unwrap_or_default()
    }
}

/// Imports bytes as a session: nothing panics, the log is valid and reads well, every byte of the source is told of, a second
/// import gives the same, and a source that is cut behind whole lines gives the beginning of the log.
pub(crate) fn import(source: &[u8], vendor: Vendor) {
    let Some(log) = imported(source, vendor) else { return };
    let validation = validate(log.as_slice(), &validate::Options::new()).expect("bytes in memory");
    let bad = validation.diagnostics.count(Severity::Error) + validation.diagnostics.count(Severity::Void);
    assert_eq!(bad, 0, "the log is invalid: {:?}", validation.diagnostics.groups());
    read(&log);
    assert_eq!(imported(source, vendor).as_deref(), Some(log.as_slice()), "a second import differs");
    if source.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return;
    }
    let whole = body(&log);
    account(source, &whole);
    let lines: Vec<usize> = source.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    for cut in [lines.len() / 3, lines.len() / 2, lines.len().saturating_sub(1)] {
        let Some(part) = lines.get(cut).and_then(|at| imported(&source[..*at], vendor)) else { continue };
        let part = body(&part);
        // A header that comes late tells whose session it is, and a border that comes late which records are copies.
        if part.first() == whole.first() && has_copies(&part) == has_copies(&whole) {
            assert!(whole.starts_with(&part), "cut behind line {cut}, its log is not the beginning of the whole one");
        }
    }
}

fn has_copies(lines: &[&[u8]]) -> bool {
    lines.iter().any(|line| event(line).is_some_and(|event| event.copy.is_some()))
}

/// Every byte that is no white space belongs to a record or a note.
fn account(source: &[u8], lines: &[&[u8]]) {
    let mut told = vec![false; source.len()];
    for event in lines.iter().map(|line| event(line).expect("a line of a log")) {
        event.src.iter().for_each(|place| told[place.at..place.at + place.len].fill(true));
        if let ("note.added", Note { at: Some(at), len: Some(len), .. }) = (event.r#type.as_str(), event.note()) {
            told[at..at + len].fill(true);
        }
    }
    let mark = if source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let lost = (mark..source.len()).find(|at| !told[*at] && !source[*at].is_ascii_whitespace());
    assert_eq!(lost, None, "nothing tells of the byte there");
}
