//! The arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use palog::cursor::Cursor;
use palog_conformance::{Level, Role};

const AFTER_HELP: &str = "\
Example: what is the matter with a session of Claude Code that was killed?
  palog recover ~/.claude --session 3f2a

Exit codes:
  0   done, also with warnings when all that was there was kept
  1   the answer is no: a log is invalid, a case failed, a part of the input could
      not be read, or the output was not written
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
    #[command(
        verbatim_doc_comment,
        after_help = "Example: all sessions of Claude Code, one log each\n  palog import ~/.claude -o logs/"
    )]
    Import(Import),
    /// Writes logs in another form
    ///
    /// To tables: a dataset of Parquet files with a row for each event, action and session,
    /// as spec/parquet.md tells. Logs that are in the dataset already are passed over.
    ///
    /// To the form of a client: one session. Calls and results stay calls and results. What
    /// the other form cannot hold is listed in NAME.losses.json beside the output; a loss that
    /// could make something be done twice, or a person not be asked, needs --lossy. The
    /// client's own bytes come back where they are kept beside the log and nothing was added
    /// to it since.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples: all logs of a directory, to be asked by DuckDB, Polars, PyArrow or Spark; a session for another client\n  palog export logs/ --to parquet -o dataset/\n  palog export session.palog.jsonl --to codex -o session.jsonl"
    )]
    Export(Export),
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
    #[command(
        verbatim_doc_comment,
        after_help = "Example: a session straight from the files of its client\n  palog show ~/.claude --session 3f2a"
    )]
    Show(Show),
    /// Prints the state that the log adds up to
    #[command(
        after_help = "Example: the state after event 12\n  palog state session.palog.jsonl --at 12 --format json"
    )]
    State(State),
    /// Tells what is known, unknown and waiting after a crash, and what to do
    ///
    /// Exits with 0 whatever the verdict is.
    #[command(
        after_help = "Example: a session of Claude Code that was killed\n  palog recover ~/.claude --session 3f2a"
    )]
    Recover(Recover),
    /// Prints what the model sees, as the messages of a request
    #[command(after_help = "Example:\n  palog context session.palog.jsonl --for anthropic --format json")]
    Context(Context),
    /// Lists the sessions on this machine, the newest first
    ///
    /// Looks into the first and last records of each session only, so a title that was
    /// given long ago may be missed. Finds the sessions of Claude Code.
    #[command(verbatim_doc_comment, after_help = "Example: what state is each session in?\n  palog ls --recover")]
    Ls(Ls),
    /// Moves a session to another client, and says how to go on there
    ///
    /// Imports the session, writes it into the other client's store under an id of its own,
    /// and closes the log as transferred. Nothing is overwritten, and nothing is changed in
    /// the store that the session comes from: do not go on with it there.
    #[command(
        verbatim_doc_comment,
        after_help = "Example: what would be lost?\n  palog migrate ~/.claude --session 3f2a --to codex --dry-run"
    )]
    Migrate(Migrate),
    /// Compares what two sessions say
    ///
    /// Messages, calls, results, what is open and what may be done now; ids of events and
    /// the form of records do not count. Exits with 1 if they differ.
    #[command(verbatim_doc_comment, after_help = "Example:\n  palog diff one.palog.jsonl two.palog.jsonl")]
    Diff(Diff),
    /// Says what a diagnostic code or a rule means
    #[command(after_help = "Example:\n  palog explain framing.torn_tail\n  palog explain R-ACT-013")]
    Explain(Explain),
    /// Prints the JSON Schema of a document that palog reads or writes
    #[command(after_help = "Example:\n  palog schema event > event.schema.json")]
    Schema(Schema),
    /// Runs conformance cases
    #[command(
        subcommand,
        after_help = "Example: the reference implementation against the cases of its repository\n  palog conform run"
    )]
    Conform(Conform),
    /// Prints the completions of a shell
    #[command(after_help = "Example:\n  palog completions bash > /etc/bash_completion.d/palog")]
    Completions(Completions),
    /// Prints the manual page of a command, or of palog
    #[command(after_help = "Example:\n  palog man recover | man -l -")]
    Man(Man),
}

/// Arguments of `palog ls`.
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// A vendor's directory or file [default: $CLAUDE_CONFIG_DIR, or ~/.claude]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Read each session as a whole, and tell what `palog recover` would answer
    #[arg(long)]
    pub(crate) recover: bool,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `palog explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A diagnostic code or the id of a rule
    #[arg(value_name = "CODE|RULE", required_unless_present = "list")]
    pub(crate) name: Option<String>,
    /// List all codes and rules
    #[arg(long, conflicts_with = "name")]
    pub(crate) list: bool,
    /// How the explanation is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `palog schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Name of the document; without one, all names are listed
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// List the documents that have a schema
    #[arg(long, conflicts_with = "name")]
    pub(crate) list: bool,
    /// Make the schemas anew from the types, for those who develop palog
    #[cfg(feature = "schema")]
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

/// What `palog conform` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Conform {
    /// Runs cases, and reports by role, level and rule
    ///
    /// Exits with 1 if a case fails.
    #[command(
        after_help = "Example: what concerns the importer, up to the level L2\n  palog conform run --role Importer --level L2"
    )]
    Run(Cases),
    /// Lists cases
    #[command(after_help = "Example:\n  palog conform list --filter '*/faults/*'")]
    List(Cases),
}

/// Which cases.
#[derive(Debug, Args)]
pub(crate) struct Cases {
    /// A directory with cases
    #[arg(value_name = "DIR", default_value = "conformance-fixtures/v1")]
    pub(crate) directory: PathBuf,
    /// Only cases whose id is like this; `*` stands for anything, `?` for one character
    #[arg(long, value_name = "GLOB")]
    pub(crate) filter: Option<String>,
    /// Only cases of this level, L0 to L4, and of those below it
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Only cases of this role: Reader, Writer, Importer, Reducer or Recoverer
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub(crate) role: Option<Role>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// A level, whatever its case.
fn level(text: &str) -> Result<Level, String> {
    let found = Level::ALL.into_iter().find(|level| level.word().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("the levels are {}", Level::ALL.map(Level::word).join(", ")))
}

/// A role, whatever its case.
fn role(text: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|role| role.word().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("the roles are {}", Role::ALL.map(Role::word).join(", ")))
}

/// Arguments of `palog completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `palog man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The command; palog itself unless given
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub(crate) command: Vec<String>,
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
    Codex,
    #[value(name = "opencode")]
    OpenCode,
    Hermes,
    #[value(name = "openclaw")]
    OpenClaw,
    Pi,
}

impl Vendor {
    /// Whose format it is.
    pub(crate) const fn vendor(self) -> palog_import::Vendor {
        match self {
            Vendor::ClaudeCode => palog_import::Vendor::ClaudeCode,
            Vendor::Codex => palog_import::Vendor::Codex,
            Vendor::OpenCode => palog_import::Vendor::OpenCode,
            Vendor::Hermes => palog_import::Vendor::Hermes,
            Vendor::OpenClaw => palog_import::Vendor::OpenClaw,
            Vendor::Pi => palog_import::Vendor::Pi,
        }
    }
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
    /// Append what is new or different to this log, or to the logs in this directory, and rewrite nothing
    #[arg(long, value_name = "LOG|DIR", conflicts_with_all = ["output", "inline", "no_sources"])]
    pub(crate) onto: Option<PathBuf>,
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

/// What logs can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    /// A dataset of Parquet files
    Parquet,
    /// One table as an Arrow IPC stream
    ArrowStream,
    /// The lines of the logs, one log after the other
    Jsonl,
    /// A transcript of Claude Code
    ClaudeCode,
    /// A rollout of Codex
    Codex,
}

impl ExportTo {
    /// The client whose form it is.
    pub(crate) const fn vendor(self) -> Option<palog_import::Vendor> {
        match self {
            ExportTo::ClaudeCode => Some(palog_import::Vendor::ClaudeCode),
            ExportTo::Codex => Some(palog_import::Vendor::Codex),
            ExportTo::Parquet | ExportTo::ArrowStream | ExportTo::Jsonl => None,
        }
    }
}

/// A client that sessions can be moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    Codex,
}

impl Client {
    /// The vendor of the client.
    pub(crate) const fn vendor(self) -> palog_import::Vendor {
        match self {
            Client::ClaudeCode => palog_import::Vendor::ClaudeCode,
            Client::Codex => palog_import::Vendor::Codex,
        }
    }
}

/// A table, for [`ExportTo::ArrowStream`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTable {
    #[default]
    Events,
    Actions,
    Sessions,
}

/// What a dataset is parted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportPartition {
    Vendor,
    Month,
}

/// How much of a fact may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    Normalized,
    Degraded,
    Synthesized,
    Omitted,
    Opaque,
}

impl Class {
    /// The class of a loss report.
    pub(crate) const fn class(self) -> palog_import::Class {
        match self {
            Class::Normalized => palog_import::Class::Normalized,
            Class::Degraded => palog_import::Class::Degraded,
            Class::Synthesized => palog_import::Class::Synthesized,
            Class::Omitted => palog_import::Class::Omitted,
            Class::Opaque => palog_import::Class::Opaque,
        }
    }
}

/// What an export may lose, and where the session works.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// Refuse if anything is lost to this degree or worse
    #[arg(long, value_name = "CLASS")]
    pub(crate) fail_on: Option<Class>,
    /// Write also if going on without what is lost can do harm
    #[arg(long)]
    pub(crate) lossy: bool,
    /// The directory that the session works in, rather than that of the log
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
}

/// Arguments of `palog export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// A log, or a directory with logs; for the form of a client also another client's file or directory; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) logs: Vec<PathBuf>,
    /// The form
    #[arg(long, value_name = "FORM")]
    pub(crate) to: ExportTo,
    /// Where it goes: the directory of a dataset, a new file, or `-` for standard output
    #[arg(short, long, value_name = "DIR|FILE|-")]
    pub(crate) output: PathBuf,
    /// Part the files of a dataset by the vendor and the month of a session
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) partition: Vec<ExportPartition>,
    /// The table of an Arrow stream
    #[arg(long, value_enum, default_value_t)]
    pub(crate) table: ExportTable,
    /// Of the form of a client: which session or subagent, if there are several; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// How the report is printed: to standard error if the output goes to standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `palog migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The client that goes on
    #[arg(long, value_name = "CLIENT")]
    pub(crate) to: Client,
    /// The other client's directory [default: $CLAUDE_CONFIG_DIR or ~/.claude, $CODEX_HOME or ~/.codex]
    #[arg(long, value_name = "HOME")]
    pub(crate) into: Option<PathBuf>,
    /// Where the log of a client's session is kept [default: $XDG_DATA_HOME/palog or ~/.local/share/palog]
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
    /// Say what would be written and lost, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Arguments of `palog diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A log, or a vendor's file or directory with one session
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// What it is compared with
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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
    /// Only what comes after this line: the `cursor` that an earlier run printed as JSON
    #[arg(long, value_name = "SEQ:SHA256")]
    pub(crate) after: Option<Cursor>,
    /// Go on as the log grows, until it is closed; as JSON one item a line, each with its cursor
    #[arg(long)]
    pub(crate) follow: bool,
}

/// Arguments of `palog state`.
#[derive(Debug, Args)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The state after the event of this number, rather than after the last
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// Also write a snapshot to this file, from which a later run can go on
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Go on from this snapshot: only the events behind it are taken in
    #[arg(long, value_name = "FILE")]
    pub(crate) from_snapshot: Option<PathBuf>,
    /// The log that this one was forked from or continues: what it goes on from is taken in first
    #[arg(long, value_name = "LOG", conflicts_with_all = ["from_snapshot", "snapshot"])]
    pub(crate) parent: Option<PathBuf>,
}

/// Arguments of `palog recover`.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The time to judge expiry by (RFC 3339, UTC), rather than the clock's
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
    /// JSON file that tells the environment a worker would have (palog schema environment)
    #[arg(long, value_name = "FILE")]
    pub(crate) env: Option<PathBuf>,
    /// JSON file with what was looked up
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,
    /// The log that this one was forked from, continues or works for
    #[arg(long, value_name = "LOG")]
    pub(crate) parent: Option<PathBuf>,
}

/// Whose request format a context is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
    OpenaiResponses,
    OpenaiChat,
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
