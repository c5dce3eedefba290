//! The end of a log: where a writer goes on (spec 01, "Writing"). Its cost does not depend on the length of the log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::error::OpenError;
use crate::cursor::Cursor;
use crate::diagnostic::{Code, Diagnostic, Place, Severity};
use crate::envelope::{Event, MAJOR, SPEC, version};
use crate::events::Data;
use crate::reader::{Item, Line, Lines, Next, Reader, parse, too_long};
use crate::writer::LINE_HARD_LIMIT;

/// What is read of the end: it holds the last line, and the lines before it that come for the price of one read.
const WINDOW: u64 = 64 << 10;

/// Why the end of a log cannot be gone on from.
#[derive(Debug)]
pub(super) enum TailError {
    Io(io::Error),
    Refused(Box<Diagnostic>),
}

impl From<io::Error> for TailError {
    fn from(error: io::Error) -> Self {
        TailError::Io(error)
    }
}

impl From<Diagnostic> for TailError {
    fn from(diagnostic: Diagnostic) -> Self {
        TailError::Refused(Box::new(diagnostic))
    }
}

impl From<TailError> for OpenError {
    fn from(error: TailError) -> Self {
        match error {
            TailError::Io(error) => OpenError::Io(error),
            TailError::Refused(diagnostic) => OpenError::Refused(diagnostic),
        }
    }
}

/// The last event, and what it takes to follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) cursor: Cursor,
    /// The newest epoch.
    pub(super) epoch: Option<u64>,
    /// Whether `log.closed` is there.
    pub(super) closed: bool,
}

impl Head {
    /// The head after `event`, which the line `bytes` holds.
    pub(super) fn after(before: Option<Head>, event: &Event<'_>, bytes: &[u8]) -> Self {
        Head {
            cursor: Cursor::of(event.seq, bytes),
            epoch: before.and_then(|h| h.epoch).max(event.epoch),
            closed: before.is_some_and(|h| h.closed) || event.kind == *"log.closed",
        }
    }
}

/// The end of a log that can be appended to.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) log: String,
    pub(super) head: Head,
    /// Whether the lines are linked by `prev`.
    pub(super) linked: bool,
    /// Length of the whole lines: where the next one goes.
    pub(super) end: u64,
    /// Length of the torn tail behind them.
    pub(super) torn: u64,
}

impl Tail {
    /// Reads the opening and the end, and refuses what must not be appended to.
    pub(super) fn read(file: &File) -> Result<Self, TailError> {
        let len = file.metadata()?.len();
        let log = read_opening(file)?;
        let end = find_back(file, len)?.map_or(0, |at| at + 1);
        let window = Window::before(file, end)?;
        let (mut head, mut linked) = (None, false);
        for line in window.lines() {
            let event = read_event(line, &log)?;
            linked = event.prev.is_some();
            head = Some(follow(head, &event, line, &window)?);
        }
        let mut head = head.ok_or_else(|| not_opened("the log holds no event"))?;
        head.closed |= is_closed(file, &log, window)?;
        if head.closed {
            let why = "the log is closed; nothing but notes follows";
            return Err(refusal(Code::Closed, Place::default(), why).rule("R-ENV-016").into());
        }
        Ok(Tail { log, head, linked, end, torn: len - end })
    }
}

/// Reads the first line: the id of the log, if it is one that this crate may append to.
fn read_opening(mut file: &File) -> Result<String, TailError> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = Reader::new(file);
    let (event, line) = match reader.next()? {
        Some(Item::Event(event, line)) => (event, line),
        Some(Item::Fault(diagnostic)) if diagnostic.code != Code::TornTail => return Err(diagnostic.into()),
        Some(Item::Fault(_)) | None => return Err(not_opened("the log has no whole line").into()),
    };
    if event.seq != 0 || event.kind != *"log.opened" {
        return Err(not_opened("the first event is not log.opened").into());
    }
    let opened = match event.data() {
        Ok(Data::LogOpened(opened)) => opened,
        Ok(_) => return Err(not_opened("the first event is not log.opened").into()),
        Err(e) => return Err(refusal(Code::BadPayload, line.place(), format!("log.opened: {e}")).into()),
    };
    check_version(&opened.spec, line.place())?;
    Ok(event.log.to_string())
}

/// Refuses a version of the format that this crate must not write.
pub(super) fn check_version(spec: &str, place: Place) -> Result<(), TailError> {
    let newest = version(SPEC).map_or(0, |(_, minor)| minor);
    Err(match version(spec) {
        Some((MAJOR, minor)) if minor <= newest => return Ok(()),
        Some((MAJOR, _)) => {
            refusal(Code::NewerMinor, place, format!("the log is of version {spec}, this program writes {SPEC}"))
        }
        Some(_) => refusal(Code::UnsupportedVersion, place, format!("version {spec}")).rule("R-ENV-001"),
        None => refusal(Code::BadPayload, place, format!("{spec:?} is no version")),
    }
    .into())
}

/// Whole lines that end at one place of the file.
struct Window {
    bytes: Vec<u8>,
    /// Offset of the first line.
    start: u64,
}

impl Window {
    /// The last line before `end`, which follows a line feed, and the lines before it as far as they come cheaply.
    fn before(mut file: &File, end: u64) -> Result<Self, TailError> {
        let Some(last_feed) = end.checked_sub(1) else { return Ok(Window { bytes: Vec::new(), start: 0 }) };
        let last = find_back(file, last_feed)?.map_or(0, |at| at + 1);
        let len = last_feed - last;
        if len > LINE_HARD_LIMIT as u64 {
            let place = Place { offset: Some(last), length: Some(len), ..Place::default() };
            return Err(too_long(place, len).into());
        }
        let mut start = last.min(end.saturating_sub(WINDOW));
        let mut bytes = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        if start > 0 && start < last {
            let cut = memchr::memchr(b'\n', &bytes).map_or(0, |at| at + 1);
            bytes.drain(..cut);
            start += cut as u64;
        }
        Ok(Window { bytes, start })
    }

    fn lines(&self) -> impl DoubleEndedIterator<Item = Line<'_>> {
        let whole = self.bytes.strip_suffix(b"\n");
        whole.into_iter().flat_map(|whole| whole.split(|b| *b == b'\n')).map(|bytes| {
            let offset = self.start + (bytes.as_ptr().addr() - self.bytes.as_ptr().addr()) as u64;
            Line { bytes, offset, number: 0 }
        })
    }
}

/// Whether the last event that is no note, up to and in `window`, closes the log.
fn is_closed(file: &File, log: &str, mut window: Window) -> Result<bool, TailError> {
    loop {
        for line in window.lines().rev() {
            let event = read_event(line, log)?;
            if event.kind != *"note.added" {
                return Ok(event.kind == *"log.closed");
            }
        }
        if window.start == 0 {
            return Ok(false);
        }
        window = Window::before(file, window.start)?;
    }
}

/// Reads the events that were added from `from` to the end by somebody else; `None` if the last one is not whole.
pub(super) fn read_added(
    mut file: &File,
    log: &str,
    from: u64,
    before: Head,
) -> Result<Option<(Head, u64)>, TailError> {
    file.seek(SeekFrom::Start(from))?;
    let mut lines = Lines::new(file);
    let (mut head, mut end) = (before, from);
    loop {
        match lines.next_line()? {
            Next::End => return Ok(Some((head, end))),
            Next::TornTail(_) => return Ok(None),
            Next::TooLong(diagnostic) => return Err(without_line(diagnostic).into()),
            Next::Line(line) => {
                let line = Line { offset: from + line.offset, number: 0, ..line };
                let event = read_event(line, log)?;
                head = follow(Some(head), &event, line, &Window { bytes: Vec::new(), start: 0 })?;
                end = line.offset + line.bytes.len() as u64 + 1;
            }
        }
    }
}

/// Reads an event of the log `log`.
fn read_event<'l>(line: Line<'l>, log: &str) -> Result<Event<'l>, TailError> {
    let event = parse(line).map_err(without_line)?;
    if event.log == *log {
        Ok(event)
    } else {
        let why = format!("the event is of {:?}, the log is {log:?}", event.log);
        Err(without_line(refusal(Code::OtherLog, line.place(), why).rule("R-ENV-004")).into())
    }
}

/// The head after `event`, which must be the next one, or a line of `window` once more.
fn follow(before: Option<Head>, event: &Event<'_>, line: Line<'_>, window: &Window) -> Result<Head, TailError> {
    let Some(head) = before else { return Ok(Head::after(None, event, line.bytes)) };
    let last = head.cursor.seq;
    if Some(event.seq) == last.checked_add(1) {
        return Ok(Head::after(before, event, line.bytes));
    }
    if event.seq <= last && window.lines().take_while(|l| l.offset < line.offset).any(|l| l.bytes == line.bytes) {
        return Ok(head);
    }
    let code = if event.seq <= last { Code::SeqConflict } else { Code::SeqGap };
    let why = format!("seq {} follows seq {last}", event.seq);
    Err(without_line(refusal(code, line.place(), why).rule("R-ENV-005")).into())
}

/// Offset of the last line feed before `end`.
fn find_back(mut file: &File, end: u64) -> io::Result<Option<u64>> {
    let mut chunk = vec![0; WINDOW as usize];
    let mut end = end;
    while end > 0 {
        let start = end.saturating_sub(WINDOW);
        let part = &mut chunk[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return Ok(Some(start + at as u64));
        }
        end = start;
    }
    Ok(None)
}

fn refusal(code: Code, place: Place, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, Severity::Error, place).because(why)
}

fn not_opened(why: &str) -> Diagnostic {
    refusal(Code::NotOpened, Place::default(), why).rule("R-ENV-003")
}

/// The number of a line is not known where only the end is read.
fn without_line(mut diagnostic: Diagnostic) -> Diagnostic {
    diagnostic.place.line = None;
    diagnostic
}
