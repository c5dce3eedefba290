//! Export to tables.

use std::io::{BufWriter, Write};

use palog::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use palog_parquet::{Error, Input, Options, Partitions, Refusal, Report, Table, What, export, stream};

use super::{Destination, Log};
use crate::args::{Export, ExportPartition, ExportTable, Format};
use crate::exit::{Exit, Failure};
use crate::input::is_dash;
use crate::output::export::{Exported, Rows};
use crate::render::diagnostics::{Sources, render};
use crate::render::text::{clean_line, count};
use crate::terminal::{Terminal, write_json};

/// Writes a dataset of Parquet files, or adds to it.
pub(super) fn dataset(terminal: &mut Terminal, args: &Export, logs: Vec<Log>) -> Result<Exit, Failure> {
    if is_dash(&args.output) {
        return Err(Failure::new(Exit::Usage, "a dataset is a directory, and no stream").help("-o DIR"));
    }
    if args.output.exists() && !args.output.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{} is no directory", args.output.display())));
    }
    let mut options = Options::default();
    let by = |key| args.partition.contains(&key);
    options.partitions = Partitions { vendor: by(ExportPartition::Vendor), month: by(ExportPartition::Month) };
    let inputs = inputs(logs)?;
    let report = export(&inputs, &args.output, &options).map_err(|e| failure(&e))?;
    conclude(terminal, args, &inputs, report)
}

/// Writes a table as a stream.
pub(super) fn arrow_stream(terminal: &mut Terminal, args: &Export, logs: Vec<Log>) -> Result<Exit, Failure> {
    let table = match args.table {
        ExportTable::Events => Table::Events,
        ExportTable::Actions => Table::Actions,
        ExportTable::Sessions => Table::Sessions,
    };
    let inputs = inputs(logs)?;
    let destination = Destination::of(&args.output)?;
    let out = BufWriter::with_capacity(1 << 20, destination.file()?);
    let report = stream(&inputs, table, out, Options::default().threads).map_err(|e| failure(&e))?;
    destination.commit()?;
    conclude(terminal, args, &inputs, report)
}

fn inputs(logs: Vec<Log>) -> Result<Vec<Input>, Failure> {
    let input = |log| match log {
        Log::File(path) => Ok(Input::path(path)),
        Log::Stream(_) => Ok(Input::file(Log::name(&log), log.open()?)),
    };
    logs.into_iter().map(input).collect()
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::Read(_) => Failure::new(Exit::Unreadable, error.to_string()),
        Error::Write(error) => Failure::output(error),
        Error::Dataset { .. } => Failure::new(Exit::Unreadable, error.to_string())
            .help("a dataset is written by one version of palog, with one choice of --partition; choose another place with -o"),
        Error::Busy { .. } => Failure::new(Exit::Negative, error.to_string()).help("run it again"),
        _ => Failure::new(Exit::Bug, error.to_string()),
    }
}

/// Prints what was done. What was not exported is no success.
fn conclude(terminal: &mut Terminal, args: &Export, inputs: &[Input], report: Report) -> Result<Exit, Failure> {
    let refused = report.troubles.iter().filter(|trouble| matches!(trouble.what, What::Refused(_))).count();
    let [events, actions, sessions] = report.rows;
    let exported = Exported {
        added: report.added,
        replaced: report.replaced,
        unchanged: report.unchanged,
        rows: Rows { events, actions, sessions },
        diagnostics: diagnostics(report.troubles.into_iter().map(|trouble| (trouble.input, trouble.what))),
    };
    let lost = exported.diagnostics.groups().iter().any(|group| group.code == Code::LineTooLong);
    let to_err = is_dash(&args.output);
    match (args.format, to_err) {
        (Format::Json, true) => write_json(&mut terminal.err, &exported)?,
        (Format::Json, false) => terminal.json(&exported)?,
        (Format::Human, _) => {
            let style = terminal.err_style;
            render(&mut terminal.err, style, &exported.diagnostics, &Sources::new(None))?;
            let line = line(&exported, &args.output.display().to_string(), refused as u64);
            if to_err { writeln!(terminal.err, "{line}")? } else { writeln!(terminal.out, "{line}")? }
        }
    }
    Ok(match (refused, lost) {
        (0, false) => Exit::Ok,
        (n, _) if n == inputs.len() && exported.diagnostics.groups().iter().all(|g| g.code == Code::NotOpened) => {
            Exit::Unreadable
        }
        _ => Exit::Negative,
    })
}

/// `exported: 3 logs added, 1 unchanged · 120 events, 14 actions → dataset`
fn line(exported: &Exported, output: &str, refused: u64) -> String {
    let mut logs = vec![count(exported.added, "log added", "logs added")];
    for (n, word) in [(exported.replaced, "replaced"), (exported.unchanged, "unchanged"), (refused, "refused")] {
        if n > 0 {
            logs.push(format!("{n} {word}"));
        }
    }
    let Rows { events, actions, sessions } = exported.rows;
    let rows =
        [count(events, "event", "events"), count(actions, "action", "actions"), count(sessions, "session", "sessions")];
    format!("exported: {} · rows for {} → {}", logs.join(", "), rows.join(", "), clean_line(output))
}

fn diagnostics(troubles: impl Iterator<Item = (String, What)>) -> Diagnostics {
    let mut all = Diagnostics::default();
    for (input, what) in troubles {
        let place = Place { input: Some(input.clone()), ..Place::default() };
        all.push(match what {
            What::Line(mut diagnostic) => {
                diagnostic.place.input = Some(input);
                *diagnostic
            }
            What::Refused(Refusal::Diverged { other, log }) => Diagnostic::new(Code::Diverged, Severity::Error, place)
                .because(format!("the log {log} is another one than in {other}; it was not exported"))
                .rule("R-BYT-020"),
            What::Refused(_) => Diagnostic::new(Code::NotOpened, Severity::Error, place)
                .because("no line of it is an event; it was not exported")
                .rule("R-ENV-003"),
        });
    }
    all
}
