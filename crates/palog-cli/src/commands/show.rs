//! `palog show`

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use palog::cursor::Cursor;
use palog::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use palog::events::Data;
use palog::follow::Follow;
use palog::project::{Item, transcript};
use palog::reader::{self, Reader, ResumeError};

use crate::args::{Format, Show};
use crate::exit::{Exit, Failure};
use crate::input::{self, Opened};
use crate::output::show::Entry;
use crate::render;
use crate::render::diagnostics::Sources;
use crate::render::overview::Overview;
use crate::terminal::Terminal;

/// How long one wait for more is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the transcript of a session.
pub(crate) fn run(terminal: &mut Terminal, args: &Show) -> Result<Exit, Failure> {
    let log = input::open(terminal, &args.subject)?;
    if args.follow && log.path().is_none() {
        let failure =
            Failure::new(Exit::Usage, format!("{} is no file with a log: only such a file can be followed", log.name));
        return Err(failure.help("palog import makes a log of a vendor's session"));
    }
    if let Some(cursor) = &args.after {
        Reader::after(log.start()?, cursor).map_err(|e| diverged(&log, e))?;
    }
    match (args.subject.format, args.follow) {
        (Format::Human, _) => people(terminal, args, &log),
        (Format::Json, false) => document(terminal, args, &log),
        (Format::Json, true) => follow(terminal, &log, args.after, |out, item, cursor| {
            Entry::new(item, Some(cursor)).write(out, "")?;
            writeln!(out)
        }),
    }
}

fn people(terminal: &mut Terminal, args: &Show, log: &Opened) -> Result<Exit, Failure> {
    let overview = Overview::read(log)?;
    let mut show = render::show::Show::new(terminal.out_style, args.full, log.blobs.as_ref());
    if args.after.is_none() {
        overview.render(&mut terminal.out, terminal.out_style)?;
    }
    each(terminal, args, log, &overview, |out, item| show.item(out, item))?;
    if !args.follow {
        return Ok(Exit::Ok);
    }
    show.follows = true;
    let seen = overview.end.map(|end| end.cursor).or(args.after);
    follow(terminal, log, seen, |out, item, _| show.item(out, item))
}

fn document(terminal: &mut Terminal, args: &Show, log: &Opened) -> Result<Exit, Failure> {
    let overview = Overview::read(log)?;
    // Item by item, since a transcript may be larger than memory.
    let mut before = overview.json_head();
    each(terminal, args, log, &overview, |out, item| {
        Entry::new(item, None).write(out, before.as_str())?;
        before.clear();
        before.push_str(",\n    ");
        Ok(())
    })?;
    let head = if before.starts_with('{') { before.as_str() } else { "" };
    let cursor = overview.end.map_or_else(String::new, |end| format!(",\n  \"cursor\": \"{}\"", end.cursor));
    write!(terminal.out, "{head}\n  ]{cursor}\n}}\n")?;
    Ok(Exit::Ok)
}

/// Prints every item behind `after` that is there, and tells what is wrong with the log.
fn each(
    terminal: &mut Terminal,
    args: &Show,
    log: &Opened,
    overview: &Overview,
    mut print: impl FnMut(&mut dyn Write, &Item<'_>) -> io::Result<()>,
) -> Result<(), Failure> {
    let out = &mut terminal.out;
    let mut written: io::Result<()> = Ok(());
    let mut visit = |item: &Item<'_>| {
        if args.after.is_none_or(|cursor| item.event.seq > cursor.seq) {
            written = print(out, item);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // A log that grows meanwhile is read as far as it was looked at before: what comes then is for whoever follows it.
    let read = match overview.end {
        Some(end) => transcript(
            Beginning { file: log.file(), at: 0, len: if args.follow { end.events } else { end.bytes } },
            &mut visit,
        ),
        None => transcript(log.file(), &mut visit),
    };
    written?;
    let faults = read.map_err(|e| log.unreadable(&e))?;
    input::tell_faults(terminal, log, &faults)
}

/// Prints every item behind `after` as it comes, until the log is closed.
fn follow(
    terminal: &mut Terminal,
    log: &Opened,
    after: Option<Cursor>,
    mut print: impl FnMut(&mut dyn Write, &Item<'_>, Cursor) -> io::Result<()>,
) -> Result<Exit, Failure> {
    let path = log.path().ok_or_else(|| Failure::new(Exit::Bug, "a log without a file is followed"))?;
    let mut follow = match after {
        Some(cursor) => Follow::after(path, &cursor).map_err(|e| diverged(log, e))?,
        None => Follow::open(path).map_err(|e| log.unreadable(&e))?,
    };
    terminal.flush()?;
    loop {
        if !follow.wait(PATIENCE).map_err(|e| diverged(log, e))? {
            continue;
        }
        let fault = match follow.next().map_err(|e| diverged(log, e))? {
            None => None,
            Some(reader::Item::Fault(fault)) => Some(fault),
            Some(reader::Item::Event(event, line)) => {
                let cursor = Cursor::of(event.seq, line.bytes);
                let (data, fault) = match event.data() {
                    Ok(data) => (data, None),
                    Err(e) => {
                        let fault = Diagnostic::new(Code::BadPayload, Severity::Error, line.place());
                        (
                            Data::Other(event.kind.as_str().into(), event.data.borrowed()),
                            Some(fault.because(e.to_string())),
                        )
                    }
                };
                if let Some(item) = Item::alone(&event, &data) {
                    print(&mut terminal.out, &item, cursor)?;
                }
                if matches!(data, Data::LogClosed(_)) {
                    return Ok(Exit::Ok);
                }
                fault
            }
        };
        terminal.flush()?;
        if let Some(fault) = fault {
            let mut found = Diagnostics::default();
            found.push(fault);
            let style = terminal.err_style;
            render::diagnostics::render(&mut terminal.err, style, &found, &Sources::new(Some(path.to_owned())))?;
            terminal.flush()?;
        }
    }
}

/// A log cannot be read on from where it was read before.
pub(crate) fn diverged(log: &Opened, error: ResumeError) -> Failure {
    match error {
        ResumeError::Io(error) => log.unreadable(&error),
        ResumeError::Diverged(found) => {
            let why = found.why.as_deref().unwrap_or(found.code.meaning());
            Failure::new(Exit::Negative, format!("{}: {why} [{}]", log.name, found.code)).help(found.code.remedy())
        }
        other => Failure::new(Exit::Negative, format!("{}: {other}", log.name)),
    }
}

/// The first bytes of a file.
struct Beginning<'f> {
    file: &'f File,
    at: u64,
    len: u64,
}

impl Read for Beginning<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = into.len().min(left);
        let n = self.file.read(&mut into[..room])?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Beginning<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}
