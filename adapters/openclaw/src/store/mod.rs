//! The sessions of OpenClaw: in its databases, and in the files that it had before.

pub(crate) mod approvals;
mod family;
mod import;
mod input;
mod rows;
mod work;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use palog::diagnostic::Diagnostic;
use palog_adapter::listing::{Listed, TimeFrom, TitleFrom};
use palog_adapter::sqlite::Store;
use palog_adapter::{ImportError, Listing, Options, Report, Target};
use tempfile::NamedTempFile;

use crate::file::{self, FileSession, First};
use crate::pi::{family, files_below, head};
use crate::times::of_milliseconds;
use crate::{FORMAT, listing};

/// How every database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// A database that is open.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    /// Where it lies; of standard input, `-`.
    path: PathBuf,
    /// Its path within what was imported.
    locator: String,
    store: Rc<Store>,
    /// What came from standard input lies here.
    _spooled: Option<Rc<NamedTempFile>>,
}

/// A session in the database of an agent.
#[derive(Clone, Debug)]
pub(crate) struct StoreSession {
    id: String,
    /// The key under which the client finds it; empty where no row tells.
    key: String,
    agent: Database,
    /// The database of the gateway.
    state: Option<Database>,
}

/// A session of OpenClaw.
#[derive(Clone, Debug)]
pub struct Session(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Store(StoreSession),
    File(FileSession),
    /// A file that should be a database and cannot be read.
    Broken(PathBuf, Box<Diagnostic>),
}

impl Session {
    /// Native id of the session, as far as it is told without reading it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.0 {
            Kind::Store(session) => Some(&session.id),
            Kind::File(session) => session.id.as_deref(),
            Kind::Broken(..) => None,
        }
    }

    /// Path of its database or file; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Store(session) => Some(session.agent.path.as_path()).filter(|p| *p != Path::new("-")),
            Kind::File(session) => session.path.as_deref(),
            Kind::Broken(path, _) => Some(path),
        }
    }

    /// The session without what lies in the database of the gateway.
    #[must_use]
    pub fn alone(mut self) -> Self {
        if let Kind::Store(session) = &mut self.0 {
            session.state = None;
        }
        self
    }

    /// Size of its file in bytes, as the file system tells it now; of a database, of all of it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.path().and_then(|p| p.metadata().ok()).map_or(0, |m| m.len())
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by path and, in a database, by their beginning.
    pub sessions: Vec<Session>,
    /// Files of these sessions that are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold a session, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of a database or of a session of OpenClaw. Judged by content alone; of a
/// database by the statements that make its tables.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    if head.starts_with(DATABASE) {
        let has = |name: &[u8]| head.windows(name.len()).any(|w| w == name);
        return has(b"transcript_events") || has(b"operator_approvals");
    }
    family(head) == Some(&FORMAT)
}

/// Whether the name of a file is one that the client gives to its databases.
fn is_named_like_a_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("openclaw") && name.ends_with(".sqlite")
}

/// Finds the sessions at `path`: `~/.openclaw`, a directory above or below it, a database, or one file of JSON lines.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    let is_file = !fs::metadata(path)?.is_dir();
    let (mut agents, mut states) = (Vec::new(), Vec::new());
    for file in files_below(path, &|name| name.ends_with(".sqlite") || name.ends_with(".jsonl"))? {
        let head = head(&file)?;
        let is_database = head.starts_with(DATABASE) || (is_named_like_a_database(&file) && !head.starts_with(b"{"));
        if is_database {
            if !is_file && !recognises(&head) && !is_named_like_a_database(&file) {
                continue;
            }
            match open(&file, path) {
                Ok(database) if database.store.table("transcript_events").is_some() => agents.push(database),
                Ok(database) if database.store.table("operator_approvals").is_some() => states.push(database),
                Ok(_) => found.unrecognised.push(file),
                Err(why) => found.sessions.push(Session(Kind::Broken(file, why))),
            }
            continue;
        }
        let of_openclaw = family(&head) == Some(&FORMAT);
        let is_legacy = family(&head).is_some() && index_of(&file).is_some();
        if of_openclaw || is_legacy || is_file {
            if !of_openclaw && !is_legacy && family(&head).is_none() {
                found.unrecognised.push(file.clone());
            }
            let first = First::peek(&mut File::open(&file)?)?;
            let mut session = FileSession::of(&file, path, &first);
            session.spawned_by = spawner(&file, session.id.as_deref());
            found.sessions.push(Session(Kind::File(session)));
        }
    }
    for agent in agents {
        let state = states.iter().max_by_key(|state| shared(&agent.path, &state.path)).cloned();
        if is_file {
            found.beside.extend(states_beside(&agent.path));
        }
        found.sessions.extend(sessions(&agent, state.as_ref()));
    }
    // The database of the gateway alone holds no session.
    if found.sessions.is_empty() && is_file {
        found.unrecognised.extend(states.into_iter().map(|s| s.path));
    }
    Ok(found)
}

/// How many folders two paths have in common.
fn shared(a: &Path, b: &Path) -> usize {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).count()
}

/// The databases of a gateway near one of an agent that was named alone: beside it, or where the client has it.
fn states_beside(agent: &Path) -> Vec<PathBuf> {
    let beside = agent.with_file_name("openclaw.sqlite");
    let home = agent.ancestors().nth(4).map(|home| home.join("state/openclaw.sqlite"));
    std::iter::once(beside).chain(home).filter(|p| p.is_file() && p != agent).collect()
}

fn open(path: &Path, root: &Path) -> Result<Database, Box<Diagnostic>> {
    let within = path.strip_prefix(root).ok().filter(|p| !p.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let locator = within.map_or_else(|| name.into_owned(), |p| p.to_string_lossy().into_owned());
    Ok(Database { path: path.into(), locator, store: Rc::new(Store::open(path)?), _spooled: None })
}

/// The sessions in the database of an agent, by their beginning.
fn sessions(agent: &Database, state: Option<&Database>) -> Vec<Session> {
    let mut found: Vec<(Option<i64>, String, String)> = Vec::new();
    let _ = agent.store.each("session_windows", "", &[], |row| -> Result<(), io::Error> {
        let key = row.text("session_key").unwrap_or_default().to_owned();
        if let Some(id) = row.text("session_id") {
            found.push((row.integer("created_at"), id.to_owned(), key));
        }
        Ok(())
    });
    let known: BTreeSet<String> = found.iter().map(|(_, id, _)| id.clone()).collect();
    let _ = agent.store.each("transcript_events", "GROUP BY session_id", &[], |row| -> Result<(), io::Error> {
        if let Some(id) = row.text("session_id").filter(|id| !known.contains(*id)) {
            found.push((row.integer("created_at"), id.to_owned(), String::new()));
        }
        Ok(())
    });
    found.sort();
    let session = |(_, id, key)| StoreSession { id, key, agent: agent.clone(), state: state.cloned() };
    found.into_iter().map(|one| Session(Kind::Store(session(one)))).collect()
}

/// A session that came from standard input, which `bytes` holds: of a database, the one that was used last.
///
/// # Errors
/// When `bytes` cannot be read.
pub fn session_from_stdin(mut bytes: File) -> io::Result<Session> {
    bytes.seek(SeekFrom::Start(0))?;
    let start = crate::pi::head_of(&mut bytes)?;
    bytes.seek(SeekFrom::Start(0))?;
    if !start.starts_with(DATABASE) {
        return Ok(Session(Kind::File(FileSession::of_stdin(bytes))));
    }
    let mut spooled = NamedTempFile::with_prefix("palog-")?;
    io::copy(&mut bytes, &mut spooled)?;
    let spooled = Rc::new(spooled);
    let store = match Store::open(spooled.path()) {
        Ok(store) => Rc::new(store),
        Err(why) => return Ok(Session(Kind::Broken("-".into(), why))),
    };
    let agent = Database { path: "-".into(), locator: "-".into(), store, _spooled: Some(spooled) };
    let newest = sessions(&agent, None).pop();
    Ok(newest.unwrap_or_else(|| Session(Kind::File(FileSession::of_stdin(bytes)))))
}

/// Imports one session.
///
/// # Errors
/// When a file or database cannot be read, the target refuses, or nothing in it is known. The target is aborted then.
pub fn import(session: &Session, target: &mut dyn Target, options: &Options) -> Result<Report, ImportError> {
    match &session.0 {
        Kind::Store(session) => import::import(session, target, options),
        Kind::File(session) => file::import(&FORMAT, session, target, options),
        Kind::Broken(path, why) => Err(ImportError::Read {
            path: path.clone(),
            error: io::Error::new(
                io::ErrorKind::InvalidData,
                why.why.clone().unwrap_or_else(|| why.code.as_str().into()),
            ),
        }),
    }
}

/// Lists the sessions at `path`.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read.
pub fn list(path: &Path) -> io::Result<Listing> {
    let found = discover(path)?;
    let mut all = Listing { unrecognised: found.unrecognised, ..Listing::default() };
    for session in &found.sessions {
        match &session.0 {
            Kind::Store(session) => all.sessions.push(listed(session)),
            Kind::File(session) => {
                let Some(path) = session.path.as_deref() else { continue };
                match listing::listed(&FORMAT, session, path) {
                    Ok(listed) => all.sessions.push(listed),
                    Err(_) => all.unrecognised.push(path.into()),
                }
            }
            Kind::Broken(path, _) => all.unrecognised.push(path.clone()),
        }
    }
    Ok(all)
}

fn listed(session: &StoreSession) -> Listed {
    let node = session.node();
    let name = node.as_ref().and_then(|n| n.text("label").or(n.text("display_name")).map(str::to_owned));
    let named_by = match node.as_ref().and_then(|n| n.text("label")) {
        Some(_) => TitleFrom::User,
        None => TitleFrom::Client,
    };
    let (directory, prompt) = session.beginning();
    let last = session.last_activity();
    Listed {
        vendor: FORMAT.name,
        id: Some(session.id.clone()),
        path: session.agent.path.clone(),
        title_from: name.as_ref().map(|_| named_by).or(prompt.as_ref().map(|_| TitleFrom::Prompt)),
        title: name.or_else(|| prompt.as_deref().map(listing::title_of)),
        directory,
        branch: None,
        last_activity: last.and_then(of_milliseconds),
        last_activity_from: last.map(|_| TimeFrom::Record),
        bytes: session.agent.path.metadata().map_or(0, |m| m.len()),
        subagents: 0,
    }
}

/// `sessions.json`, where the client had the keys of the sessions in files.
fn index_of(file: &Path) -> Option<PathBuf> {
    file.parent().map(|folder| folder.join("sessions.json")).filter(|index| index.is_file())
}

/// The session that started the one in a file, by the index beside it.
fn spawner(file: &Path, id: Option<&str>) -> Option<String> {
    let index: serde_json::Value = serde_json::from_slice(&fs::read(index_of(file)?).ok()?).ok()?;
    let entries = index.as_object()?;
    let own = entries.values().find(|entry| entry["sessionId"].as_str() == id)?;
    let by = own["spawnedBy"].as_str()?;
    entries.get(by)?["sessionId"].as_str().map(str::to_owned)
}
