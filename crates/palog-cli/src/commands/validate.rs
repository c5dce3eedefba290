//! `palog validate`

use std::io::Write;

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::validate::{Options, validate};

use crate::args::{Format, Validate};
use crate::exit::{Exit, Failure};
use crate::input::{self, Content};
use crate::output::validate::{Log, Validation};
use crate::render;
use crate::render::diagnostics::{Sources, summary};
use crate::render::text::{clean_line, count};
use crate::terminal::Terminal;

/// Checks logs; the answer is no if one of them is invalid.
pub(crate) fn run(terminal: &mut Terminal, args: &Validate) -> Result<Exit, Failure> {
    let mut logs = Vec::new();
    let mut failures = Vec::new();
    let mut exit = Exit::Ok;
    for path in &args.logs {
        let log = match input::open_log(path) {
            Ok(log) => log,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        let mut options = Options::new();
        let blobs = log.blobs.clone();
        if let Some(store) = &blobs {
            options = options.with_blobs(store);
        }
        let file = log.start()?;
        let found = match validate(file, &options) {
            Ok(mut found) => {
                if found.events == 0 && found.is_valid() {
                    let place = Place { line: Some(1), offset: Some(0), ..Place::default() };
                    let empty = Diagnostic::new(Code::NotOpened, Severity::Error, place)
                        .because("the log holds no event")
                        .rule("R-ENV-003");
                    found.diagnostics.push(empty);
                }
                found
            }
            Err(error) => {
                failures.push(log.unreadable(&error));
                continue;
            }
        };
        let valid = found.is_valid();
        let unsupported = found.diagnostics.groups().iter().any(|g| g.code == Code::UnsupportedVersion);
        if !valid {
            exit = if unsupported && exit == Exit::Ok { Exit::Unreadable } else { Exit::Negative };
        }
        if args.format == Format::Human {
            let alien = log.path().is_some_and(|path| matches!(input::content_of(path), Ok(Content::Other)));
            if alien && !valid {
                terminal
                    .help(&format!("{} does not begin like a log; palog import reads the files of vendors", log.name));
            }
            let style = terminal.out_style;
            let sources = Sources::new(log.path().map(ToOwned::to_owned));
            terminal.flush()?;
            let err_style = terminal.err_style;
            render::diagnostics::render(&mut terminal.err, err_style, &found.diagnostics, &sources)?;
            terminal.flush()?;
            let word = if valid { style.green("valid") } else { style.red("invalid") };
            let findings = summary(&found.diagnostics).map_or_else(String::new, |s| format!(", {s}"));
            writeln!(
                terminal.out,
                "{word}: {} ({}{findings})",
                clean_line(&log.name),
                count(found.events, "event", "events")
            )?;
        }
        logs.push(Log { path: path.to_string_lossy().into_owned(), valid, diagnostics: found.diagnostics });
    }
    if args.format == Format::Json {
        terminal.json(&Validation { logs })?;
    }
    if args.logs.len() == 1
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    if !failures.is_empty() {
        terminal.flush()?;
        failures.iter().for_each(|failure| terminal.fail(failure));
        exit = Exit::Negative;
    }
    Ok(exit)
}
