//! How a command ends: exit codes, and failures that are told to the user.

use std::io;
use std::process::ExitCode;

/// What the exit status says (README, "Exit codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; also with warnings, when all that was there was kept.
    Ok,
    /// The answer is no: invalid, a part of the input could not be read, or the output was not written.
    Negative,
    /// The command line is wrong, or does not say which session is meant.
    Usage,
    /// The input cannot be read, or is of a version or kind that is not known.
    Unreadable,
    /// Nothing matched.
    NothingMatched,
    /// A bug.
    Bug,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Negative => 1,
            Exit::Usage => 2,
            Exit::Unreadable => 3,
            Exit::NothingMatched => 4,
            Exit::Bug => 70,
        })
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) exit: Exit,
    /// What is told; nothing where the reader of the output went away.
    pub(crate) message: Option<String>,
    /// What the user can do about it.
    pub(crate) help: Vec<String>,
}

impl Failure {
    /// A failure that is told in one sentence.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: Some(message.into()), help: Vec::new() }
    }

    /// Adds what the user can do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// An input that cannot be read.
    pub(crate) fn unreadable(what: &str, error: &io::Error) -> Self {
        Failure::new(Exit::Unreadable, format!("cannot read {what}: {error}"))
    }

    /// Output that cannot be written. Whoever reads a pipe may stop reading: that is no failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::Ok, message: None, help: Vec::new() };
        }
        Failure::new(Exit::Negative, format!("cannot write the output: {error}"))
    }
}

/// Errors that are passed on with `?` come from writing output; those of inputs are mapped where they arise, with the name
/// of the input.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::output(&error)
    }
}
