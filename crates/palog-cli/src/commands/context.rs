//! `palog context`

use palog::project::{At, ContextError, chat, context, openai};

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
    let failure = |error| match error {
        ContextError::Io(error) => log.unreadable(&error),
        other => Failure::new(Exit::NothingMatched, other.to_string()),
    };
    let style = terminal.out_style;
    let diagnostics = match args.provider {
        Provider::Anthropic => {
            let seen = context(log.file(), at, blobs.as_ref()).map_err(failure)?;
            match args.subject.format {
                Format::Json => terminal.json(&seen)?,
                Format::Human => render::context::render(&mut terminal.out, style, &seen)?,
            }
            seen.diagnostics
        }
        Provider::OpenaiResponses => {
            let seen = openai::context(log.file(), at, blobs.as_ref()).map_err(failure)?;
            match args.subject.format {
                Format::Json => terminal.json(&seen)?,
                Format::Human => render::context::render_input(&mut terminal.out, style, &seen)?,
            }
            seen.diagnostics
        }
        Provider::OpenaiChat => {
            let seen = chat::context(log.file(), at, blobs.as_ref()).map_err(failure)?;
            match args.subject.format {
                Format::Json => terminal.json(&seen)?,
                Format::Human => render::context::render_chat(&mut terminal.out, style, &seen)?,
            }
            seen.diagnostics
        }
    };
    input::tell_faults(terminal, &log, &diagnostics)?;
    Ok(Exit::Ok)
}
