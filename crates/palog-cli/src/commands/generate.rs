//! `palog completions` and `palog man`

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Arguments, Completions, Man};
use crate::exit::{Exit, Failure};
use crate::render::text::clean_line;
use crate::terminal::Terminal;

/// Prints a script for a shell.
pub(crate) fn completions(terminal: &mut Terminal, args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "palog", &mut script);
    terminal.out.write_all(&script)?;
    Ok(Exit::Ok)
}

/// Prints a manual page.
pub(crate) fn man(terminal: &mut Terminal, args: &Man) -> Result<Exit, Failure> {
    let mut palog = Arguments::command();
    palog.build();
    let mut command = &palog;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            Failure::new(Exit::NothingMatched, format!("there is no command {:?}", clean_line(name)))
                .help("palog --help names all")
        })?;
    }
    let title = command.get_display_name().unwrap_or("palog").to_owned();
    let version = format!("palog {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone()).title(title.to_uppercase()).source(version).render(&mut terminal.out)?;
    Ok(Exit::Ok)
}
