//! `palog context`

use palog::project::{At, ContextError, context};

use crate::args::{Context, Format, Provider};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::render;
use crate::terminal::Terminal;

/// Prints what the model sees.
pub(crate) fn run(terminal: &mut Terminal, args: &Context) -> Result<Exit, Failure> {
    let log = input::open(terminal, &args.subject)?;
    let at = args.at.map_or(At::Head, At::Seq);
    let blobs = log.blobs.clone();
    let Provider::Anthropic = args.provider;
    let seen = context(log.file(), at, blobs.as_ref()).map_err(|error| match error {
        ContextError::Io(error) => log.unreadable(&error),
        other => Failure::new(Exit::NothingMatched, other.to_string()),
    })?;
    match args.subject.format {
        Format::Json => terminal.json(&seen)?,
        Format::Human => {
            let style = terminal.out_style;
            render::context::render(&mut terminal.out, style, &seen)?;
        }
    }
    input::tell_faults(terminal, &log, &seen.diagnostics)?;
    Ok(Exit::Ok)
}
