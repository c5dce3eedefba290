//! Finds the sessions below a path, and what belongs to each (vendor layout: `spec/sources/codex.md`, "Files").

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::first::First;
use crate::record::{Form, Line};
use crate::sidecars::{Role, Sidecar};
use palog_adapter::compressed::{Content, ZSTD};

/// How much of a file is looked at to tell what it is, in bytes.
const HEAD: u64 = 256 << 10;

/// Name of the source that is the first rollout of a session.
pub(crate) const TRANSCRIPT: &str = "transcript";

/// A file of a session.
#[derive(Clone, Debug)]
pub(crate) struct RolloutFile {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its path within what was imported.
    pub(crate) locator: String,
    /// Name of its source in the log.
    pub(crate) source: String,
    /// The compressed file of the same name, which the client does not read where the plain one is there.
    pub(crate) twin: Option<PathBuf>,
}

/// A session that was made from this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offspring {
    pub(crate) id: String,
    /// It is a fork; else it was started by the agent of this one.
    pub(crate) is_fork: bool,
}

/// A session and the files that belong to it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Native id by the header or, failing that, the name of the file; `None` where neither tells it.
    pub(crate) id: Option<String>,
    /// Its rollouts: the first one, then those that reverts began. Empty for standard input.
    pub(crate) files: Vec<RolloutFile>,
    /// What was on standard input, if that is the rollout.
    pub(crate) stdin: Option<Arc<File>>,
    /// The rollouts of the session that this one was forked from, where they were found.
    pub(crate) parent: Vec<RolloutFile>,
    /// Sessions that were made from this one.
    pub(crate) offspring: Vec<Offspring>,
    /// What else holds something of it, in the order of source names.
    pub(crate) sidecars: Vec<Sidecar>,
}

impl Session {
    fn of(id: Option<String>, files: Vec<RolloutFile>) -> Self {
        Session { id, files, stdin: None, parent: Vec::new(), offspring: Vec::new(), sidecars: Vec::new() }
    }

    /// Native id of the session, as far as the first line or the name of its file tells it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Path of the rollout; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.files.first().map(|f| f.path.as_path())
    }

    /// The session without what lies beside its rollouts, but for messages that wait: they bear on what is to be done.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.sidecars.retain(|sidecar| sidecar.role == Role::Queue);
        self
    }

    /// Size of its rollouts, in bytes, as the file system tells it now.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files.iter().filter_map(|f| f.path.metadata().ok()).map(|m| m.len()).sum()
    }
}

/// What was found below a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The sessions, by path.
    pub sessions: Vec<Session>,
    /// Files of these sessions that are not read.
    pub beside: Vec<PathBuf>,
    /// Files whose names say that they hold a session, and whose content does not.
    pub unrecognised: Vec<PathBuf>,
}

/// Whether the first bytes of a file are those of a rollout. Judged by content alone; of a compressed file by what is in it.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    if head.starts_with(&ZSTD) {
        let mut plain = Vec::new();
        // The first bytes of a compressed file end in the middle of it.
        let _ = Content::of(head).take(HEAD).read_to_end(&mut plain);
        return !plain.starts_with(&ZSTD) && recognises(&plain);
    }
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        match serde_json::from_str::<Line<'_>>(line) {
            Ok(line) if line.is_known() => return true,
            Ok(line) if line.form() == Form::None => return false,
            Ok(_) => {}
            // The header may be longer than what was read.
            Err(_) if lines.peek().is_none() => return begins_like_a_header(line),
            Err(_) => {}
        }
    }
    false
}

/// Whether a line that is not there to its end begins like a header in an envelope.
fn begins_like_a_header(line: &str) -> bool {
    let start: String = line.chars().filter(|c| !c.is_whitespace()).take(200).collect();
    start.starts_with("{\"timestamp\":")
        && start.contains("\"type\":\"session_meta\"")
        && start.contains("\"payload\":{")
}

/// Finds the sessions at `path`: a `CODEX_HOME`, its `sessions`, a directory below it, or one rollout.
///
/// # Errors
/// When `path`, or a directory below it, cannot be read. Of files only the beginning is read.
pub fn discover(path: &Path) -> io::Result<Discovery> {
    if !fs::metadata(path)?.is_dir() {
        return discover_file(path);
    }
    let mut files = Vec::new();
    files_below(path, &mut files)?;
    files.sort();
    let mut found = Discovery::default();
    let mut rollouts: Vec<(RolloutFile, First)> = Vec::new();
    for file in files.into_iter().filter(|f| is_transcript(f)) {
        // The plain file comes first.
        if let Some((plain, _)) = rollouts.last_mut().filter(|(plain, _)| is_twin(&file, &plain.path)) {
            plain.twin = Some(file);
            continue;
        }
        // What cannot be read is told when it is imported.
        let should_hold = head(&file).map_or(is_rollout(&file), |head| {
            recognises(&head) || head.iter().all(u8::is_ascii_whitespace) && is_rollout(&file)
        });
        if !should_hold {
            if is_rollout(&file) {
                found.unrecognised.push(file);
            }
            continue;
        }
        let mut first = First::of(&file).unwrap_or_default();
        first.id = first.id.or_else(|| thread_in_name(&file));
        let locator = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().into_owned();
        rollouts.push((RolloutFile { source: TRANSCRIPT.into(), path: file, locator, twin: None }, first));
    }
    found.sessions = sessions(rollouts);
    // What was read of a file is shared by all its sessions.
    let mut homes: BTreeMap<PathBuf, Vec<Sidecar>> = BTreeMap::new();
    for session in &mut found.sessions {
        let own = session.path().and_then(home_of).filter(|home| home.starts_with(path));
        let Some(home) = own.map(Path::to_path_buf) else { continue };
        let shared = homes.entry(home.clone()).or_insert_with(|| sidecars(&home, path));
        session.sidecars.clone_from(shared);
        session.sidecars.extend(session.id.as_deref().and_then(|id| lock(&home, path, id)));
        session.sidecars.sort_by_key(|sidecar| sidecar.role.source());
    }
    Ok(found)
}

/// A session whose rollout came from standard input, which `bytes` holds.
#[must_use]
pub fn session_from_stdin(bytes: File) -> Session {
    Session { stdin: Some(Arc::new(bytes)), ..Session::of(None, Vec::new()) }
}

/// Joins the files of each session, and the sessions of each family.
fn sessions(rollouts: Vec<(RolloutFile, First)>) -> Vec<Session> {
    let mut sessions: Vec<(Session, First)> = Vec::new();
    // A revert begins a file of the same thread that goes on from the thread itself.
    let (reverts, firsts): (Vec<_>, Vec<_>) = rollouts
        .into_iter()
        .partition(|(_, first)| first.id.is_some() && first.base.as_ref().map(|b| &b.thread_id) == first.id.as_ref());
    for (file, first) in firsts {
        let id = first.id.clone();
        sessions.push((Session::of(id, vec![file]), first));
    }
    for (mut file, first) in reverts {
        file.source = revert_source(&file.path);
        let folder = |s: &Session| s.path().and_then(Path::parent).map(Path::to_path_buf);
        // Another copy of a file is no further part of the session.
        let of_thread =
            |s: &&mut (Session, First)| s.0.id == first.id && s.0.files.iter().all(|other| other.source != file.source);
        let here = file.path.parent().map(Path::to_path_buf);
        match sessions.iter_mut().filter(of_thread).min_by_key(|(s, _)| folder(s) != here) {
            Some((session, _)) => session.files.push(file),
            None => sessions.push((Session::of(first.id.clone(), vec![file]), first)),
        }
    }
    let files: BTreeMap<String, Vec<RolloutFile>> =
        sessions.iter().filter_map(|(s, _)| Some((s.id.clone()?, s.files.clone()))).collect();
    let mut offspring: BTreeMap<String, BTreeSet<Offspring>> = BTreeMap::new();
    for (session, first) in &mut sessions {
        let base = first.base.as_ref().map(|b| &b.thread_id);
        let forked_from = base.or(first.forked_from.as_ref()).filter(|from| Some(*from) != session.id.as_ref());
        if let Some(files) = forked_from.and_then(|from| files.get(from)) {
            session.parent.clone_from(files);
        }
        let made_by = if first.is_agent { first.parent.as_ref() } else { forked_from };
        if let (Some(by), Some(id)) = (made_by, &session.id) {
            offspring.entry(by.clone()).or_default().insert(Offspring { id: id.clone(), is_fork: !first.is_agent });
        }
    }
    for (session, _) in &mut sessions {
        let own = session.id.as_ref().and_then(|id| offspring.remove(id));
        session.offspring = own.into_iter().flatten().collect();
    }
    sessions.into_iter().map(|(session, _)| session).collect()
}

/// One rollout, and nothing beside it.
fn discover_file(path: &Path) -> io::Result<Discovery> {
    let mut found = Discovery::default();
    if !recognises(&head(path)?) {
        found.unrecognised.push(path.into());
    }
    let first = First::of(path).unwrap_or_default();
    let id = first.id.clone().or_else(|| thread_in_name(path));
    let reverted = id.is_some() && first.base.as_ref().map(|b| &b.thread_id) == id.as_ref();
    let locator = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = if reverted { revert_source(path) } else { TRANSCRIPT.into() };
    if let Some(home) = home_of(path) {
        found.beside.extend(sidecars(home, home).into_iter().map(|s| s.path));
    }
    found.sessions.push(Session::of(id, vec![RolloutFile { path: path.into(), locator, source, twin: None }]));
    Ok(found)
}

/// The folders of a `CODEX_HOME` that hold rollouts.
const FOLDERS: [&str; 2] = ["sessions", "archived_sessions"];

/// The `CODEX_HOME` that a rollout lies in.
fn home_of(rollout: &Path) -> Option<&Path> {
    rollout.ancestors().find(|p| p.file_name().is_some_and(|n| FOLDERS.iter().any(|f| n == *f)))?.parent()
}

/// The files of a `CODEX_HOME` that hold something of sessions. `root` is what was imported.
fn sidecars(home: &Path, root: &Path) -> Vec<Sidecar> {
    let of = |role, path: PathBuf| {
        let locator = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        path.is_file().then(|| Sidecar::new(role, path, locator))
    };
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
    // The client numbers the forms of its databases; the others are of older clients.
    let newest = |name: &str| {
        let number = |path: &Path| -> Option<u64> {
            path.file_name()?.to_str()?.strip_prefix(name)?.strip_suffix(".sqlite")?.parse().ok()
        };
        entries(home).filter_map(|path| Some((number(&path)?, path))).max().map(|(_, path)| path)
    };
    let mut all = Vec::new();
    for role in Role::ALL {
        match role {
            Role::History => all.extend(of(role, home.join("history.jsonl"))),
            Role::Index => all.extend(of(role, home.join("session_index.jsonl"))),
            Role::Queue => all.extend(newest("queue_").and_then(|path| of(role, path))),
            Role::State => all.extend(newest("state_").and_then(|path| of(role, path))),
            Role::Lock => {}
        }
    }
    all
}

/// The lock of a thread.
fn lock(home: &Path, root: &Path, thread: &str) -> Option<Sidecar> {
    let path = home.join("thread-writer-locks").join(format!("{thread}.lock"));
    let locator = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
    (is_id(thread) && path.is_file()).then(|| Sidecar::new(Role::Lock, path, locator))
}

/// Name of the source of a file that a revert began: after the id that its name ends in.
fn revert_source(path: &Path) -> String {
    let stem = stem(path);
    let tail = stem.rsplit_once('_').map(|(_, tail)| tail).filter(|tail| is_id(tail));
    format!("revert/{}", tail.map_or_else(|| stem.clone(), str::to_owned))
}

/// The id of the thread in the name of a rollout.
pub(crate) fn thread_in_name(path: &Path) -> Option<String> {
    let stem = stem(path);
    let stem = match stem.rsplit_once('_') {
        Some((before, tail)) if is_id(tail) => before,
        _ => stem.as_str(),
    };
    let at = stem.len().checked_sub(36)?;
    stem.get(at..).filter(|id| is_id(id)).map(str::to_owned)
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    name.strip_suffix(".jsonl").unwrap_or(name).to_owned()
}

/// Whether a text is a UUID.
fn is_id(text: &str) -> bool {
    text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Whether a file is the compressed form of another one, by their names.
fn is_twin(file: &Path, plain: &Path) -> bool {
    file.extension().is_some_and(|e| e == "zst") && file.with_extension("") == plain
}

fn is_rollout(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("rollout-"))
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    fs::File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The files below a directory that can hold rollouts: of a `CODEX_HOME` those in its folders for them, else all. Links to
/// directories are not followed.
fn files_below(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let before = files.len();
    for folder in FOLDERS.map(|name| directory.join(name)).iter().filter(|folder| folder.is_dir()) {
        files_below(folder, files)?;
    }
    if files[before..].iter().any(|file| is_rollout(file)) {
        return Ok(());
    }
    files.truncate(before);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.symlink_metadata()?.is_dir() {
            files_below(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let a = "01a2272d-2378-7b93-b602-3c86f973e062";
        let b = "01a2272d-2733-79d1-9488-885cea957af4";
        let name = |n: String| thread_in_name(Path::new(&n));
        assert_eq!(name(format!("rollout-2026-11-29T12-00-00-{a}.jsonl")).as_deref(), Some(a));
        assert_eq!(name(format!("x/rollout-2026-11-29T12-00-00-{a}_{b}.jsonl.zst")).as_deref(), Some(a));
        assert_eq!(name("session.jsonl".into()), None);
        assert_eq!(revert_source(Path::new(&format!("rollout-{a}_{b}.jsonl"))), format!("revert/{b}"));
    }

    #[test]
    fn content_tells_a_rollout() {
        for yes in [
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"a"}}"#,
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"a","base_instructions":{"text":"cut"#,
            "{\"id\":\"a\",\"timestamp\":\"t\",\"instructions\":null}\n{\"record_type\":\"state\"}",
            "damaged {\n{\"timestamp\":\"t\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\"}}\n",
        ] {
            assert!(recognises(yes.as_bytes()), "{yes}");
        }
        for no in [
            r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"b","message":{}}"#,
            r#"{"session_id":"a","ts":1,"text":"\"type\":\"session_meta\",\"payload\":{"}"#,
            r#"{"type":"message","id":null,"role":"user"}"#,
            "",
        ] {
            assert!(!recognises(no.as_bytes()), "{no}");
        }
    }
}
