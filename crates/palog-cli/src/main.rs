//! The command line of palog: arguments, rendering, exit codes. What it prints is computed by the libraries.

mod args;
mod choice;
mod commands;
mod examples;
mod exit;
mod facts;
mod input;
mod output;
mod progress;
mod reference;
mod render;
mod schemas;
mod terminal;

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Arguments, Command};
use crate::exit::{Exit, Failure};
use crate::terminal::Terminal;

fn main() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        // The terminal may be in the middle of a line, and writing may be what failed: nothing more can be done then.
        let _ = writeln!(std::io::stderr(), "\nerror: this is a bug in palog {}: {panic}", env!("CARGO_PKG_VERSION"));
        let _ =
            writeln!(std::io::stderr(), "help: report it with the command line; a log is never changed by reading it");
    }));
    guarded(run).into()
}

/// A panic is a bug, whatever was done at the time.
fn guarded(work: impl FnOnce() -> Exit) -> Exit {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Exit::Bug)
}

fn run() -> Exit {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let mut terminal = Terminal::new();
    let result = dispatch(&mut terminal, &arguments.command).and_then(|exit| terminal.flush().map(|()| exit));
    result.unwrap_or_else(|failure| {
        // What was found before the failure is still told.
        let _ = terminal.flush();
        terminal.fail(&failure);
        failure.exit
    })
}

fn dispatch(terminal: &mut Terminal, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Import(args) => commands::import::run(terminal, args),
        Command::Export(args) => commands::export::run(terminal, args),
        Command::Show(args) => commands::show::run(terminal, args),
        Command::Context(args) => commands::context::run(terminal, args),
        Command::Validate(args) => commands::validate::run(terminal, args),
        Command::State(args) => commands::state::run(terminal, args),
        Command::Recover(args) => commands::recover::run(terminal, args),
        Command::Diff(args) => commands::diff::run(terminal, args),
        Command::Migrate(args) => commands::migrate::run(terminal, args),
        Command::Ls(args) => commands::ls::run(terminal, args),
        Command::Explain(args) => commands::explain::run(terminal, args),
        Command::Schema(args) => commands::schema::run(terminal, args),
        Command::Conform(args) => commands::conform::run(terminal, args),
        Command::Completions(args) => commands::generate::completions(terminal, args),
        Command::Man(args) => commands::generate::man(terminal, args),
    }
}

/// Help and version are facts; all else is a wrong command line.
fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match printed {
            Ok(()) => Exit::Ok,
            Err(error) => Failure::output(&error).exit,
        },
        _ => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_as_a_bug() {
        assert_eq!(ExitCode::from(guarded(|| panic!("on purpose"))), ExitCode::from(70));
        assert_eq!(ExitCode::from(guarded(|| Exit::NothingMatched)), ExitCode::from(4));
    }
}
