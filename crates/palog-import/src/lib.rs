//! All formats that can become portable agent logs, behind one interface.
//!
//! [`discover`] finds the sessions of every vendor below a path, by what is in the files; [`Session::import`] turns one of
//! them into logs. What a record means is known to the adapters alone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use palog_claude_code as claude_code;
use palog_codex as codex;

// What the functions here take and give, so that their users need no second dependency.
pub use palog_adapter::listing::{Listed, Listing, TimeFrom, TitleFrom};
pub use palog_adapter::{
    Directory, ImportError, InputReport, LogName, LogReport, Options, Output, Report, Stream, Target,
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
}

impl Vendor {
    /// All of them.
    pub const ALL: [Vendor; 2] = [Vendor::ClaudeCode, Vendor::Codex];

    /// The name of its format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::ClaudeCode => claude_code::FORMAT.name,
            Vendor::Codex => codex::FORMAT.name,
        }
    }

    /// The vendor whose files begin so; `None` where nobody's do.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Vendor> {
        // Rollouts have a closer mark: each record says what it is.
        if codex::recognises(head) {
            Some(Vendor::Codex)
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
}

impl Session {
    /// A session that comes from standard input, of which `head` stands first.
    #[must_use]
    pub fn from_stdin(head: &[u8], only: Option<Vendor>) -> Session {
        match only.or_else(|| Vendor::of(head)) {
            Some(Vendor::Codex) => Session::Codex(codex::session_from_stdin()),
            Some(Vendor::ClaudeCode) | None => Session::ClaudeCode(claude_code::session_from_stdin()),
        }
    }

    /// Whose it is.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        match self {
            Session::ClaudeCode(_) => Vendor::ClaudeCode,
            Session::Codex(_) => Vendor::Codex,
        }
    }

    /// Its native id, as far as that is told without reading it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Session::ClaudeCode(session) => session.id(),
            Session::Codex(session) => session.id(),
        }
    }

    /// Path of its main file; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Session::ClaudeCode(session) => session.path(),
            Session::Codex(session) => session.path(),
        }
    }

    /// Ids of its subagents, where their files belong to it. Agents of Codex are sessions of their own.
    #[must_use]
    pub fn agents(&self) -> Vec<&str> {
        match self {
            Session::ClaudeCode(session) => session.agents().collect(),
            Session::Codex(_) => Vec::new(),
        }
    }

    /// Size of what belongs to it, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Session::ClaudeCode(session) => session.size(),
            Session::Codex(session) => session.size(),
        }
    }

    /// The session without what lies beside it.
    #[must_use]
    pub fn alone(self) -> Session {
        match self {
            Session::ClaudeCode(session) => Session::ClaudeCode(session.alone()),
            Session::Codex(session) => Session::Codex(session.alone()),
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

/// Whose sessions are looked for at a path: of a file what its content tells, of a directory everybody's. A file that nobody
/// recognises is offered to the first one, which tells what is wrong with it.
fn vendors(path: &Path, only: Option<Vendor>) -> io::Result<Vec<Vendor>> {
    if let Some(only) = only {
        return Ok(vec![only]);
    }
    if fs::metadata(path)?.is_dir() {
        return Ok(Vendor::ALL.to_vec());
    }
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(vec![Vendor::of(&head).unwrap_or(Vendor::ClaudeCode)])
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
                let claude_code::Discovery { sessions, beside, unrecognised } = claude_code::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::ClaudeCode));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
            Vendor::Codex => {
                let codex::Discovery { sessions, beside, unrecognised } = codex::discover(path)?;
                all.sessions.extend(sessions.into_iter().map(Session::Codex));
                all.beside.extend(beside);
                all.unrecognised.extend(unrecognised);
            }
        }
    }
    let known: BTreeSet<PathBuf> = all.sessions.iter().filter_map(|s| s.path().map(Path::to_path_buf)).collect();
    if !path.is_file() {
        // What one does not know, another one may.
        all.unrecognised.retain(|path| !known.contains(path));
    }
    all.unrecognised.sort();
    all.unrecognised.dedup();
    Ok(all)
}

/// Lists the sessions at `path` by what their first and last records tell.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path, only: Option<Vendor>) -> io::Result<Listing> {
    let mut all = Listing::default();
    for vendor in vendors(path, only)? {
        let listing = match vendor {
            Vendor::ClaudeCode => claude_code::list(path)?,
            Vendor::Codex => codex::list(path)?,
        };
        all.sessions.extend(listing.sessions);
        all.unrecognised.extend(listing.unrecognised);
    }
    let known: BTreeSet<&PathBuf> = all.sessions.iter().map(|s| &s.path).collect();
    all.unrecognised.retain(|path| !known.contains(path));
    all.unrecognised.sort();
    all.unrecognised.dedup();
    Ok(all)
}
