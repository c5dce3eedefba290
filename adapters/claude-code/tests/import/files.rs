//! Files beside a transcript: each is kept under a name of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::diagnostic::Code;
use palog_claude_code::{Directory, ImportError, Options, Report, discover, import, list, recognises};
use serde_json::{Value, json};

use crate::session::{Imported, SESSION, Session, count};

fn session() -> Session {
    Session::new().prompt("Go.").says("m1", Some("end_turn"))
}

/// A path in the folder of the session.
fn beside(path: &str) -> String {
    format!("projects/p/{SESSION}/{path}")
}

/// The transcript of a subagent.
fn agent(id: &str, text: &str) -> String {
    let record = json!({"type": "user", "isSidechain": true, "agentId": id, "uuid": format!("{id}-1"), "parentUuid": null,
        "sessionId": SESSION, "message": {"role": "user", "content": text}});
    format!("{record}\n")
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

/// The contents of all sources that the logs keep.
fn kept(imported: &Imported) -> BTreeSet<Vec<u8>> {
    let of_log =
        |log: &palog_claude_code::LogReport| files_below(&sibling(log.path.as_deref().expect("a path"), "sources"));
    imported.report.logs.iter().flat_map(of_log).map(|path| fs::read(path).expect("it can be read")).collect()
}

/// Every file of the session is kept, and told by an event that names it.
fn hold_all_kept(imported: &Imported, contents: &[&str]) {
    let kept = kept(imported);
    for content in contents {
        assert!(kept.contains(content.as_bytes()), "{content}");
    }
    let opened: Vec<&str> = imported.of_type("source.opened").filter_map(|e| e["data"]["source"].as_str()).collect();
    let names: BTreeSet<&str> = opened.iter().copied().collect();
    assert_eq!(opened.len(), names.len(), "a source is opened twice: {opened:?}");
    for name in names {
        assert!(imported.sources.join(name).is_file(), "{name}");
    }
}

#[test]
fn files_that_are_named_like_sources_replace_none() {
    let names = [
        "transcript",
        "history",
        "log",
        "status/213",
        "tasks/1.json",
        "file-history/1",
        "agent/a1",
        "agent/a1.meta",
        "fork/x",
        "child/x",
        "files/x",
        "x",
        "meta/x",
        "tool-results/x",
        "%78",
        "subagents/agent-a1.meta",
        "subagents/agent-a1.meta.jsonl",
    ];
    let contents: Vec<String> = names.iter().map(|name| format!("content of {name}")).collect();
    let mut session = session();
    for (name, content) in names.iter().zip(&contents) {
        session = session.file(&beside(name), content);
    }
    let others = [
        (beside("subagents/agent-a1.jsonl"), agent("a1", "Look.")),
        (beside("subagents/agent-a1.meta.json"), json!({"toolUseId": "c1"}).to_string()),
        ("sessions/213.json".to_owned(), json!({"sessionId": SESSION, "status": "idle"}).to_string()),
        ("sessions/a/213.json".to_owned(), json!({"sessionId": SESSION, "status": "busy"}).to_string()),
        (format!("tasks/{SESSION}/1.json"), json!({"task": 1}).to_string()),
        (format!("file-history/{SESSION}/1"), "an old file".to_owned()),
        ("history.jsonl".to_owned(), json!({"sessionId": SESSION, "display": "Go."}).to_string() + "\n"),
    ];
    for (path, content) in &others {
        session = session.file(path, content);
    }
    let imported = session.import();
    let all: Vec<&str> = contents.iter().chain(others.iter().map(|(_, content)| content)).map(String::as_str).collect();
    hold_all_kept(&imported, &all);
}

#[test]
fn names_that_are_no_text_stay_apart() {
    let folder = |session: &Session| session.root.path().join(beside("tool-results"));
    let session = session().file(&beside("tool-results/%FF"), "percent");
    let long = |last: u8| [&[0xff_u8; 200][..], &[last]].concat();
    for (name, content) in [
        (vec![b'a', 0xff], "one"),
        (vec![b'a', 0xfe], "two"),
        (vec![0xff], "three"),
        (long(0xfd), "four"),
        (long(0xfc), "five"),
    ] {
        fs::write(folder(&session).join(OsStr::from_bytes(&name)), content).expect("it can be written");
    }
    hold_all_kept(&session.import(), &["percent", "one", "two", "three", "four", "five"]);
}

#[test]
fn an_agent_that_stands_in_several_places_has_a_log_for_each() {
    let inline = json!({"type": "user", "isSidechain": true, "agentId": "a1", "message": {"role": "user", "content": "Inside."}});
    let session = session()
        .record(inline)
        .file(&beside("subagents/agent-a1.jsonl"), agent("a1", "In a file."))
        .file(&beside("other/agent-a1.jsonl"), agent("a1", "In another file."));
    let imported = session.import();
    assert_eq!(imported.report.logs.len(), 4);
    let paths: BTreeSet<&Path> = imported.report.logs.iter().filter_map(|log| log.path.as_deref()).collect();
    assert_eq!(paths.len(), 4);
    let texts: String = paths.iter().map(|path| fs::read_to_string(path).expect("a log")).collect();
    for text in ["Inside.", "In a file.", "In another file."] {
        assert!(texts.contains(text), "{text}");
    }
    assert_eq!(imported.count(Code::SessionRepeated), 2);
    assert_eq!(imported.of_type("child.spawned").count(), 1, "it is one child");
}

/// Imports everything at a path into one folder.
fn import_all(path: &Path, into: &Path) -> Result<Report, ImportError> {
    let mut target = Directory::new(into);
    let mut all = Report::default();
    for session in &discover(path).expect("it can be read").sessions {
        all.extend(import(session, &mut target, &Options::default())?);
    }
    Ok(all)
}

#[test]
fn a_session_that_stands_in_two_files_has_two_logs() {
    let session = session();
    let transcript = fs::read(session.write()).expect("a transcript");
    let session = session
        .file(&format!("projects/q/{SESSION}.jsonl"), &transcript)
        .file(&format!("projects/q/{SESSION}/subagents/agent-a1.jsonl"), agent("a1", "Look."))
        .file(&beside("subagents/agent-a1.jsonl"), agent("a1", "Look."))
        .file(&format!("projects/p/{SESSION} copy.jsonl"), &transcript);
    let into = tempfile::tempdir().expect("a folder");
    let report = import_all(session.root.path(), into.path()).expect("an import");
    let names: BTreeSet<String> =
        report.logs.iter().filter_map(|log| log.path.as_ref()?.file_name()?.to_str().map(str::to_owned)).collect();
    let expected = [
        format!("{SESSION}.palog.jsonl"),
        format!("{SESSION}.2.palog.jsonl"),
        format!("{SESSION}.3.palog.jsonl"),
        format!("{SESSION}.agent-a1.palog.jsonl"),
        format!("{SESSION}.agent-a1.2.palog.jsonl"),
    ];
    assert_eq!(names, expected.into());
    assert_eq!(count(&report.diagnostics, Code::SessionRepeated), 3);
    let again = import_all(session.root.path(), into.path());
    assert!(matches!(again, Err(ImportError::Exists { .. })), "what was there before is never replaced");
}

#[test]
fn a_file_of_an_agent_that_holds_no_record_is_kept_as_a_file() {
    let session = session().file(&beside("subagents/agent-a1.jsonl"), "no record\n");
    let imported = session.import();
    hold_all_kept(&imported, &["no record\n"]);
    let file = |e: &&Value| e["data"]["kind"] == "file" && e["data"]["source"] == "files/subagents/agent-a1.jsonl";
    assert_eq!(imported.of_type("note.added").filter(file).count(), 1);
}

/// Every byte of the kept history is a record that an event points to, damage that a note tells of, or white space.
fn hold_history_told(imported: &Imported) -> Vec<u8> {
    let kept = fs::read(imported.sources.join("history")).expect("it is kept");
    let mut ranges: BTreeSet<(u64, u64)> = BTreeSet::new();
    for event in &imported.events {
        let places = event["src"].as_array().into_iter().flatten().chain([&event["data"]]);
        for place in places.filter(|place| place["source"] == "history") {
            if let (Some(at), Some(len)) = (place["at"].as_u64(), place["len"].as_u64()) {
                ranges.insert((at, len));
            }
        }
    }
    let mut end = 0;
    for (at, len) in ranges.into_iter().chain([(kept.len() as u64, 0)]) {
        assert!(at >= end, "ranges overlap at {at}");
        let gap = &kept[end as usize..at as usize];
        assert!(gap.iter().all(u8::is_ascii_whitespace), "nobody tells of {:?}", String::from_utf8_lossy(gap));
        end = at + len;
    }
    kept
}

#[test]
fn damaged_lines_of_a_shared_file_are_told_by_the_session_that_they_belong_to() {
    const OTHER: &str = "5e550000-0000-4000-8000-000000000002";
    let own = |text: &str| json!({"display": text, "sessionId": SESSION}).to_string().into_bytes();
    let other = || json!({"display": "x", "sessionId": OTHER}).to_string().into_bytes();
    let no_text = [b"{\"sessionId\":\"".as_slice(), SESSION.as_bytes(), b"\",\"display\":\"\xff\"}"].concat();
    let torn = |text: &str| own(text)[..own(text).len() - 2].to_vec();
    let lines: Vec<Vec<u8>> = vec![
        own("one"),
        other(),
        no_text.clone(),
        [own("two"), own("three")].concat(),
        [own("four"), other()].concat(),
        torn("five"),
        b"nobody's".to_vec(),
        vec![0; 9],
        other(),
        b"behind another session".to_vec(),
        json!({"display": "of an older version"}).to_string().into_bytes(),
        [b"  ".as_slice(), &own("six"), b"  \r"].concat(),
    ];
    let history = [lines.join(&b'\n'), b"\n".to_vec(), torn("seven")].concat();
    let imported = session().file("history.jsonl", history).import();
    let kept = hold_history_told(&imported);
    let with = |line: &[u8]| [line, b"\n"].concat();
    let selected = [0, 2, 3, 4, 5, 6, 7, 11].map(|n: usize| with(&lines[n])).concat();
    assert_eq!(kept, [selected, torn("seven")].concat());
    let records: Vec<&Value> = imported.of_type("x.com.anthropic.claude-code/history").collect();
    let displays: Vec<&str> = records.iter().filter_map(|e| e["data"]["record"]["display"].as_str()).collect();
    assert_eq!(displays, ["one", "\u{fffd}", "two", "three", "four", "x", "six"]);
    let counted = [
        Code::InvalidUtf8,
        Code::ConcatenatedRecords,
        Code::ForeignRecord,
        Code::Fragment,
        Code::NulRun,
        Code::TornTail,
    ];
    assert_eq!(counted.map(|code| imported.count(code)), [1, 2, 1, 2, 1, 1]);
    let fragment = imported.report.diagnostics.groups().iter().find(|g| g.code == Code::Fragment).expect("one");
    let place = &fragment.first[0].place;
    let at = lines[..5].iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    assert_eq!((place.line, place.offset), (Some(6), Some(at)), "the place is that in the file");
}

#[test]
fn links_and_pipes_beside_a_transcript_are_told_and_not_followed() {
    let session = session().file(&beside("tool-results/b1.txt"), "own").file("elsewhere/secret.txt", "theirs");
    let folder = session.root.path().join(beside(""));
    let elsewhere = session.root.path().join("elsewhere");
    std::os::unix::fs::symlink(elsewhere.join("secret.txt"), folder.join("tool-results/b2.txt")).expect("a link");
    std::os::unix::fs::symlink(&elsewhere, folder.join("subagents")).expect("a link");
    std::os::unix::fs::symlink("nowhere", folder.join("agent-a1.jsonl")).expect("a link");
    assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo runs").success());
    let tasks = session.root.path().join("tasks");
    fs::create_dir_all(&tasks).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, tasks.join(SESSION)).expect("a link");
    let imported = session.import();
    let kept = kept(&imported);
    assert!(kept.contains(b"own".as_slice()) && !kept.contains(b"theirs".as_slice()));
    assert_eq!(imported.count(Code::NotFollowed), 5);
    assert_eq!(imported.report.logs.len(), 1);
}

#[test]
fn a_log_that_lies_beside_transcripts_is_none() {
    let session = session();
    let imported = session.import();
    let log = fs::read(imported.folder.path().join(format!("{SESSION}.palog.jsonl"))).expect("a log");
    assert!(!recognises(&log));
    let session = session.file(&format!("projects/p/{SESSION}.palog.jsonl"), &log).file("projects/p/x.jsonl", &log);
    let found = discover(session.root.path()).expect("it can be read");
    let listed = list(session.root.path()).expect("it can be read");
    let other = session.root.path().join("projects/p/x.jsonl");
    assert_eq!((found.sessions.len(), found.unrecognised), (1, vec![other.clone()]));
    assert_eq!((listed.sessions.len(), listed.unrecognised), (1, vec![other]));
}
