//! `palog import`

use std::collections::BTreeSet;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use palog::diagnostic::{Code, Diagnostic, Place, Severity};
use palog::live::OpenError;
use palog::writer::{Bulk, WriteError};
use palog_import::{
    self as vendors, Directory, ImportError, LogName, OntoError, Output, Report, Session, Stream, Target,
};

use crate::args::{Format, Import};
use crate::choice::{Candidate, candidates, choose, choose_session};
use crate::exit::{Exit, Failure};
use crate::input::{self, Content, SUFFIX, import_failure, is_dash, of_nobody};
use crate::progress::Progress;
use crate::render;
use crate::render::diagnostics::Sources;
use crate::render::text::count;
use crate::terminal::{Terminal, write_json};

/// Where the logs go.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    Stdout,
    File(PathBuf),
    Directory(PathBuf),
    /// A log, or a directory with logs, that is appended to.
    Onto(PathBuf),
}

impl Destination {
    /// A path that is a directory, ends in a slash or does not end in `.jsonl` is a directory.
    fn of(output: &Path) -> Result<Self, Failure> {
        let text = output.to_string_lossy();
        if is_dash(output) {
            Ok(Destination::Stdout)
        } else if output.is_dir() || text.ends_with('/') || !text.ends_with(".jsonl") {
            Ok(Destination::Directory(output.into()))
        } else if text.ends_with(SUFFIX) {
            Ok(Destination::File(output.into()))
        } else {
            let stem = text.trim_end_matches(".jsonl");
            let failure = Failure::new(Exit::Usage, format!("{text}: the name of a log ends in {SUFFIX}"));
            Err(failure.help(format!("-o {stem}{SUFFIX}")))
        }
    }
}

/// What is to be imported.
struct Work {
    sessions: Vec<Session>,
    /// Of the only session, this subagent alone.
    agent: Option<String>,
    /// Where files lie that were given, for excerpts.
    roots: Vec<PathBuf>,
    /// What to tell about files that were not read.
    hints: Vec<String>,
    /// Findings that are made before anything is imported.
    found: Report,
}

/// Imports sessions and reports.
pub(crate) fn run(terminal: &mut Terminal, args: &Import) -> Result<Exit, Failure> {
    let destination = match &args.onto {
        Some(log) if !log.exists() => {
            let failure = Failure::new(Exit::Unreadable, format!("{} is not there", log.display()));
            return Err(failure.help("the first time, -o makes the log"));
        }
        Some(log) => Destination::Onto(log.clone()),
        None => Destination::of(&args.output)?,
    };
    let work = find(args)?;
    let many = match &destination {
        Destination::Directory(_) => true,
        Destination::Onto(path) => path.is_dir(),
        Destination::Stdout | Destination::File(_) => false,
    };
    if work.sessions.len() > 1 && !many {
        // Fails, and lists them.
        choose("the input", candidates(&work.sessions), None)
            .map_err(|failure| failure.help("-o DIR/ writes them all, each to a log of its own"))?;
    }
    let mut target = Selected {
        inner: match &destination {
            Destination::Stdout => {
                let stream = Stream::new(BufWriter::with_capacity(1 << 20, io::stdout()));
                Box::new(match &work.agent {
                    Some(agent) => stream.of_agent(agent.clone()),
                    None => stream,
                })
            }
            Destination::File(path) => Box::new(Directory::file(path)),
            Destination::Directory(path) | Destination::Onto(path) => Box::new(Directory::new(path)),
        },
        wanted: work.agent.clone(),
        inline: args.inline,
        taken: Vec::new(),
        progress: Progress::new(work.sessions.iter().map(Session::size).sum()),
    };
    let mut options = vendors::Options::default();
    options.sources = !args.no_sources;

    let mut report = work.found;
    let mut failures = Vec::new();
    let mut dropped = 0;
    for session in &work.sessions {
        target.progress.begin(session.size());
        if let Destination::Onto(path) = &destination {
            match vendors::onto(session, path, &options) {
                Ok(one) => report.extend(one),
                Err(error) => failures.push((name(session), onto_failure(&error))),
            }
            continue;
        }
        match session.import(&mut target, &options) {
            Ok(mut one) => {
                one.logs.retain(|log| {
                    let written = match (&work.agent, &destination) {
                        (Some(agent), _) => log.session == *agent,
                        (None, Destination::Stdout) => log.parent.is_none(),
                        (None, Destination::File(_) | Destination::Directory(_) | Destination::Onto(_)) => true,
                    };
                    dropped += u64::from(!written);
                    written
                });
                report.extend(one);
            }
            // Who reads the pipe stopped reading: there is nobody left to report to.
            Err(ImportError::Write(WriteError::Io(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
                target.progress.end();
                return Ok(Exit::Ok);
            }
            Err(error) => {
                if args.format == Format::Json {
                    record(&error, &mut report);
                }
                failures.push((name(session), import_failure(&error)));
            }
        }
    }
    target.progress.end();
    drop(target);

    tell(terminal, args, &destination, &report, &Sources::new(work.roots))?;
    if args.format == Format::Human {
        if dropped > 0 && work.agent.is_none() {
            let logs = count(dropped, "log of a subagent was", "logs of subagents were");
            terminal.help(&format!("{logs} not written: a stream holds one log. -o DIR/ writes them as well"));
        }
        work.hints.iter().for_each(|hint| terminal.help(hint));
    }
    conclude(terminal, failures, work.sessions.len(), report.diagnostics.count(Severity::Error) > 0)
}

/// The sessions that are asked for.
fn find(args: &Import) -> Result<Work, Failure> {
    let mut work =
        Work { sessions: Vec::new(), agent: None, roots: Vec::new(), hints: Vec::new(), found: Report::default() };
    let only = args.from.map(crate::args::Vendor::vendor);
    let mut seen = BTreeSet::new();
    let mut nothing = None;
    for path in &args.paths {
        let path = path.as_path();
        if !seen.insert(path) {
            continue;
        }
        if let Some((opened, content)) = input::stream(path)? {
            check(&opened.name, content)?;
            work.sessions.extend(input::sessions_from_stream(opened, only)?);
            continue;
        }
        let name = path.display().to_string();
        let single = path.is_file();
        if single {
            check(&name, input::content_of(path)?)?;
        }
        let found = match input::discover(path, only) {
            Ok(found) => found,
            Err(failure) if failure.exit == Exit::NothingMatched => {
                nothing = Some(failure);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if !found.beside.is_empty() {
            work.hints.push(input::beside(&found));
        }
        if !single && args.session.is_none() {
            for file in &found.unrecognised {
                let input = file.strip_prefix(path).unwrap_or(file).to_string_lossy().into_owned();
                let place = Place { input: Some(input), ..Place::default() };
                let why = "it is named like a session, and its content is none of one; it was not imported";
                work.found
                    .diagnostics
                    .push(Diagnostic::new(Code::NothingRecognised, Severity::Error, place).because(why));
            }
        }
        work.roots.push(path.into());
        work.sessions.extend(found.sessions);
    }
    if let (true, Some(failure)) = (work.sessions.is_empty(), nothing) {
        return Err(failure);
    }
    if args.session.is_some() {
        let Candidate { index, agent, .. } = choose_session("the input", &work.sessions, args.session.as_deref())?;
        work.sessions = work.sessions.into_iter().nth(index).into_iter().collect();
        work.agent = agent;
    }
    Ok(work)
}

/// Refuses what needs no import, or cannot be.
fn check(name: &str, content: Content) -> Result<(), Failure> {
    match content {
        Content::Log => {
            Err(Failure::new(Exit::Usage, format!("{name} is a log of palog already"))
                .help(format!("palog show {name}")))
        }
        Content::Zstd => Err(of_nobody(name)),
        Content::Empty => Err(Failure::new(Exit::Unreadable, format!("{name} is empty"))),
        Content::Other => Ok(()),
    }
}

/// What a session that failed leaves in the report.
fn record(error: &ImportError, report: &mut Report) {
    let (code, input) = match error {
        ImportError::NothingRecognised { input, .. } => (Code::NothingRecognised, input.clone()),
        ImportError::Read { path, .. } => (Code::Unreadable, path.to_string_lossy().into_owned()),
        // These are about the output, and the report is about the input.
        _ => return,
    };
    let place = Place { input: Some(input), ..Place::default() };
    report.diagnostics.push(Diagnostic::new(code, Severity::Error, place).because(error.to_string()));
}

/// Prints the report: to standard error, if standard output holds a log.
fn tell(
    terminal: &mut Terminal,
    args: &Import,
    destination: &Destination,
    report: &Report,
    sources: &Sources,
) -> Result<(), Failure> {
    let to_err = *destination == Destination::Stdout;
    match (args.format, to_err) {
        (Format::Json, true) => write_json(&mut terminal.err, report),
        (Format::Json, false) => terminal.json(report),
        (Format::Human, _) => {
            let style = terminal.err_style;
            render::diagnostics::render(&mut terminal.err, style, &report.diagnostics, sources)?;
            if report.logs.is_empty() {
                return Ok(());
            }
            if to_err {
                render::import::render(&mut terminal.err, style, report)?;
            } else {
                let style = terminal.out_style;
                render::import::render(&mut terminal.out, style, report)?;
            }
            Ok(())
        }
    }
}

fn onto_failure(error: &OntoError) -> Failure {
    match error {
        OntoError::Import(error) => import_failure(error),
        OntoError::Open(_, OpenError::Locked) => Failure::new(Exit::Unreadable, error.to_string())
            .help("another program writes it; try again when it is done"),
        OntoError::OtherSession(_) => {
            Failure::new(Exit::NothingMatched, error.to_string()).help("name the log of this session, or its directory")
        }
        OntoError::Open(..) => Failure::new(Exit::Negative, error.to_string()),
        _ => Failure::new(Exit::Unreadable, error.to_string()),
    }
}

/// The exit status: partial success is never 0.
fn conclude(
    terminal: &mut Terminal,
    mut failures: Vec<(String, Failure)>,
    sessions: usize,
    errors: bool,
) -> Result<Exit, Failure> {
    if sessions == 1
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    for (session, failure) in &mut failures {
        failure.message = failure.message.take().map(|message| format!("session {session}: {message}"));
        terminal.fail(failure);
    }
    Ok(if failures.is_empty() && !errors { Exit::Ok } else { Exit::Negative })
}

/// What a session is called in a message.
fn name(session: &Session) -> String {
    let path = || session.path().map(|p| p.display().to_string());
    session.id().map(str::to_owned).or_else(path).unwrap_or_else(|| "on standard input".into())
}

/// A target that lets through what is wanted.
struct Selected {
    inner: Box<dyn Target>,
    /// This subagent only.
    wanted: Option<String>,
    /// Large values stay in the log.
    inline: bool,
    /// Of each log that was opened, whether it is wanted.
    taken: Vec<bool>,
    progress: Progress,
}

impl Target for Selected {
    fn open(&mut self, name: &LogName) -> Result<Output, ImportError> {
        let wanted = self.wanted.as_ref().is_none_or(|agent| *agent == name.session && name.parent.is_some());
        self.taken.push(wanted);
        if !wanted {
            return Ok(Output {
                log: Box::new(self.progress.count(io::sink())),
                bulk: Bulk::Discarded,
                sources: None,
                again: false,
            });
        }
        let mut output = self.inner.open(name)?;
        output.log = Box::new(self.progress.count(output.log));
        if self.inline {
            output.bulk = Bulk::Inline;
        }
        Ok(output)
    }

    fn commit(&mut self) -> Result<Vec<Option<PathBuf>>, ImportError> {
        let mut paths = self.inner.commit()?.into_iter();
        let taken = std::mem::take(&mut self.taken);
        Ok(taken.into_iter().map(|wanted| if wanted { paths.next().flatten() } else { None }).collect())
    }

    fn abort(&mut self) {
        self.taken.clear();
        self.inner.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_told_by_its_name() {
        let of = |path: &str| Destination::of(Path::new(path)).map_err(|f| f.exit);
        assert_eq!(of("-"), Ok(Destination::Stdout));
        assert_eq!(of("a/b.palog.jsonl"), Ok(Destination::File("a/b.palog.jsonl".into())));
        for directory in ["logs", "logs/", "logs.palog", "x.jsonl/"] {
            assert_eq!(of(directory), Ok(Destination::Directory(directory.into())), "{directory}");
        }
        assert_eq!(of("b.jsonl"), Err(Exit::Usage));
    }
}
