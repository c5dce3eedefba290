//! What each kind of entry becomes: the table `kinds.toml`, the chapter of the specification that shows it, and the importer
//! say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::events::Data;
use palog::reader::{Item, Reader};
use palog_openclaw::{Directory, Options, pi};
use serde::Deserialize;
use serde_json::{Value, json};

const BEGIN: &str = "<!-- generated: kinds -->\n";
const END: &str = "<!-- end -->\n";

/// `kinds.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    status: Status,
    events: Vec<String>,
    also: Option<String>,
    seen: String,
    note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Mapped,
    Kept,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table() -> Vec<Kind> {
    let text = fs::read_to_string(root().join("adapters/openclaw/kinds.toml")).expect("the table is there");
    toml::from_str::<Table>(&text).expect("the table has its form").kind
}

/// The kind of an entry, by its own members.
fn kind(record: &str) -> Option<String> {
    let record: Value = serde_json::from_str(record).ok()?;
    let main = record["type"].as_str()?;
    Some(match record["message"]["role"].as_str() {
        Some(role) if main == "message" => format!("message/{role}"),
        _ => main.to_owned(),
    })
}

/// The types of the events that came out, by the kind of their entries.
#[derive(Default)]
struct Outcome {
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Outcome {
    /// Imports what lies at `path`.
    fn learn(&mut self, path: &Path) {
        for session in pi::discover(path).expect("the input can be read").sessions {
            let folder = tempfile::tempdir().expect("a folder");
            let mut target = Directory::new(folder.path());
            let report = pi::import(&session, &mut target, &Options::default()).expect("an import");
            report.logs.iter().filter_map(|log| log.path.as_deref()).for_each(|log| self.learn_log(log));
        }
    }

    fn learn_log(&mut self, log: &Path) {
        let source = fs::read(sibling(log, "sources").join("transcript")).expect("the source is kept");
        let bytes = fs::read(log).expect("the log can be read");
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(item) = reader.next().expect("bytes in memory") {
            let Item::Event(event, _) = item else { panic!("{}: a line is no event", log.display()) };
            for src in &event.src {
                let (Some(at), Some(len)) = (src.at, src.len) else { continue };
                let record = String::from_utf8_lossy(&source[at as usize..(at + len) as usize]);
                let Some(kind) = kind(&record) else { continue };
                self.types.entry(kind).or_default().insert(event.kind.to_string());
            }
        }
    }
}

fn message(role: &str, mut members: Value) -> Value {
    members["role"] = json!(role);
    json!({"type": "message", "message": members})
}

/// Each kind in all that it can become.
fn made_up() -> Vec<Value> {
    let call = |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
    let denied = json!({"error": "exec denied: x"});
    vec![
        json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"}),
        json!({"type": "session", "version": 3, "id": "other", "cwd": "/w"}),
        message("user", json!({"content": "Go."})),
        message("assistant", json!({"content": [call("a", "bash"), call("b", "exec")], "stopReason": "toolUse"})),
        message("toolResult", json!({"toolCallId": "a", "content": "x", "isError": false})),
        message("toolResult", json!({"toolCallId": "b", "content": "x", "isError": true, "details": denied})),
        message("toolResult", json!({"content": "x"})),
        message("assistant", json!({"content": [], "stopReason": "aborted"})),
        message("bashExecution", json!({"command": "ls", "output": "x"})),
        message("bashExecution", json!({"output": "x"})),
        message("custom", json!({"content": "x"})),
        message("hookMessage", json!({"content": "x"})),
        message("branchSummary", json!({"summary": "x"})),
        message("compactionSummary", json!({"summary": "x"})),
        json!({"type": "model_change", "modelId": "m"}),
        json!({"type": "model_change"}),
        json!({"type": "compaction", "summary": "x", "firstKeptEntryId": "e2"}),
        json!({"type": "branch_summary", "summary": "x"}),
        json!({"type": "custom_message", "content": "x"}),
        json!({"type": "session_info", "name": "x"}),
        json!({"type": "session_info"}),
        json!({"type": "title", "title": "x"}),
        json!({"type": "title"}),
        json!({"type": "thinking_level_change"}),
        json!({"type": "custom"}),
        json!({"type": "label"}),
        json!({"type": "reset"}),
        json!({"type": "mode_change"}),
        json!({"type": "service_tier_change"}),
        json!({"type": "session_init"}),
    ]
}

/// A file of entries that hang under one another.
fn file_of(entries: Vec<Value>) -> String {
    let mut text = String::new();
    let mut last = Value::Null;
    for (n, mut entry) in entries.into_iter().enumerate() {
        entry["timestamp"] = json!(format!("2026-03-03T10:00:{n:02}.000Z"));
        if entry["type"] != "session" {
            entry["id"] = json!(format!("e{n}"));
            entry["parentId"] = std::mem::replace(&mut last, entry["id"].clone());
        }
        writeln!(text, "{entry}").expect("a string takes all");
    }
    text
}

#[test]
fn entries_become_what_the_table_says() {
    let kinds = table();
    let mut outcome = Outcome::default();
    outcome.learn(&root().join("conformance-fixtures/sources/pi"));
    let genuine: BTreeSet<String> = outcome.types.keys().cloned().collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    fs::write(&path, file_of(made_up())).expect("it is written");
    outcome.learn(&path);
    let mut wrong = Vec::new();
    for kind in &kinds {
        let Some(types) = outcome.types.get(&kind.name) else {
            wrong.push(format!("{}: no entry of this kind was imported", kind.name));
            continue;
        };
        let (kept, mapped): (BTreeSet<&str>, BTreeSet<&str>) =
            types.iter().map(String::as_str).partition(|t| t.starts_with("x."));
        let allowed: BTreeSet<&str> = kind.events.iter().map(String::as_str).collect();
        if mapped != allowed {
            wrong.push(format!("{}: {mapped:?} came out, the table says {allowed:?}", kind.name));
        }
        let may_be_kept = kind.status == Status::Kept || kind.also.is_some();
        let kept_as = format!("x.dev.pi/{}", kind.name);
        if kept.iter().any(|t| *t != kept_as) || kept.is_empty() == may_be_kept {
            wrong.push(format!(
                "{}: {kept:?} came out, the table says {:?}, also {:?}",
                kind.name, kind.status, kind.also
            ));
        }
    }
    for kind in genuine.iter().filter(|genuine| kinds.iter().all(|k| k.name != **genuine)) {
        wrong.push(format!("{kind}: not in the table, and {:?} came out", outcome.types[kind]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_in_order() {
    let kinds = table();
    for (at, kind) in kinds.iter().enumerate() {
        assert!(kinds[..at].iter().all(|other| other.name != kind.name), "{} stands twice", kind.name);
        assert_eq!(kind.events.is_empty(), kind.status == Status::Kept, "{}", kind.name);
        assert!(kind.status == Status::Mapped || (kind.also.is_none() && !kind.note.is_empty()), "{}", kind.name);
        for event in &kind.events {
            assert!(Data::NAMES.contains(&event.as_str()), "{}: {event}", kind.name);
        }
    }
}

/// The table as the specification shows it.
fn rendered(kinds: &[Kind]) -> String {
    let mut text = String::from(
        "| kind | is | events | seen | not carried; of kept kinds, what it holds |\n|---|---|---|---|---|\n",
    );
    for kind in kinds {
        let is = match (kind.status, &kind.also) {
            (Status::Kept, _) => "kept".into(),
            (Status::Mapped, None) => "mapped".into(),
            (Status::Mapped, Some(also)) => format!("mapped; kept if {also}"),
        };
        let events: Vec<String> = kind.events.iter().map(|e| format!("`{e}`")).collect();
        let seen = if kind.seen == "source" { "† source of a client" } else { &kind.seen };
        writeln!(text, "| `{}` | {is} | {} | {seen} | {} |", kind.name, events.join(", "), kind.note)
            .expect("a string takes all");
    }
    text
}

#[test]
fn the_specification_shows_the_table() {
    let path = root().join("spec/sources/pi.md");
    let text = fs::read_to_string(&path).expect("the chapter is there");
    let wanted = rendered(&table());
    let (before, rest) = text.split_once(BEGIN).expect("the chapter has a place for the table");
    let (shown, after) = rest.split_once(END).expect("the place has an end");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("it is written");
        return;
    }
    assert!(shown == wanted, "the table is out of date: PALOG_UPDATE=1 cargo test -p palog-openclaw --test kinds");
}
