//! The command line of palog: arguments, rendering, exit codes. What it prints is computed by the libraries.

mod args;
mod commands;
mod exit;
mod facts;
mod input;
mod output;
mod render;
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
        let _ = writeln!(std::io::stderr(), "help: report it with the command line; a log is never changed by reading it");
    }));
    panic::catch_unwind(run).unwrap_or(Exit::Bug).into()
}

fn run() -> Exit {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let mut terminal = Terminal::new();
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        let exit = dispatch(&mut terminal, &arguments.command)?;
        terminal.flush()?;
        Ok(exit)
    }));
    match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            // What was found before the failure is still told.
            let _ = terminal.flush();
            terminal.fail(&failure);
            failure.exit
        }
        Err(_) => Exit::Bug,
    }
}

fn dispatch(terminal: &mut Terminal, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Import(args) => commands::import::run(terminal, args),
        Command::Show(args) => commands::show::run(terminal, args),
        Command::Context(args) => commands::context::run(terminal, args),
        Command::Validate(args) => commands::validate::run(terminal, args),
        Command::State(args) => commands::state::run(terminal, args),
        Command::Recover(args) => commands::recover::run(terminal, args),
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
