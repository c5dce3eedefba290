//! Finds the session that a command is about: a log, a vendor's file or directory, or standard input.
//!
//! Vendors' files are imported into an unnamed temporary file, so that what reads a log reads them as well.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use palog::blob::BlobStore;
use palog::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use palog::reader::Reader;
use palog_adapter::compressed;
use palog_import::{self as vendors, Discovery, ImportError, Session, Stream, Vendor};

use crate::args::Subject;
use crate::choice::{choose, choose_session, logs_in};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::render::diagnostics::{Sources, summary};
use crate::render::overview::Overview;
use crate::terminal::Terminal;

/// What every line of a log begins with.
const MAGIC: &[u8] = b"{\"palog\":";
/// What a log's file name ends in.
pub(crate) const SUFFIX: &str = ".palog.jsonl";

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

    /// The log, if it is of the session that is wanted.
    fn of_session(self, wanted: Option<&str>) -> Result<Self, Failure> {
        let Some(wanted) = wanted else { return Ok(self) };
        let session = Overview::read(&self)?.session.unwrap_or_default();
        if session.starts_with(wanted) {
            return Ok(self);
        }
        Err(Failure::new(Exit::NothingMatched, format!("{} is a log of session {session}, not of {wanted}", self.name)))
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
    /// A compressed file that is none of a vendor's.
    Zstd,
    /// Nothing at all.
    Empty,
    /// Something else.
    Other,
}

/// Tells by the first bytes what follows. What a vendor compresses is something else than a compressed log.
fn content(head: &[u8]) -> Content {
    match head {
        [] => Content::Empty,
        [0x28, 0xb5, 0x2f, 0xfd, ..] if Vendor::of(head).is_none() => Content::Zstd,
        head if head.starts_with(MAGIC) => Content::Log,
        _ => Content::Other,
    }
}

/// What comes from standard input or from a pipe with a name, and what it is; `None` for files and directories. `session` is the
/// one that is asked for.
pub(crate) fn stream(path: &Path, session: Option<&str>) -> Result<Option<(Opened, Content)>, Failure> {
    let name = path.display().to_string();
    let unreadable = |e| Failure::unreadable(&name, &e);
    if !is_dash(path) {
        let meta = fs::metadata(path).map_err(unreadable)?;
        if meta.is_file() || meta.is_dir() {
            return Ok(None);
        }
    }
    if session.is_some() {
        let why = "--session chooses among the sessions of files and directories, and a stream holds one";
        return Err(Failure::new(Exit::Usage, why));
    }
    let mut opened = if is_dash(path) {
        spool("standard input", io::stdin().lock())?
    } else {
        spool(&name, File::open(path).map_err(unreadable)?)?
    };
    let head = vendors::head(&mut opened.file).and_then(|head| opened.file.rewind().map(|()| head));
    let content = content(&head.map_err(|e| opened.unreadable(&e))?);
    Ok(Some((opened, content)))
}

/// The session that came from a stream.
pub(crate) fn session_from_stream(opened: Opened, only: Option<Vendor>) -> Result<Session, Failure> {
    let name = opened.name;
    Session::from_stdin(opened.file, only).map_err(|e| Failure::unreadable(&name, &e))
}

/// What a file holds.
pub(crate) fn content_of(path: &Path) -> Result<Content, Failure> {
    let head = File::open(path).and_then(vendors::head);
    head.map(|head| content(&head)).map_err(|e| Failure::unreadable(&path.display().to_string(), &e))
}

/// The failure for a compressed input that is of nobody.
pub(crate) fn of_nobody(name: &str) -> Failure {
    Failure::new(Exit::Unreadable, format!("{name} is compressed, and holds neither a log nor a session that is known"))
        .help(format!("zstd -dc {name} | head -c 200"))
}

/// A compressed log, as its content (spec 01, "Files"). `blobs` is where its large values lie.
fn unpacked(name: &str, from: impl Read, blobs: Option<BlobStore>) -> Result<Opened, Failure> {
    let mut opened = spool(name, compressed::Content::of(from))?;
    let head = vendors::head(&mut opened.file).and_then(|head| opened.file.rewind().map(|()| head));
    if content(&head.map_err(|e| opened.unreadable(&e))?) == Content::Log {
        return Ok(Opened { blobs, ..opened });
    }
    Err(of_nobody(name))
}

/// Opens a log for [`validate`](crate::commands::validate): nothing but a log is accepted, whatever stands in it.
pub(crate) fn open_log(path: &Path) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    if is_dash(path) {
        return log_from_stream("standard input", io::stdin().lock());
    }
    let file = File::open(path).map_err(|e| Failure::unreadable(&name, &e))?;
    let meta = file.metadata().map_err(|e| Failure::unreadable(&name, &e))?;
    if meta.is_dir() {
        return Err(Failure::new(Exit::Unreadable, format!("{name} is a directory"))
            .help(format!("{name}/*{SUFFIX} names the logs in it")));
    }
    if !meta.is_file() {
        return log_from_stream(&name, file);
    }
    if content_of(path)? == Content::Zstd {
        // Blobs lie beside the log under its own name.
        return unpacked(&name, file, Some(BlobStore::beside(&path.with_extension(""))));
    }
    Ok(Opened { blobs: Some(BlobStore::beside(path)), path: Some(path.into()), imported: false, name, file })
}

/// A log from a stream, whatever stands in it.
fn log_from_stream(name: &str, from: impl Read) -> Result<Opened, Failure> {
    let mut opened = spool(name, from)?;
    let head = vendors::head(&mut opened.file).and_then(|head| opened.file.rewind().map(|()| head));
    match content(&head.map_err(|e| opened.unreadable(&e))?) {
        Content::Zstd => unpacked(name, &opened.file, None),
        _ => Ok(opened),
    }
}

/// Opens the session that a command is about.
pub(crate) fn open(terminal: &mut Terminal, subject: &Subject) -> Result<Opened, Failure> {
    let path = subject.path.as_path();
    let wanted = subject.session.as_deref();
    if let Some((opened, content)) = stream(path, wanted)? {
        return match content {
            Content::Log => Ok(opened),
            Content::Zstd => unpacked(&opened.name, &opened.file, None),
            Content::Empty => Err(Failure::new(Exit::Unreadable, format!("{} is empty", opened.name))),
            Content::Other => {
                let name = opened.name.clone();
                let session = session_from_stream(opened, None)?;
                import(terminal, &name, session, None)
            }
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
        match content_of(path)? {
            Content::Log | Content::Zstd => return open_log(path).and_then(|log| log.of_session(wanted)),
            Content::Empty => return Err(Failure::new(Exit::Unreadable, format!("{name} is empty"))),
            Content::Other if name.ends_with(SUFFIX) => return open_log(path),
            Content::Other => {}
        }
    }
    let found = discover(path, None)?;
    let chosen = choose_session(&name, &found.sessions, wanted)?;
    if !found.beside.is_empty() {
        terminal.help(&beside(&found));
    }
    let session =
        found.sessions.into_iter().nth(chosen.index).ok_or_else(|| Failure::new(Exit::Bug, "a session is gone"))?;
    import(terminal, &name, session, chosen.agent)
}

/// Finds the sessions at a path.
pub(crate) fn discover(path: &Path, only: Option<Vendor>) -> Result<Discovery, Failure> {
    let name = path.display().to_string();
    let found = vendors::discover(path, only).map_err(|e| Failure::unreadable(&name, &e))?;
    if found.sessions.is_empty() {
        let mut failure = Failure::new(Exit::NothingMatched, format!("{name} holds no session that is known"));
        if let Some(first) = found.unrecognised.first() {
            failure =
                failure.help(format!("{} looks like one by its name, and is none by its content", first.display()));
        }
        return Err(failure.help(
            "a directory is that of Claude Code (~/.claude) or Codex (~/.codex), one below it, or one with palog logs",
        ));
    }
    Ok(found)
}

/// The hint that names what lies beside the input and was not read.
pub(crate) fn beside(found: &Discovery) -> String {
    let names: Vec<String> = found.beside.iter().take(5).map(|p| p.display().to_string()).collect();
    let more = if found.beside.len() > 5 { " …" } else { "" };
    format!(
        "what was named was read alone; more of its sessions lies in {}{more}: give the directory above to read that as well",
        names.join(", ")
    )
}

/// Imports a session into an unnamed temporary file.
fn import(terminal: &mut Terminal, name: &str, session: Session, agent: Option<String>) -> Result<Opened, Failure> {
    let progress = Progress::new(session.size());
    let imported = scratch_log(&session, agent, &progress);
    progress.end();
    let (file, report) = imported?;
    if let Some(summary) = summary_of_trouble(&report) {
        let _ = io::Write::write_fmt(
            &mut terminal.err,
            format_args!("{}: {summary} while reading {name}\n", terminal.err_style.yellow("note")),
        );
        let subject = if name == "standard input" { "-" } else { name };
        terminal.help(&format!("palog import {subject} -o DIR/ tells them one by one"));
    }
    Ok(Opened { name: name.into(), blobs: None, path: None, imported: true, file })
}

/// The log of a session, or of one of its subagents, in an unnamed temporary file that stands at its beginning.
pub(crate) fn scratch_log(
    session: &Session,
    agent: Option<String>,
    progress: &Progress,
) -> Result<(File, vendors::Report), Failure> {
    let scratch = |e| Failure::new(Exit::Negative, format!("cannot write a temporary file: {e}"));
    let mut file = tempfile::tempfile().map_err(scratch)?;
    progress.begin(session.size());
    let writer = progress.count(file.try_clone().map_err(scratch)?);
    let mut target = Stream::new(BufWriter::with_capacity(1 << 20, writer));
    if let Some(agent) = agent {
        target = target.of_agent(agent);
    }
    let mut options = vendors::Options::default();
    options.sources = false;
    let report = session.import(&mut target, &options).map_err(|e| import_failure(&e))?;
    drop(target);
    file.seek(SeekFrom::Start(0)).map_err(scratch)?;
    Ok((file, report))
}

/// Counts of findings about the input, if there is more than information. What is unresolved or waits is told by the
/// commands themselves.
fn summary_of_trouble(report: &vendors::Report) -> Option<String> {
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
            .help("what is known is: a session of Claude Code or Codex, or a log of palog"),
        ImportError::Write(WriteError::Io(error)) => Failure::output(error),
        ImportError::Write(WriteError::LineTooLong { .. }) => Failure::new(Exit::Negative, error.to_string())
            .help("write the log to a directory (palog import PATH -o DIR/): there, large values lie beside it"),
        ImportError::Exists { .. } => {
            Failure::new(Exit::Negative, error.to_string()).help("choose another place with -o, or move the log away")
        }
        _ => Failure::new(Exit::Negative, error.to_string()),
    }
}

/// Tells what is wrong with a log that was read, and refuses one of another version.
pub(crate) fn tell_faults(terminal: &mut Terminal, log: &Opened, faults: &Diagnostics) -> Result<(), Failure> {
    if let Some(unsupported) = faults.groups().iter().find(|g| g.code == Code::UnsupportedVersion) {
        let why = unsupported.first.first().and_then(|d| d.why.clone()).unwrap_or_default();
        return Err(
            Failure::new(Exit::Unreadable, format!("{}: {why}", log.name)).help(Code::UnsupportedVersion.remedy())
        );
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
    file.rewind().map_err(scratch)?;
    Ok(Opened { name: name.into(), blobs: None, path: None, imported: false, file })
}
