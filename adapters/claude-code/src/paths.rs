//! Finds the sessions below a path, and what belongs to each (vendor layout: `spec/sources/claude-code.md`, "Files").

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palog_adapter::Span;
use palog_adapter::source::path_name;

use crate::forks::Siblings;
use crate::history;

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: usize = 256 << 10;

/// What lies beside a transcript and belongs to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// `subagents/agent-<id>.jsonl`
    Agent,
    /// `subagents/agent-<id>.meta.json`
    AgentMeta,
    /// `tool-results/<id>.txt` and whatever else lies in the session's folder
    File,
    /// `sessions/<pid>.json`
    Status,
    /// `tasks/<sid>/…`
    Task,
    /// `file-history/<sid>/…`
    FileHistory,
    /// The lines of `history.jsonl` that carry the session's id
    History,
}

/// One file that belongs to a session.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    /// What it is.
    pub(crate) role: Role,
    /// The subagent that it belongs to.
    pub(crate) agent: Option<String>,
    /// Name of its source in the log.
    pub(crate) source: String,
    /// Path within what was imported.
    pub(crate) locator: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Of a file that sessions share, the lines of this one.
    pub(crate) lines: Arc<[Span]>,
    /// Why it is not read.
    pub(crate) unread: Option<Unread>,
}

/// Why something that lies in a folder is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is a link: what it leads to is not the session's.
    Link,
    /// It is neither a file nor a folder.
    NoFile,
    /// The folder cannot be read.
    Error(String),
}

/// A session and the files that belong to it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Native id by the name of the file; `None` where the name is no id (the records tell it then).
    pub(crate) id: Option<String>,
    /// Where the transcript is; `None` for standard input.
    pub(crate) transcript: Option<PathBuf>,
    /// What was on standard input, if that is the transcript.
    pub(crate) stdin: Option<Arc<File>>,
    /// Its path within what was imported.
    pub(crate) locator: String,
    /// What belongs to it, in the order of source names.
    pub(crate) sidecars: Vec<Sidecar>,
    /// Transcripts of the same project that may be forks of one another, this one among them.
    pub(crate) siblings: Arc<Siblings>,
}

impl Session {
    /// Native id of the session: the name of its file, or the first session id in it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Path of the transcript; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.transcript.as_deref()
    }

    /// The transcript without what lies beside it. Other sessions of its family are still looked at: they tell which of its
    /// records are copies.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.sidecars.clear();
        self
    }

    /// Agent ids of the subagents that have files of their own.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.sidecars.iter().filter(|s| s.role == Role::Agent).filter_map(|s| s.agent.as_deref())
    }

    /// Size of the transcript and of what belongs to it, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        let files = self.transcript.iter().chain(self.sidecars.iter().map(|s| &s.path));
        files.filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum()
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by path.
    pub sessions: Vec<Session>,
    /// Files of these sessions that lie outside of the path and are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold a session, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of a Claude Code transcript. Judged by content alone.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    // A log can hold records as they stand.
    if head.starts_with(b"{\"palog\":") {
        return false;
    }
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    let own =
        has(b"\"parentUuid\"") || has(b"\"leafUuid\"") || (has(b"\"messageId\"") && has(b"\"file-history-snapshot\""));
    own || (has(b"\"sessionId\"") && (has(b"\"type\":\"") || has(b"\"type\": \"")))
}

/// Finds the sessions at `path`: a configuration directory, its `projects`, one project's directory, or one transcript.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read. Of files the first bytes are read, and what sessions share.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    let meta = fs::metadata(path)?;
    if meta.is_file() {
        return discover_file(path);
    }
    if !meta.is_dir() {
        let why = "it is neither a file nor a directory; what comes from it is a session of its own";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut found = Discovery::default();
    let root = if path.join("projects").is_dir() { Some(Root::read(path)?) } else { None };
    let projects = projects(path)?;
    for project in &projects {
        discover_project(project, path, root.as_ref(), &mut found)?;
    }
    if projects == [path] {
        found.beside.extend(configuration_of(path).into_iter().flat_map(|root| outside(&root)));
    } else if root.is_none() && path.file_name().is_some_and(|n| n == "projects") {
        found.beside.extend(path.parent().into_iter().flat_map(outside));
    }
    Ok(found)
}

/// The directories of projects that a directory holds: below its `projects`, directly in it, or itself.
pub(crate) fn projects(path: &Path) -> io::Result<Vec<PathBuf>> {
    let projects = path.join("projects");
    if projects.is_dir() {
        directories(&projects)
    } else if entries(path)?.iter().any(|p| is_transcript(p)) {
        Ok(vec![path.into()])
    } else {
        directories(path)
    }
}

/// A configuration directory, with what all its sessions share.
struct Root {
    path: PathBuf,
    /// Status files, by the session that they name.
    statuses: HashMap<String, Vec<PathBuf>>,
    /// The file of what was typed and the lines in it; `None` in place of these where it cannot be read.
    history: Option<(PathBuf, Option<history::Index>)>,
}

impl Root {
    fn read(path: &Path) -> io::Result<Self> {
        let mut statuses: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for Found { path: file, .. } in files_below(&path.join("sessions")).into_iter().filter(|f| f.unread.is_none()) {
            if let Some(session) = file.extension().filter(|e| *e == "json").and_then(|_| status_session(&file)) {
                statuses.entry(session).or_default().push(file);
            }
        }
        let history = Some(path.join("history.jsonl")).filter(|h| h.is_file());
        let history = history.map(|file| {
            let index = history::index(&file).ok();
            (file, index)
        });
        Ok(Root { path: path.into(), statuses, history })
    }

    /// The lines of a session in the file of what was typed. Where that could not be read, the import will say so.
    fn history_of(&self, session: &str) -> Option<(&Path, Arc<[Span]>)> {
        let (file, index) = self.history.as_ref()?;
        let lines = match index {
            Some(index) => index.get(session).cloned()?,
            None => Arc::default(),
        };
        Some((file, lines))
    }
}

/// A session whose transcript came from standard input or a pipe, which `bytes` holds.
#[must_use]
pub fn session_from_stdin(bytes: File) -> Session {
    Session {
        id: None,
        transcript: None,
        stdin: Some(Arc::new(bytes)),
        locator: "-".into(),
        sidecars: Vec::new(),
        siblings: Arc::default(),
    }
}

/// One transcript, and nothing beside it.
fn discover_file(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    if !recognises(&head(path)?) {
        found.unrecognised.push(path.into());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.with_file_name(&*stem);
    if is_id(&stem) && folder.is_dir() {
        found.beside.push(folder);
    }
    if let Some(root) = path.parent().and_then(configuration_of) {
        found.beside.extend(outside(&root));
    }
    found.sessions.push(Session {
        id: is_id(&stem).then(|| stem.into_owned()).or_else(|| agent_id(path, ".jsonl")),
        transcript: Some(path.into()),
        stdin: None,
        locator: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sidecars: Vec::new(),
        siblings: Arc::default(),
    });
    Ok(found)
}

/// All transcripts directly in `project`. `base` is what was imported; `root` the configuration directory, if that is it.
fn discover_project(project: &Path, base: &Path, root: Option<&Root>, found: &mut Discovery) -> io::Result<()> {
    let mut transcripts: Vec<PathBuf> = entries(project)?.into_iter().filter(|p| is_transcript(p)).collect();
    let mut heads = HashMap::new();
    transcripts.retain(|path| {
        let head = head(path).unwrap_or_default();
        let known = recognises(&head) || head.iter().all(u8::is_ascii_whitespace);
        if known {
            heads.insert(path.clone(), first_id(&head));
        } else {
            found.unrecognised.push(path.clone());
        }
        known
    });
    let first = |path: &Path| heads.get(path).and_then(Option::as_deref);
    let mut families: HashMap<&str, Vec<PathBuf>> = HashMap::new();
    for path in &transcripts {
        if let Some(first) = first(path) {
            families.entry(first).or_default().push(path.clone());
        }
    }
    let families: HashMap<&str, Arc<Siblings>> =
        families.into_iter().map(|(first, paths)| (first, Arc::new(Siblings::new(paths)))).collect();
    for path in &transcripts {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut sidecars = Vec::new();
        let mut add = |role, source: String, file: &Found, agent: Option<String>| {
            let (path, unread) = (file.path.clone(), file.unread.clone());
            let locator = relative(&path, base);
            sidecars.push(Sidecar { role, agent, source, locator, path, lines: Arc::default(), unread });
        };
        // No two sources have one name: each place has a word of its own, and below it stand paths.
        let below = |word: &str, file: &Found, folder: &Path| {
            format!("{word}/{}", path_name(file.path.strip_prefix(folder).unwrap_or(&file.path)))
        };
        let folder = path.with_extension("");
        let results = folder.join("tool-results");
        for file in files_below(&folder) {
            let agent = |end: &str| agent_id(&file.path, end).filter(|_| file.unread.is_none());
            match (agent(".jsonl"), agent(".meta.json")) {
                (agent @ Some(_), _) => add(Role::Agent, below("files", &file, &folder), &file, agent),
                (None, agent @ Some(_)) => add(Role::AgentMeta, below("files", &file, &folder), &file, agent),
                (None, None) if file.path.starts_with(&results) => {
                    add(Role::File, below("tool-results", &file, &results), &file, None);
                }
                (None, None) => add(Role::File, below("files", &file, &folder), &file, None),
            }
        }
        if let Some(root) = root {
            let sessions = root.path.join("sessions");
            for file in root.statuses.get(&stem).into_iter().flatten() {
                let name = Found { path: file.with_extension(""), unread: None };
                let file = Found { path: file.clone(), unread: None };
                add(Role::Status, below("status", &name, &sessions), &file, None);
            }
            for (role, name) in [(Role::Task, "tasks"), (Role::FileHistory, "file-history")] {
                let own = root.path.join(name).join(&stem);
                for file in files_below(&own) {
                    add(role, below(name, &file, &own), &file, None);
                }
            }
        }
        if let Some((file, lines)) = root.and_then(|root| root.history_of(&stem)) {
            let (role, source, locator) = (Role::History, "history".into(), relative(file, base));
            sidecars.push(Sidecar { role, agent: None, source, locator, path: file.into(), lines, unread: None });
        }
        sidecars.sort_by(|a, b| a.source.cmp(&b.source));
        found.sessions.push(Session {
            id: is_id(&stem).then_some(stem),
            transcript: Some(path.clone()),
            stdin: None,
            locator: relative(path, base),
            sidecars,
            siblings: first(path).and_then(|first| families.get(first)).cloned().unwrap_or_default(),
        });
    }
    Ok(())
}

/// The id of the first record in the tree, as far as the first bytes of a file show it.
fn first_id(head: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Line {
        uuid: String,
    }
    head.split(|b| *b == b'\n').find_map(|line| serde_json::from_slice::<Line>(line).ok()).map(|l| l.uuid)
}

/// The session id that a status file names.
fn status_session(path: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Status {
        #[serde(rename = "sessionId")]
        session: String,
    }
    let bytes = fs::read(path).ok()?;
    serde_json::from_slice::<Status>(&bytes).ok().map(|s| s.session)
}

/// The configuration directory that a project's directory lies in.
fn configuration_of(project: &Path) -> Option<PathBuf> {
    let projects = fs::canonicalize(project).ok()?.parent()?.to_path_buf();
    (projects.file_name()? == "projects").then(|| projects.parent().map(Path::to_path_buf))?
}

/// Directories of a configuration directory that may hold what belongs to a session.
fn outside(root: &Path) -> Vec<PathBuf> {
    let names = ["sessions", "tasks", "file-history", "history.jsonl"];
    names.iter().map(|n| root.join(n)).filter(|p| p.exists()).collect()
}

/// Whether a file has the name of a transcript. Logs that an import left there have not.
pub(crate) fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") && name != "history.jsonl" && !name.ends_with(".palog.jsonl") && path.is_file()
}

/// The agent id in the name of a subagent's file with the ending `end`.
pub(crate) fn agent_id(path: &Path, end: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("agent-")?.strip_suffix(end).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Whether a file name is a session id (the client names files by UUID).
pub(crate) fn is_id(stem: &str) -> bool {
    let groups: Vec<&str> = stem.split('-').collect();
    groups.iter().map(|g| g.len()).eq([8, 4, 4, 4, 12]) && stem.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).to_string_lossy().into_owned()
}

/// What lies in a directory, by name; nothing if there is no such directory.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let read = match fs::read_dir(directory) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        read => read?,
    };
    let mut paths = read.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(entries(directory)?.into_iter().filter(|p| p.is_dir()).collect())
}

/// Something that lies below a folder.
struct Found {
    path: PathBuf,
    unread: Option<Unread>,
}

/// All that lies below a directory, by path. Links are not followed.
fn files_below(directory: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    if directory.is_symlink() {
        return vec![Found { path: directory.into(), unread: Some(Unread::Link) }];
    }
    let paths = match entries(directory) {
        Ok(paths) => paths,
        Err(error) => return vec![Found { path: directory.into(), unread: Some(Unread::Error(error.to_string())) }],
    };
    for path in paths {
        let unread = match path.symlink_metadata().map(|meta| meta.file_type()) {
            Ok(kind) if kind.is_dir() => {
                found.extend(files_below(&path));
                continue;
            }
            Ok(kind) if kind.is_file() => None,
            Ok(kind) if kind.is_symlink() => Some(Unread::Link),
            Ok(_) => Some(Unread::NoFile),
            Err(error) => Some(Unread::Error(error.to_string())),
        };
        found.push(Found { path, unread });
    }
    found
}
