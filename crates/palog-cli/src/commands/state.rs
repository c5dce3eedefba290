//! `palog state`

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use palog::cursor::Cursor;
use palog::reader::{Item, Reader};
use palog::reduce::Reducer;

use crate::args::{Format, State};
use crate::commands::show::diverged;
use crate::exit::{Exit, Failure};
use crate::input::{self, Opened};
use crate::render;
use crate::render::overview::Overview;
use crate::terminal::Terminal;

/// Prints the state after all events, or after one of them.
pub(crate) fn run(terminal: &mut Terminal, args: &State) -> Result<Exit, Failure> {
    let log = input::open(terminal, &args.subject)?;
    let (mut reducer, mut last) = args.from_snapshot.as_deref().map_or_else(|| Ok((Reducer::new(), None)), restore)?;
    let mut reader = match &last {
        None => log.reader()?,
        Some(cursor) => Reader::after(log.start()?, cursor).map_err(|e| diverged(&log, e))?,
    };
    let mut parent = args.parent.as_deref().map(input::open_log).transpose()?;
    let of_parent = parent.as_ref().map(name_of).transpose()?;
    let mut reached = args.at.is_none_or(|at| last.is_some_and(|cursor| cursor.seq == at));
    let read = loop {
        match reader.next() {
            Ok(None) => break Ok(()),
            Ok(Some(Item::Fault(fault))) => reducer.fault(fault),
            Ok(Some(Item::Event(event, line))) => {
                if args.at.is_some_and(|at| event.seq > at) {
                    break Ok(());
                }
                if let Some(parent) = parent.take() {
                    reducer = Reducer::going_on_from(parent.start()?, &event).map_err(|e| parent.unreadable(&e))?;
                }
                reached |= args.at == Some(event.seq);
                reducer.apply(&event, Some(&line));
                if args.snapshot.is_some() {
                    last = Some(Cursor::of(event.seq, line.bytes));
                }
            }
            Err(error) => break Err(error),
        }
    };
    read.map_err(|e| log.unreadable(&e))?;
    let snapshot = args.snapshot.as_deref().zip(last).map(|(path, cursor)| (path, reducer.snapshot(cursor)));
    let (state, faults) = reducer.finish();
    if let Some((name, id)) = of_parent
        && state.parent.as_ref().map(|named| &named.log) != id.as_ref()
    {
        return Err(Failure::new(Exit::Usage, format!("{name} is not the parent of {}", log.name)));
    }
    input::tell_faults(terminal, &log, &faults)?;
    if let (false, Some(at)) = (reached, args.at) {
        return Err(Failure::new(
            Exit::NothingMatched,
            format!("{} has no event {at}; the last one is {}", log.name, state.counts.events.0.saturating_sub(1)),
        ));
    }
    match (&args.snapshot, snapshot) {
        (_, Some((path, text))) => keep(path, &text).map_err(|e| {
            Failure::new(Exit::Negative, format!("{}: the snapshot was not written: {e}", path.display()))
                .help("name a file that is not there, or a snapshot of before")
        })?,
        (Some(path), None) => {
            let why = format!("{}: no snapshot is written of a log without an event", path.display());
            return Err(Failure::new(Exit::NothingMatched, why));
        }
        (None, None) => {}
    }
    match args.subject.format {
        Format::Json => terminal.json(&state)?,
        Format::Human => {
            let overview = Overview::of(&state);
            let style = terminal.out_style;
            overview.render(&mut terminal.out, style)?;
            render::state::render(&mut terminal.out, style, &state)?;
        }
    }
    Ok(Exit::Ok)
}

/// What the user called a log, and its id.
fn name_of(log: &Opened) -> Result<(String, Option<String>), Failure> {
    let first = log.reader()?.next().map_err(|e| log.unreadable(&e))?.and_then(|item| match item {
        Item::Event(event, _) => Some(event.log.to_string()),
        Item::Fault(_) => None,
    });
    Ok((log.name.clone(), first))
}

/// Writes a snapshot, in place of an older one or where nothing is. Whatever else stands there is left alone.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(64).read_to_end(&mut head).map(drop)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if path.symlink_metadata().is_ok() && !palog::reduce::is_snapshot(&head) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no snapshot stands there"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// What a snapshot holds.
fn restore(path: &Path) -> Result<(Reducer, Option<Cursor>), Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|e| Failure::unreadable(&name, &e))?;
    let (reducer, cursor) =
        Reducer::restore(&text).map_err(|e| Failure::new(Exit::Unreadable, format!("{name}: {e}")))?;
    Ok((reducer, Some(cursor)))
}
