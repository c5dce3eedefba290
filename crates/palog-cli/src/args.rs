//! The arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
Example: what is the matter with a session of Claude Code that was killed?
  palog recover ~/.claude --session 3f2a

Exit codes:
  0   done, also with warnings when all that was there was kept
  1   the answer is no: a log is invalid, a part of the input could not be read,
      or the output was not written
  2   the command line is wrong, or does not say which session is meant
  3   the input cannot be read, or is of a version or kind that is not known
  4   nothing matched
  70  a bug in palog";

/// Reads the sessions of AI agents into portable logs, and tells what state an agent is in.
#[derive(Debug, Parser)]
#[command(name = "palog", version, after_help = AFTER_HELP, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turns a vendor's sessions into portable logs
    ///
    /// The format is told by the content of the files. Nothing of the input is left out:
    /// a record that has no place in the format is kept as it stands, and bytes that are
    /// no record are kept and reported. Logs are never overwritten.
    #[command(verbatim_doc_comment, after_help = "Example: all sessions of Claude Code, one log each\n  palog import ~/.claude -o logs/")]
    Import(Import),
    /// Checks logs against the format
    ///
    /// Large values that lie beside a log are checked with it.
    /// Exits with 1 if one of the logs is invalid.
    #[command(verbatim_doc_comment, after_help = "Example:\n  palog validate logs/*.palog.jsonl")]
    Validate(Validate),
    /// Shows a session as people read it
    ///
    /// Who said what, in order; each call with what became of it.
    /// Long texts are cut, and say by how much.
    #[command(verbatim_doc_comment, after_help = "Example: a session straight from the files of its client\n  palog show ~/.claude --session 3f2a")]
    Show(Show),
    /// Prints the state that the log adds up to
    #[command(after_help = "Example: the state after event 12\n  palog state session.palog.jsonl --at 12 --format json")]
    State(State),
    /// Tells what is known, unknown and waiting after a crash, and what to do
    ///
    /// Exits with 0 whatever the verdict is.
    #[command(after_help = "Example: a session of Claude Code that was killed\n  palog recover ~/.claude --session 3f2a")]
    Recover(Recover),
    /// Prints what the model sees, as the messages of a request
    #[command(after_help = "Example:\n  palog context session.palog.jsonl --for anthropic --format json")]
    Context(Context),
}

/// How facts are printed: for people, or as JSON for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Human,
    Json,
}

/// The formats that can be imported. The names are those of the conformance suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Vendor {
    ClaudeCode,
}

/// Arguments of `palog import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A vendor's file or directory; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Format of the input; told by its content unless given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Vendor>,
    /// Only this session, or only this subagent; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Where logs go: a file NAME.palog.jsonl, a directory, or `-` for standard output
    #[arg(short, long, value_name = "FILE|DIR|-", default_value = "-")]
    pub(crate) output: PathBuf,
    /// How the report is printed: to standard error if the log goes to standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Do not keep copies of the sources beside the log
    #[arg(long)]
    pub(crate) no_sources: bool,
    /// Leave large values in the log, where they would be moved to files beside it
    #[arg(long)]
    pub(crate) inline: bool,
}

/// Arguments of `palog validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// A log; `-` is standard input
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Which session is looked at, and how the result is printed.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// A log, or a vendor's file or directory; `-` is standard input
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Which session or subagent, if there are several; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `palog show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Do not cut long texts
    #[arg(long)]
    pub(crate) full: bool,
}

/// Arguments of `palog state`.
#[derive(Debug, Args)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The state after the event of this number, rather than after the last
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
}

/// Arguments of `palog recover`.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The time to judge expiry by (RFC 3339, UTC), rather than the clock's
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
    /// JSON file that tells the environment a worker would have
    #[arg(long, value_name = "FILE")]
    pub(crate) env: Option<PathBuf>,
    /// JSON file with what was looked up
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,
}

/// Whose request format a context is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
}

/// Arguments of `palog context`.
#[derive(Debug, Args)]
pub(crate) struct Context {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// What the model would see after the event of this number, rather than after the last
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// Whose request format
    #[arg(long = "for", value_name = "PROVIDER", required = true)]
    pub(crate) provider: Provider,
}
