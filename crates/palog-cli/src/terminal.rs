//! The two streams that a command writes to, and whether they take colours.

use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::render::text::{clean_json, clean_lines};

/// Where a command writes to: facts to `out`, all else to `err`.
pub(crate) struct Terminal {
    /// Standard output.
    pub(crate) out: BufWriter<io::StdoutLock<'static>>,
    /// Standard error.
    pub(crate) err: BufWriter<io::StderrLock<'static>>,
    /// Colours on standard output.
    pub(crate) out_style: Style,
    /// Colours on standard error.
    pub(crate) err_style: Style,
}

impl Terminal {
    /// The streams of the process.
    pub(crate) fn new() -> Self {
        // https://no-color.org: any value but the empty one counts.
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Terminal {
            out_style: Style { on: !plain && io::stdout().is_terminal() },
            err_style: Style { on: !plain && io::stderr().is_terminal() },
            out: BufWriter::new(io::stdout().lock()),
            err: BufWriter::new(io::stderr().lock()),
        }
    }

    /// Prints a value as one JSON document.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        write_json(&mut self.out, value)
    }

    /// Tells a failure. What cannot be told is lost: there is nobody to tell it to.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        let Some(message) = &failure.message else { return };
        let s = self.err_style;
        let _ = writeln!(self.err, "{}: {}", s.red("error"), clean_lines(message));
        for help in &failure.help {
            self.help(help);
        }
        let _ = self.err.flush();
    }

    /// Tells what can be done.
    pub(crate) fn help(&mut self, help: &str) {
        let _ = writeln!(self.err, "{}: {}", self.err_style.cyan("help"), clean_lines(help));
    }

    /// Hands everything over to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let _ = self.err.flush();
        Ok(self.out.flush()?)
    }
}

/// Writes a value as one JSON document and a line feed.
pub(crate) fn write_json<T: Serialize>(out: &mut dyn Write, value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::new(Exit::Bug, format!("a result has no JSON form: {e}")))?;
    Ok(writeln!(out, "{}", clean_json(&text))?)
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Headings.
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What matters less.
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Errors, and what blocks.
    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Warnings, and what is not certain.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    /// What is well.
    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("1;32", text)
    }

    /// Hints.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.wrap("1;36", text)
    }
}
