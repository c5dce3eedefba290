//! All formats that can become portable agent logs, and that logs can become, behind one interface.
//!
//! [`discover`] finds the sessions of every vendor below a path, by what is in the files; [`Session::import`] turns one of
//! them into logs. What a record means is known to the adapters alone.

mod kept;
mod onto;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

mod export;

use palog_claude_code as claude_code;
use palog_codex as codex;
use palog_hermes as hermes;
use palog_openclaw::{self as openclaw, pi};
use palog_opencode as opencode;

pub use export::{Exported, Refused, Subject, Wanted};

// What the functions here take and give, so that their users need no second dependency.
pub use onto::{OntoError, onto};
pub use palog_adapter::export::{Class, ExportError, Field, Loss, LossReport, sources_beside};
pub use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};
pub use palog_adapter::resume::{Choice, Question, Resume};
pub use palog_adapter::{
    Additions, Directory, ImportError, InputReport, LogName, LogReport, Options, Output, Report, Stream, Target,
};

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: u64 = 256 << 10;

/// Whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vendor {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode.
    OpenCode,
    /// Hermes Agent.
    Hermes,
    /// OpenClaw.
    OpenClaw,
    /// pi.
    Pi,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Vendor; 6] =
        [Vendor::ClaudeCode, Vendor::Codex, Vendor::OpenCode, Vendor::Hermes, Vendor::OpenClaw, Vendor::Pi];

    /// The name of its format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::ClaudeCode => claude_code::FORMAT.name,
            Vendor::Codex => codex::FORMAT.name,
            Vendor::OpenCode => opencode::FORMAT.name,
            Vendor::Hermes => hermes::FORMAT.name,
            Vendor::OpenClaw => openclaw::FORMAT.name,
            Vendor::Pi => pi::FORMAT.name,
        }
    }

    /// The vendor whose format has this name.
    #[must_use]
    pub fn named(format: &str) -> Option<Vendor> {
        Vendor::ALL.into_iter().find(|vendor| vendor.name() == format)
    }

    /// What its client does with a session that is taken up again.
    #[must_use]
    pub fn resume(self, session: Option<&str>, directory: Option<&str>) -> Resume {
        match self {
            Vendor::ClaudeCode => claude_code::resume(session, directory),
            Vendor::Codex => codex::resume(session, directory),
            Vendor::OpenCode => opencode::resume(session, directory),
            Vendor::Hermes => hermes::resume(session, directory),
            Vendor::OpenClaw => openclaw::resume(session, directory),
            Vendor::Pi => pi::resume(session, directory),
        }
    }

    /// The questions that a call of its model asks a person; none where it asks nothing, or in another form.
    #[must_use]
    pub fn questions(self, tool: &str, arguments: &str) -> Vec<Question> {
        match self {
            Vendor::ClaudeCode => claude_code::questions(tool, arguments),
            Vendor::Codex => codex::questions(tool, arguments),
            Vendor::OpenCode => opencode::questions(tool, arguments),
            Vendor::Hermes => hermes::questions(tool, arguments),
            // Their models have no tool that only asks.
            Vendor::OpenClaw | Vendor::Pi => Vec::new(),
        }
    }

    /// The vendor whose files begin so; `None` where nobody's do, and of databases: whose they are their tables tell.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Vendor> {
        // Rollouts have a closer mark: each record says what it is.
        if codex::recognises(head) {
            Some(Vendor::Codex)
        } else if opencode::recognises(head) {
            Some(Vendor::OpenCode)
        } else if hermes::recognises(head) {
            Some(Vendor::Hermes)
        } else if openclaw::recognises(head) {
            Some(Vendor::OpenClaw)
        } else if pi::recognises(head) {
            Some(Vendor::Pi)
        } else if claude_code::recognises(head) {
            Some(Vendor::ClaudeCode)
        } else {
            None
        }
    }
}

/// A session of any vendor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Session {
    /// Of Claude Code, with its subagents.
    ClaudeCode(claude_code::Session),
    /// Of Codex.
    Codex(codex::Session),
    /// Of OpenCode.
    OpenCode(opencode::Session),
    /// Of Hermes Agent.
    Hermes(hermes::Session),
    /// Of OpenClaw.
    OpenClaw(openclaw::Session),
    /// Of pi.
    Pi(pi::Session),
}

/// Applies an expression to the session of whichever vendor.
macro_rules! of_any {
    ($any:expr, $session:ident => $give:expr) => {
        match $any {
            Session::ClaudeCode($session) => $give,
            Session::Codex($session) => $give,
            Session::OpenCode($session) => $give,
            Session::Hermes($session) => $give,
            Session::OpenClaw($session) => $give,
            Session::Pi($session) => $give,
        }
    };
}

impl Session {
    /// The sessions that came from standard input, which `bytes` holds: a stream of records is one, an export may hold several.
    ///
    /// # Errors
    /// When `bytes` cannot be read.
    pub fn from_stdin(mut bytes: File, only: Option<Vendor>) -> io::Result<Vec<Session>> {
        bytes.seek(SeekFrom::Start(0))?;
        Ok(match only.or(Vendor::of(&head(&mut bytes)?)) {
            Some(Vendor::Codex) => vec![Session::Codex(codex::session_from_stdin(bytes))],
            Some(Vendor::OpenCode) => vec![Session::OpenCode(opencode::session_from_stdin(bytes)?)],
            Some(Vendor::Hermes) => hermes::sessions_from_stdin(bytes)?.into_iter().map(Session::Hermes).collect(),
            Some(Vendor::OpenClaw) => vec![Session::OpenClaw(openclaw::session_from_stdin(bytes)?)],
            Some(Vendor::Pi) => vec![Session::Pi(pi::session_from_stdin(bytes))],
            Some(Vendor::ClaudeCode) | None => vec![Session::ClaudeCode(claude_code::session_from_stdin(bytes))],
        })
    }

    /// Whose it is.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        match self {
            Session::ClaudeCode(_) => Vendor::ClaudeCode,
            Session::Codex(_) => Vendor::Codex,
            Session::OpenCode(_) => Vendor::OpenCode,
            Session::Hermes(_) => Vendor::Hermes,
            Session::OpenClaw(_) => Vendor::OpenClaw,
            Session::Pi(_) => Vendor::Pi,
        }
    }

    /// Its native id, as far as that is told without reading it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        of_any!(self, session => session.id())
    }

    /// Path of its main file; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        of_any!(self, session => session.path())
    }

    /// Ids of its subagents, where their files belong to it. Agents of the others are sessions of their own.
    #[must_use]
    pub fn agents(&self) -> Vec<&str> {
        match self {
            Session::ClaudeCode(session) => session.agents().collect(),
            _ => Vec::new(),
        }
    }

    /// Size of what belongs to it, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        of_any!(self, session => session.size())
    }

    /// The session without what lies beside it.
    #[must_use]
    pub fn alone(self) -> Session {
        match self {
            Session::ClaudeCode(session) => Session::ClaudeCode(session.alone()),
            Session::Codex(session) => Session::Codex(session.alone()),
            Session::OpenCode(session) => Session::OpenCode(session.alone()),
            Session::Hermes(session) => Session::Hermes(session.alone()),
            Session::OpenClaw(session) => Session::OpenClaw(session.alone()),
            // Nothing lies beside it.
            Session::Pi(session) => Session::Pi(session),
        }
    }

    /// Imports it.
    ///
    /// # Errors
    /// When a file cannot be read, the target refuses, or nothing in it is known. The target is aborted then.
    pub fn import(&self, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
        match self {
            Session::ClaudeCode(session) => claude_code::import(session, target, options),
            Session::Codex(session) => codex::import(session, target, options),
            Session::OpenCode(session) => opencode::import(session, target, options),
            Session::Hermes(session) => hermes::import(session, target, options),
            Session::OpenClaw(session) => openclaw::import(session, target, options),
            Session::Pi(session) => pi::import(session, target, options),
        }
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by vendor and path.
    pub sessions: Vec<Session>,
    /// Files of these sessions that are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold a session, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether a file is a database: by its beginning or, where nothing was moved to it yet, by the log beside it.
fn is_database(path: &Path, head: &[u8]) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    head.starts_with(b"SQLite format 3\0") || (head.is_empty() && Path::new(&log).is_file())
}

/// Whose a database is, by its tables. One that nobody knows is offered to the first vendor whose store is one file.
fn of_database(path: &Path) -> io::Result<Vendor> {
    if hermes::recognises_file(path)? {
        return Ok(Vendor::Hermes);
    }
    Ok(if openclaw::discover(path)?.sessions.is_empty() { Vendor::OpenCode } else { Vendor::OpenClaw })
}

/// Whose sessions are looked for at a path: of a file what its content tells, of a directory everybody's. A file that nobody
/// recognises is offered to the first one, which tells what is wrong with it.
fn vendors(path: &Path, only: Option<Vendor>) -> io::Result<Vec<Vendor>> {
    if let Some(only) = only {
        return Ok(vec![only]);
    }
    if fs::metadata(path)?.is_dir() {
        return Ok(Vendor::ALL.to_vec());
    }
    let head = head(File::open(path)?)?;
    // The pages of a database may hold records of whatever form.
    let vendor = if is_database(path, &head) { Some(of_database(path)?) } else { Vendor::of(&head) };
    Ok(vec![vendor.unwrap_or(Vendor::ClaudeCode)])
}

/// As much of the beginning as it takes to tell what something is ([`Vendor::of`]).
///
/// # Errors
/// When it cannot be read.
pub fn head(input: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The places at and below `path` where sessions of Claude Code lie, with what is there: `path` in any case.
fn claude_code_below(path: &Path) -> io::Result<Vec<(PathBuf, claude_code::Discovery)>> {
    let found = claude_code::discover(path)?;
    let holds = |folder: &Path| found.sessions.iter().filter_map(|s| s.path()).any(|p| p.starts_with(folder));
    let is_project = found.sessions.iter().any(|s| s.path().and_then(Path::parent) == Some(path));
    let is_whole = !path.is_dir() || is_project || holds(&path.join("projects"));
    let mut below = Vec::new();
    for entry in if is_whole { Vec::new() } else { fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()? } {
        let folder = entry.path();
        if entry.file_type()?.is_dir() && !holds(&folder) {
            below.extend(claude_code_below(&folder)?.into_iter().filter(|(_, found)| !found.sessions.is_empty()));
        }
    }
    below.sort_by(|(a, _), (b, _)| a.cmp(b));
    below.insert(0, (path.into(), found));
    Ok(below)
}

/// Of files below `path` that a vendor does not recognise, those that should hold a session and are nobody's: files in the
/// folder of a session, in one for projects, or with the name of a rollout. Where there is no session at all, each should.
fn nobodys<'s>(path: &Path, files: Vec<PathBuf>, sessions: impl Iterator<Item = &'s Path>) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = sessions.filter_map(Path::parent).collect();
    let should_hold = |file: &Path| {
        folders.is_empty()
            || file.parent().is_some_and(|folder| folders.contains(folder))
            || file.strip_prefix(path).is_ok_and(|file| file.iter().any(|name| name == "projects"))
            || file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rollout-"))
    };
    let is_somebodys = |file: &Path| File::open(file).and_then(head).is_ok_and(|head| Vendor::of(&head).is_some());
    let files: BTreeSet<PathBuf> =
        files.into_iter().filter(|file| file == path || should_hold(file) && !is_somebodys(file)).collect();
    files.into_iter().collect()
}

/// Finds the sessions at `path`, or only those of one vendor.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn discover(path: &Path, only: Option<Vendor>) -> io::Result<Discovery> {
    let mut all = Discovery::default();
    for vendor in vendors(path, only)? {
        match vendor {
            Vendor::ClaudeCode => {
                for (_, found) in claude_code_below(path)? {
                    let claude_code::Discovery { sessions, beside, unrecognised } = found;
                    all.sessions.extend(sessions.into_iter().map(Session::ClaudeCode));
                    all.beside.extend(beside);
                    all.unrecognised.extend(unrecognised);
                }
            }
            Vendor::Codex => {
                let codex::Discovery { sessions, beside, unrecognised } = codex::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::Codex));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
            Vendor::OpenCode => {
                let opencode::Discovery { sessions, beside, unrecognised } = opencode::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::OpenCode));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
            Vendor::Hermes => {
                let hermes::Discovery { sessions, beside, unrecognised } = hermes::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::Hermes));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
            Vendor::OpenClaw => {
                let openclaw::Discovery { sessions, beside, unrecognised } = openclaw::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::OpenClaw));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
            Vendor::Pi => {
                let pi::Discovery { sessions, unrecognised } = pi::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::Pi));
                all.unrecognised.extend(unrecognised);
            }
        }
    }
    all.unrecognised = nobodys(path, all.unrecognised, all.sessions.iter().filter_map(Session::path));
    Ok(all)
}

/// Lists the sessions at `path` by what their first and last records tell.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path, only: Option<Vendor>) -> io::Result<Listing> {
    let mut all = Listing::default();
    for vendor in vendors(path, only)? {
        let listings = match vendor {
            Vendor::ClaudeCode => {
                claude_code_below(path)?.iter().map(|(path, _)| claude_code::list(path)).collect::<io::Result<_>>()?
            }
            Vendor::Codex => vec![codex::list(path)?],
            Vendor::OpenCode => vec![opencode::list(path)?],
            Vendor::Hermes => vec![hermes::list(path)?],
            Vendor::OpenClaw => vec![openclaw::list(path)?],
            Vendor::Pi => vec![pi::list(path)?],
        };
        for listing in listings {
            all.sessions.extend(listing.sessions);
            all.unrecognised.extend(listing.unrecognised);
        }
    }
    all.unrecognised = nobodys(path, all.unrecognised, all.sessions.iter().map(|s| s.path.as_path()));
    Ok(all)
}
