//! `palog show`

use std::io::{self, Write};
use std::ops::ControlFlow;

use palog::project::transcript;

use crate::args::{Format, Show};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::show::Entry;
use crate::render;
use crate::render::overview::Overview;
use crate::terminal::Terminal;

/// Prints the transcript of a session.
pub(crate) fn run(terminal: &mut Terminal, args: &Show) -> Result<Exit, Failure> {
    let log = input::open(terminal, &args.subject)?;
    let overview = Overview::read(&log)?;
    let (style, blobs) = (terminal.out_style, log.blobs.clone());
    let out = &mut terminal.out;
    let mut written: io::Result<()> = Ok(());
    let read = match args.subject.format {
        Format::Human => {
            overview.render(out, style)?;
            let mut show = render::show::Show::new(style, args.full, blobs.as_ref());
            transcript(log.file(), |item| {
                written = show.item(out, item);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        }
        Format::Json => {
            // Item by item, since a transcript may be larger than memory.
            let mut before = overview.json_head();
            let read = transcript(log.file(), |item| {
                written = Entry::new(item).write(out, before.as_str());
                before.clear();
                before.push_str(",\n    ");
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if written.is_ok() {
                let head = if before.starts_with('{') { before.as_str() } else { "" };
                written = write!(out, "{head}\n  ]\n}}\n");
            }
            read
        }
    };
    written?;
    let faults = read.map_err(|e| log.unreadable(&e))?;
    input::tell_faults(terminal, &log, &faults)?;
    Ok(Exit::Ok)
}
