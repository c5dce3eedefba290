//! What belongs to which session, found anew from the vendor's layout and without the importer's help.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use palog_conformance::{Case, json};

/// Files that have to lie in the kept sources of a session or subagent, with their bytes.
pub(crate) type Owned = BTreeMap<String, Vec<(PathBuf, Vec<u8>)>>;

/// Whether the source of a case is rows or documents that change, and no files that only grow: `rows.rs` has the tests of these.
pub(crate) fn is_of_rows(case: &Case) -> bool {
    let Some(source) = case.source() else { return false };
    let is_database = |path: &PathBuf| path.extension().is_some_and(|e| e == "sqlite");
    matches!(source.format.as_str(), "opencode" | "hermes")
        || is_database(&source.path)
        || files(&source.path).iter().any(is_database)
}

/// All files below a folder, by path.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The files of each session and subagent in `source`: a transcript, a project's folder or a configuration folder of either
/// vendor.
pub(crate) fn owned(source: &Path) -> Owned {
    let rollouts = rollouts(source);
    if rollouts.is_empty() { of_claude_code(source) } else { rollouts }
}

/// Rollouts of Codex, and what its other files hold of each session.
fn rollouts(source: &Path) -> Owned {
    let mut owned = Owned::new();
    let all = if source.is_file() { vec![source.to_path_buf()] } else { files(source) };
    for path in all.iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
        let bytes = read(path);
        if let Some(thread) = thread_of(&bytes) {
            owned.entry(thread).or_default().push((path.clone(), bytes));
        }
    }
    for (name, member) in [("history.jsonl", "/session_id"), ("session_index.jsonl", "/id")] {
        let Some(path) =
            all.iter().find(|path| path.parent() == Some(source) && path.file_name().is_some_and(|n| n == name))
        else {
            continue;
        };
        let bytes = read(path);
        for (thread, own) in &mut owned {
            let is_own = |line: &&[u8]| {
                json::value(&String::from_utf8_lossy(line)).is_ok_and(|v| json::text(&v, member) == Some(thread))
            };
            let lines: Vec<u8> = bytes.split_inclusive(|b| *b == b'\n').filter(is_own).flatten().copied().collect();
            if !lines.is_empty() {
                own.push((path.clone(), lines));
            }
        }
    }
    owned
}

/// The thread that the header in the first line of a rollout names.
fn thread_of(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|b| *b == b'\n').next()?;
    let header = json::value(&String::from_utf8_lossy(line)).ok()?;
    let id = match json::text(&header, "/type") {
        Some("session_meta") => json::text(&header, "/payload/id"),
        None if !header["timestamp"].is_null() => json::text(&header, "/id"),
        _ => None,
    };
    id.map(str::to_owned)
}

fn of_claude_code(source: &Path) -> Owned {
    let mut owned = Owned::new();
    let mut own =
        |id: &str, path: &Path, bytes: Vec<u8>| owned.entry(id.to_owned()).or_default().push((path.into(), bytes));
    if source.is_file() {
        let bytes = read(source);
        own(&session_of(&bytes), source, bytes);
        return owned;
    }
    let projects = source.join("projects");
    let transcripts: Vec<PathBuf> = if projects.is_dir() {
        let within = |path: &PathBuf| path.strip_prefix(&projects).is_ok_and(|p| p.components().count() == 2);
        files(&projects).into_iter().filter(within).collect()
    } else {
        files(source).into_iter().filter(|path| path.parent() == Some(source)).collect()
    };
    for path in transcripts.iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
        let session = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        own(&session, path, read(path));
        for beside in files(&path.with_extension("")) {
            let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let agent =
                name.strip_prefix("agent-").map(|n| n.trim_end_matches(".jsonl").trim_end_matches(".meta.json"));
            own(agent.unwrap_or(&session), &beside, read(&beside));
            // What says which call made the agent is told by both logs.
            if agent.is_some() && name.ends_with(".meta.json") {
                own(&session, &beside, read(&beside));
            }
        }
        for folder in ["tasks", "file-history"] {
            files(&source.join(folder).join(&session)).iter().for_each(|file| own(&session, file, read(file)));
        }
        for status in files(&source.join("sessions")) {
            if session_of(&read(&status)) == session {
                own(&session, &status, read(&status));
            }
        }
        let history = source.join("history.jsonl");
        if history.is_file() {
            let bytes = read(&history);
            let lines: Vec<u8> = bytes
                .split_inclusive(|b| *b == b'\n')
                .filter(|line| session_of(line) == session)
                .flatten()
                .copied()
                .collect();
            if !lines.is_empty() {
                own(&session, &history, lines);
            }
        }
    }
    owned
}

/// The transcripts among the files: of sessions and of subagents.
pub(crate) fn transcripts(source: &Path) -> Vec<PathBuf> {
    let all = owned(source).into_values().flatten().map(|(path, _)| path);
    let is_transcript = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "jsonl")
            && path.file_name().is_some_and(|n| n != "history.jsonl" && n != "session_index.jsonl")
    };
    all.filter(is_transcript).collect()
}

/// The name that the client gives to a transcript: that of its session, or of its subagent.
pub(crate) fn name_of(transcript: &Path, bytes: &[u8]) -> String {
    if let Some(thread) = thread_of(bytes) {
        return format!("rollout-2026-01-01T00-00-00-{thread}.jsonl");
    }
    let name = transcript.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("agent-") { name.into_owned() } else { format!("{}.jsonl", session_of(bytes)) }
}

/// The session, or of a subagent's transcript the agent, that the first record which tells it names.
fn session_of(bytes: &[u8]) -> String {
    let records = bytes.split(|b| *b == b'\n').filter_map(|line| json::value(&String::from_utf8_lossy(line)).ok());
    let mut session = String::new();
    for record in records {
        // The header of pi.
        if session.is_empty() && record["type"] == "session" {
            return json::text(&record, "/id").unwrap_or_default().into();
        }
        if let Some(agent) = json::text(&record, "/agentId").filter(|_| record["isSidechain"] == true) {
            return agent.into();
        }
        if session.is_empty() {
            session = json::text(&record, "/sessionId").unwrap_or_default().into();
        }
        if !record["uuid"].is_null() && !session.is_empty() {
            break;
        }
    }
    session
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
