//! Reading a log for a projection: once through, and then only the lines that are needed.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use crate::envelope::Event;
use crate::events::Data;
use crate::reader::{Item, Line, Reader};
use crate::writer::LINE_HARD_LIMIT;

/// Hands every event to `each`, in the order of the log; what is no event goes to `faults`.
pub(super) fn scan(
    log: impl Read,
    faults: &mut Diagnostics,
    mut each: impl FnMut(&Event<'_>, Line<'_>, &mut Diagnostics) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut reader = Reader::new(log);
    while let Some(item) = reader.next()? {
        match item {
            Item::Fault(fault) => faults.push(fault),
            Item::Event(event, line) => {
                if each(&event, line, faults).is_break() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The payload of `event`; a malformed one is told and passed on as it stands.
pub(super) fn payload<'e>(event: &'e Event<'_>, line: Line<'_>, faults: &mut Diagnostics) -> Data<'e> {
    event.data().unwrap_or_else(|e| {
        let mut place = line.place();
        place.record = Some(event.id.to_string());
        place.kind = Some(event.kind.to_string());
        faults.push(Diagnostic::new(Code::BadPayload, Severity::Error, place).because(e.to_string()));
        Data::Other(event.kind.as_str().into(), event.data.borrowed())
    })
}

/// Reads single lines of a log again.
#[derive(Debug)]
pub(super) struct LineAt<R> {
    input: BufReader<R>,
    position: u64,
    line: Vec<u8>,
}

impl<R: Read + Seek> LineAt<R> {
    pub(super) fn new(log: R) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(64 << 10, log);
        input.seek(SeekFrom::Start(0))?;
        Ok(LineAt { input, position: 0, line: Vec::new() })
    }

    /// The event in the line at `offset`, where a first reading found one.
    pub(super) fn event(&mut self, offset: u64) -> io::Result<Event<'_>> {
        let text = self.text(offset)?;
        Event::parse(text).map_err(|_| changed())
    }

    /// The line at `offset`.
    pub(super) fn text(&mut self, offset: u64) -> io::Result<&str> {
        let step = i64::try_from(i128::from(offset) - i128::from(self.position)).map_err(io::Error::other)?;
        self.input.seek_relative(step)?;
        self.line.clear();
        let limit = LINE_HARD_LIMIT as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
        self.position = offset + read as u64;
        simdutf8::compat::from_utf8(&self.line).map_err(|_| changed())
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the log was changed while it was read")
}
