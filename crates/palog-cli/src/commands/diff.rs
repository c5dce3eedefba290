//! `palog diff`

use std::path::Path;

use palog_diff::{Side, compare};

use crate::args::{Diff, Format, Subject};
use crate::commands::export::session::refused;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::render;
use crate::terminal::Terminal;

/// Compares two sessions.
pub(crate) fn run(terminal: &mut Terminal, args: &Diff) -> Result<Exit, Failure> {
    let subject = |path: &Path| Subject { path: path.into(), session: None, format: args.format };
    let first = input::open(terminal, &subject(&args.first))?;
    let second = input::open(terminal, &subject(&args.second))?;
    let side = |log| -> Side<'_> {
        let log: &input::Opened = log;
        Side { log: log.file(), blobs: log.blobs.as_ref() }
    };
    let comparison =
        compare(side(&first), side(&second)).map_err(|e| refused(&args.first.display().to_string(), e.into()))?;
    match args.format {
        Format::Json => terminal.json(&comparison)?,
        Format::Human => {
            let style = terminal.out_style;
            render::diff::render(&mut terminal.out, style, &comparison)?;
        }
    }
    Ok(if comparison.differences.is_empty() { Exit::Ok } else { Exit::Negative })
}
