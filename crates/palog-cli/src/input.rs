//! Finds the session that a command is about: a log, a vendor's file or directory, or standard input.
//!
//! Vendors' files are imported into an unnamed temporary file, so that what reads a log reads them as well.

use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use palog::reader::Reader;
use palog_claude_code::{self as claude_code, Discovery, ImportError, Session, Stream};

use crate::args::Subject;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::render::diagnostics::{Sources, summary};
use crate::render::text::{clean_line, count};
use crate::terminal::Terminal;

/// What every line of a log begins with.
const MAGIC: &[u8] = b"{\"palog\":";
/// What a log's file name ends in.
pub(crate) const SUFFIX: &str = ".palog.jsonl";
/// How many sessions are listed where one has to be chosen.
const LISTED: usize = 30;

/// A log, ready to be read as often as needed.
pub(crate) struct Opened {
    /// What the user called it.
    pub(crate) name: String,
    /// Where large values lie, if they are not in the log itself.
    pub(crate) blobs: Option<BlobStore>,
    /// Where it lies, if it is a file that the user can look into.
    path: Option<PathBuf>,
    /// It was made here from a vendor's files, and what is wrong with them was told.
    imported: bool,
    file: File,
}

impl Opened {
    /// Reads from the beginning.
    pub(crate) fn reader(&self) -> Result<Reader<&File>, Failure> {
        self.start().map(Reader::new)
    }

    /// The file, for what goes to its beginning by itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The file, at its beginning.
    pub(crate) fn start(&self) -> Result<&File, Failure> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(|e| Failure::unreadable(&self.name, &e))?;
        Ok(file)
    }

    /// Where it lies, if it is a file that the user can look into.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A failure to read it.
    pub(crate) fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::unreadable(&self.name, error)
    }
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What stands first in a file, or on standard input, tells what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A log of ours.
    Log,
    /// A compressed file.
    Zstd,
    /// Nothing at all.
    Empty,
    /// Something else.
    Other,
}

/// Tells by the first bytes what follows.
fn content(head: &[u8]) -> Content {
    match head {
        [] => Content::Empty,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Content::Zstd,
        head if head.starts_with(MAGIC) => Content::Log,
        _ => Content::Other,
    }
}

/// What standard input holds. Nothing of it is taken.
pub(crate) fn content_of_stdin() -> Result<Content, Failure> {
    let mut stdin = io::stdin().lock();
    let head = stdin.fill_buf().map_err(|e| Failure::unreadable("standard input", &e))?;
    Ok(content(head))
}

/// What a file holds.
pub(crate) fn content_of(path: &Path) -> Result<Content, Failure> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head));
    read.map_err(|e| Failure::unreadable(&path.display().to_string(), &e))?;
    Ok(content(&head))
}

/// The failure for a compressed input.
pub(crate) fn compressed(name: &str) -> Failure {
    Failure::new(Exit::Unreadable, format!("{name} is compressed, which this version does not read"))
        .help(format!("zstd -dc {name} | palog … -"))
}

/// Opens a log for [`validate`](crate::commands::validate): nothing but a log is accepted, whatever stands in it.
pub(crate) fn open_log(path: &Path) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    if is_dash(path) {
        return spool("standard input", io::stdin().lock());
    }
    let file = File::open(path).map_err(|e| Failure::unreadable(&name, &e))?;
    let meta = file.metadata().map_err(|e| Failure::unreadable(&name, &e))?;
    if meta.is_dir() {
        return Err(Failure::new(Exit::Unreadable, format!("{name} is a directory")).help(format!("{name}/*{SUFFIX} names the logs in it")));
    }
    if !meta.is_file() {
        return spool(&name, file);
    }
    Ok(Opened { blobs: Some(BlobStore::beside(path)), path: Some(path.into()), imported: false, name, file })
}

/// Opens the session that a command is about.
pub(crate) fn open(terminal: &mut Terminal, subject: &Subject) -> Result<Opened, Failure> {
    let path = subject.path.as_path();
    let wanted = subject.session.as_deref();
    if is_dash(path) {
        return match content_of_stdin()? {
            Content::Log => spool("standard input", io::stdin().lock()),
            Content::Zstd => Err(compressed("-")),
            Content::Empty => Err(Failure::new(Exit::Unreadable, "standard input is empty")),
            Content::Other => import(terminal, "standard input", claude_code::session_from_stdin(), None),
        };
    }
    let name = path.display().to_string();
    let meta = fs::metadata(path).map_err(|e| Failure::unreadable(&name, &e))?;
    if meta.is_dir() {
        let logs = logs_in(path)?;
        if !logs.is_empty() {
            return choose(&name, logs, wanted).and_then(|log| open_log(&log.path));
        }
    } else {
        if !meta.is_file() {
            let file = File::open(path).map_err(|e| Failure::unreadable(&name, &e))?;
            return spool(&name, file);
        }
        match content_of(path)? {
            Content::Log => return open_log(path),
            Content::Zstd => return Err(compressed(&name)),
            Content::Empty => return Err(Failure::new(Exit::Unreadable, format!("{name} is empty"))),
            Content::Other if name.ends_with(SUFFIX) => return open_log(path),
            Content::Other => {}
        }
    }
    let found = discover(path)?;
    let chosen = choose(&name, candidates(&found.sessions), wanted)?;
    if meta.is_file() && !found.beside.is_empty() {
        terminal.help(&beside(&found));
    }
    let session = found.sessions.into_iter().nth(chosen.index).ok_or_else(|| Failure::new(Exit::Bug, "a session is gone"))?;
    import(terminal, &name, session, chosen.agent)
}

/// Finds the sessions at a path.
pub(crate) fn discover(path: &Path) -> Result<Discovery, Failure> {
    let name = path.display().to_string();
    let found = claude_code::discover(path).map_err(|e| Failure::unreadable(&name, &e))?;
    if found.sessions.is_empty() {
        let mut failure = Failure::new(Exit::NothingMatched, format!("{name} holds no session that is known"));
        if let Some(first) = found.unrecognised.first() {
            failure = failure.help(format!("{} looks like one by its name, and is none by its content", first.display()));
        }
        return Err(failure.help("a directory is that of Claude Code (~/.claude), one of its projects, or one with palog logs"));
    }
    Ok(found)
}

/// The hint that names what lies beside a file and was not read.
pub(crate) fn beside(found: &Discovery) -> String {
    let names: Vec<String> = found.beside.iter().take(5).map(|p| p.display().to_string()).collect();
    let more = if found.beside.len() > 5 { " …" } else { "" };
    format!("this file alone was read; what belongs to its session also lies in {}{more}: give the directory to read that as well", names.join(", "))
}

/// A session, or the subagent of one, that can be asked for.
pub(crate) struct Candidate {
    /// Its id; `None` where only the records tell it.
    id: Option<String>,
    /// Which of the sessions that were found it is, or belongs to.
    pub(crate) index: usize,
    /// The id of the subagent, if it is one.
    pub(crate) agent: Option<String>,
    /// Where it is.
    path: PathBuf,
}

/// The sessions and their subagents.
pub(crate) fn candidates(sessions: &[Session]) -> Vec<Candidate> {
    let of = |(index, session): (usize, &Session)| {
        let path = session.path().map(Path::to_path_buf).unwrap_or_default();
        let main = Candidate { id: session.id().map(str::to_owned), index, agent: None, path: path.clone() };
        let agents = session.agents().map(|a| Candidate { id: Some(a.into()), index, agent: Some(a.into()), path: path.clone() });
        std::iter::once(main).chain(agents).collect::<Vec<_>>()
    };
    sessions.iter().enumerate().flat_map(of).collect()
}

/// The logs that lie directly in a directory.
fn logs_in(directory: &Path) -> Result<Vec<Candidate>, Failure> {
    let name = directory.display().to_string();
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| Failure::unreadable(&name, &e))? {
        let path = entry.map_err(|e| Failure::unreadable(&name, &e))?.path();
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(stem) = file.strip_suffix(SUFFIX).filter(|s| !s.starts_with('.')) {
            let agent = stem.split_once(".agent-").map(|(_, agent)| agent.to_owned());
            paths.push(Candidate { id: Some(agent.clone().unwrap_or_else(|| stem.into())), index: 0, agent, path });
        }
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(paths)
}

/// The one that is meant: by the beginning of its id, or because there is no other.
pub(crate) fn choose(name: &str, mut all: Vec<Candidate>, wanted: Option<&str>) -> Result<Candidate, Failure> {
    let mains = all.iter().filter(|c| c.agent.is_none()).count();
    let matches = |c: &Candidate| match (wanted, &c.id) {
        (None, _) => c.agent.is_none() || mains == 0,
        (Some(wanted), Some(id)) => id.starts_with(wanted),
        // The records tell the id; the import checks it.
        (Some(_), None) => all.len() == 1,
    };
    let mut fitting: Vec<usize> = (0..all.len()).filter(|i| matches(&all[*i])).collect();
    let exact: Vec<usize> = fitting.iter().copied().filter(|i| all[*i].id.as_deref() == wanted).collect();
    if wanted.is_some() && exact.len() == 1 {
        fitting = exact;
    }
    match &fitting[..] {
        [one] => Ok(all.swap_remove(*one)),
        [] => {
            let what = wanted.map_or_else(String::new, |w| format!(" whose id begins with {w}"));
            Err(Failure::new(Exit::NothingMatched, format!("{name} holds no session{what}:\n{}", list(&all.iter().collect::<Vec<_>>()))))
        }
        several => {
            let several: Vec<&Candidate> = several.iter().map(|i| &all[*i]).collect();
            let n = count(several.len() as u64, "session", "sessions");
            let which = wanted.map_or_else(String::new, |w| format!(" whose id begins with {w}"));
            let hint = match several.iter().find_map(|c| c.id.as_deref()) {
                Some(id) if wanted != Some(id) => {
                    // As short as it is clear, for people who type it.
                    let fits = |start: &str| all.iter().filter(|c| c.id.as_deref().is_some_and(|i| i.starts_with(start))).count() == 1;
                    let starts = id.char_indices().skip(8).map(|(at, _)| &id[..at]);
                    let start = starts.into_iter().find(|start| fits(start)).unwrap_or(id);
                    format!("say which one with --session, for example --session {start}")
                }
                _ => "give the path of its file instead".into(),
            };
            Err(Failure::new(Exit::Usage, format!("{name} holds {n}{which}:\n{}", list(&several))).help(hint))
        }
    }
}

/// Sessions as a list, the one that was written to last first.
fn list(candidates: &[&Candidate]) -> String {
    let mut rows: Vec<(Option<std::time::SystemTime>, String)> = candidates
        .iter()
        .map(|c| {
            let modified = fs::metadata(&c.path).and_then(|m| m.modified()).ok();
            let when = modified.and_then(|m| jiff::Timestamp::try_from(m).ok());
            let when = when.map_or_else(|| "-".into(), |t| t.strftime("%Y-%m-%d %H:%M UTC").to_string());
            let id = c.id.as_deref().unwrap_or("(id unknown)");
            let what = if c.agent.is_some() { "subagent of " } else { "" };
            (modified, format!("  {}  {when}  {what}{}", clean_line(id), clean_line(&c.path.to_string_lossy())))
        })
        .collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let more = rows.len().saturating_sub(LISTED);
    let mut lines: Vec<String> = rows.into_iter().take(LISTED).map(|(_, row)| row).collect();
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    lines.join("\n")
}

/// Imports a session into an unnamed temporary file.
fn import(terminal: &mut Terminal, name: &str, session: Session, agent: Option<String>) -> Result<Opened, Failure> {
    let scratch = |e| Failure::new(Exit::Negative, format!("cannot write a temporary file: {e}"));
    let file = tempfile::tempfile().map_err(scratch)?;
    let progress = Progress::new(session.size());
    progress.begin(session.size());
    let writer = progress.count(file.try_clone().map_err(scratch)?);
    let mut target = Stream::new(BufWriter::with_capacity(1 << 20, writer));
    if let Some(agent) = agent {
        target = target.of_agent(agent);
    }
    let mut options = claude_code::Options::default();
    options.sources = false;
    let report = claude_code::import(&session, &mut target, &options);
    progress.end();
    let report = report.map_err(|e| import_failure(&e))?;
    drop(target);
    if let Some(summary) = summary_of_trouble(&report) {
        let _ = io::Write::write_fmt(&mut terminal.err, format_args!("{}: {summary} while reading {name}\n", terminal.err_style.yellow("note")));
        terminal.help(&format!("palog import {name} -o DIR/ tells them one by one"));
    }
    Ok(Opened { name: name.into(), blobs: None, path: None, imported: true, file })
}

/// Counts of findings about the input, if there is more than information. What is unresolved or waits is told by the
/// commands themselves.
fn summary_of_trouble(report: &claude_code::Report) -> Option<String> {
    let mut trouble = untold(&report.diagnostics);
    trouble.retain(|d| d.severity != Severity::Info);
    summary(&collect(trouble))
}

/// Findings without those that commands tell in their own words: calls of unknown outcome, and what waits.
fn untold(diagnostics: &Diagnostics) -> Vec<Diagnostic> {
    let told = |code: Code| code.as_str().starts_with("tool.") || code.as_str().starts_with("state.");
    let groups = diagnostics.groups().iter().filter(|g| !told(g.code));
    groups.flat_map(|g| g.first.iter().cloned()).collect()
}

fn collect(all: Vec<Diagnostic>) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    all.into_iter().for_each(|d| diagnostics.push(d));
    diagnostics
}

/// Why an import failed, and what can be done about it.
pub(crate) fn import_failure(error: &ImportError) -> Failure {
    use palog::writer::WriteError;
    match error {
        ImportError::Read { .. } => Failure::new(Exit::Unreadable, error.to_string()),
        ImportError::NothingRecognised { .. } => Failure::new(Exit::Unreadable, error.to_string())
            .help("what is known is: a session of Claude Code, or a log of palog"),
        ImportError::Write(WriteError::Io(error)) => Failure::output(error),
        ImportError::Write(WriteError::LineTooLong { .. }) => Failure::new(Exit::Negative, error.to_string())
            .help("write the log to a directory (palog import PATH -o DIR/): there, large values lie beside it"),
        ImportError::Exists { .. } => Failure::new(Exit::Negative, error.to_string()).help("choose another place with -o, or move the log away"),
        _ => Failure::new(Exit::Negative, error.to_string()),
    }
}

/// Tells what is wrong with a log that was read, and refuses one of another version.
pub(crate) fn tell_faults(terminal: &mut Terminal, log: &Opened, faults: &Diagnostics) -> Result<(), Failure> {
    if let Some(unsupported) = faults.groups().iter().find(|g| g.code == Code::UnsupportedVersion) {
        let why = unsupported.first.first().and_then(|d| d.why.clone()).unwrap_or_default();
        return Err(Failure::new(Exit::Unreadable, format!("{}: {why}", log.name)).help(Code::UnsupportedVersion.remedy()));
    }
    let mut untold = untold(faults);
    if log.imported {
        // What is left would be a fault of this program.
        untold.retain(|d| d.severity == Severity::Error);
    }
    terminal.flush()?;
    let style = terminal.err_style;
    crate::render::diagnostics::render(&mut terminal.err, style, &collect(untold), &Sources::new(log.path.clone()))?;
    Ok(())
}

/// Keeps what comes from a pipe in an unnamed temporary file, since it is read more than once.
fn spool(name: &str, mut from: impl Read) -> Result<Opened, Failure> {
    let scratch = |e| Failure::new(Exit::Negative, format!("cannot write a temporary file: {e}"));
    let mut file = tempfile::tempfile().map_err(scratch)?;
    io::copy(&mut from, &mut file).map_err(|e| Failure::unreadable(name, &e))?;
    Ok(Opened { name: name.into(), blobs: None, path: None, imported: false, file })
}
