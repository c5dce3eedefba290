//! Finds the sessions below a path (vendor layout: `spec/sources/hermes.md`, "Files").

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::database::Database;
use crate::export::{self, Export};

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: u64 = 256 << 10;
/// How every database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Columns of the client's tables, as the statements that make them name them.
const MARKS: [&[u8]; 3] = [b"messages", b"session_id", b"tool_call"];
/// The database in the client's folder.
const STORE: &str = "state.db";

/// A file that all sessions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `cron/jobs.json`: what is to be done at some time.
    Jobs,
    /// `sessions/sessions.json`: which session belongs to which conversation of a messenger.
    Gateway,
}

/// A file beside the database.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    pub(crate) role: Role,
    /// Path within what was imported.
    pub(crate) locator: String,
    pub(crate) path: PathBuf,
}

/// Where a session lies.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Database(Rc<Database>),
    Export(Rc<Export>),
    /// A database that cannot be read, and why.
    Unreadable(PathBuf, String),
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    /// What else holds something of it.
    pub(crate) sidecars: Vec<Sidecar>,
}

impl Session {
    /// Native id of the session; `None` if its database cannot be read.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        Some(self.id.as_str()).filter(|_| !matches!(self.origin, Origin::Unreadable(..)))
    }

    /// Path of the database or export; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let path = match &self.origin {
            Origin::Database(database) => &database.path,
            Origin::Export(export) => &export.path,
            Origin::Unreadable(path, _) => path,
        };
        Some(path.as_path()).filter(|path| path.as_os_str() != "-")
    }

    /// The session without what lies beside its database.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.sidecars.clear();
        self
    }

    /// Size of the database or export, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.path().and_then(|path| path.metadata().ok()).map_or(0, |meta| meta.len())
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by path, and in a file by time.
    pub sessions: Vec<Session>,
    /// Files of these sessions that are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold sessions, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of an export.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    export::recognises(head)
}

/// Whether a file is an export, or a database with the client's tables.
///
/// # Errors
/// When it cannot be read.
pub fn recognises_file(path: &Path) -> io::Result<bool> {
    let head = head(path)?;
    Ok(recognises(&head) || is_candidate(path, &head) && !matches!(Database::open(path, ""), Ok(None) | Err(_)))
}

/// Finds the sessions at `path`: a `HERMES_HOME`, a directory below it, a database or an export.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    if !fs::metadata(path)?.is_dir() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !take(path, name, &mut found)? {
            found.unrecognised.push(path.into());
        }
        return Ok(found);
    }
    let mut files = Vec::new();
    files_below(path, &mut files)?;
    files.sort();
    for file in files {
        let locator = within(&file, path);
        let before = found.sessions.len();
        if !take(&file, locator, &mut found)? && file.file_name().is_some_and(|name| name == STORE) {
            found.unrecognised.push(file.clone());
        }
        let home = file.parent().filter(|_| file.file_name().is_some_and(|name| name == STORE)).unwrap_or(path);
        for session in &mut found.sessions[before..] {
            session.sidecars = sidecars(home, path);
        }
    }
    Ok(found)
}

/// The sessions of an export that came from standard input, which `bytes` holds.
///
/// # Errors
/// When it cannot be read.
pub fn sessions_from_stdin(bytes: File) -> io::Result<Vec<Session>> {
    Export::open(bytes, "-".into(), "-".into()).map(of_export)
}

fn of_export(export: Export) -> Vec<Session> {
    let export = Rc::new(export);
    let session =
        |id: &str| Session { id: id.into(), origin: Origin::Export(Rc::clone(&export)), sidecars: Vec::new() };
    export.ids().map(session).collect()
}

/// Takes in the sessions of a file; `false` if it is none of the client's.
fn take(path: &Path, locator: String, found: &mut Discovery) -> io::Result<bool> {
    let head = head(path)?;
    if recognises(&head) {
        found.sessions.extend(of_export(Export::open(File::open(path)?, path.into(), locator)?));
        return Ok(true);
    }
    if !is_candidate(path, &head) {
        return Ok(false);
    }
    match Database::open(path, &locator) {
        Ok(Some(database)) => {
            let database = Rc::new(database);
            let session = |id: &str| Session {
                id: id.into(),
                origin: Origin::Database(Rc::clone(&database)),
                sidecars: Vec::new(),
            };
            found.sessions.extend(database.family.ids().map(session));
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(why) => {
            let text = format!("{}: {}", why.code, why.why.as_deref().unwrap_or_else(|| why.code.meaning()));
            let origin = Origin::Unreadable(path.into(), text);
            found.sessions.push(Session { id: String::new(), origin, sidecars: Vec::new() });
            Ok(true)
        }
    }
}

/// Whether a file can be a database of the client: by the statements that stand at its beginning, or by its name where all
/// of it may still be in the log beside it.
fn is_candidate(path: &Path, head: &[u8]) -> bool {
    let has = |mark: &&[u8]| head.windows(mark.len()).any(|window| window == *mark);
    let is_store = path.file_name().is_some_and(|name| name == STORE);
    let by_log = is_store && path.with_file_name(format!("{STORE}-wal")).exists();
    (head.starts_with(SQLITE) && (is_store || MARKS.iter().all(has))) || by_log
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

fn within(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// The files below a directory that can hold sessions: of a `HERMES_HOME` its database and those of its profiles, else all
/// databases and exports. Links to directories are not followed.
fn files_below(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let store = directory.join(STORE);
    if store.is_file() {
        files.push(store);
        let profiles = directory.join("profiles");
        return if profiles.is_dir() { files_below(&profiles, files) } else { Ok(()) };
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.symlink_metadata()?.is_dir() {
            files_below(&path, files)?;
        } else if path.is_file() && path.extension().is_some_and(|e| e == "db" || e == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

/// What lies in the client's folder and holds something of its sessions.
fn sidecars(home: &Path, root: &Path) -> Vec<Sidecar> {
    let files = [(Role::Jobs, "cron/jobs.json"), (Role::Gateway, "sessions/sessions.json")];
    let there = |(role, name): (Role, &str)| {
        let path = home.join(name);
        path.is_file().then(|| Sidecar { role, locator: within(&path, root), path })
    };
    files.into_iter().filter_map(there).collect()
}
