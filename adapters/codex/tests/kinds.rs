//! What each kind of record becomes: the table `kinds.toml`, the chapter of the specification that shows it, and the importer
//! say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::events::Data;
use palog::reader::{Item, Reader};
use palog_codex::{Directory, Options, discover, import};
use serde::Deserialize;
use serde_json::{Value, json};

const VENDOR: &str = "x.com.openai.codex/";
const SESSION: &str = "019c0000-0000-7000-8000-000000000001";
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
    let text = fs::read_to_string(root().join("adapters/codex/kinds.toml")).expect("the table is there");
    toml::from_str::<Table>(&text).expect("the table has its form").kind
}

/// The kind of a record, by its own members.
fn kind(record: &str) -> Option<String> {
    let record: Value = serde_json::from_str(record).ok()?;
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str);
    if let Some(mark) = text("/record_type") {
        return Some(mark.to_owned());
    }
    let Some(main) = text("/type") else { return Some("header".into()) };
    Some(match (text("/payload/type"), text("/payload/item/type")) {
        (Some(sub), Some(item)) => format!("{main}/{sub}/{item}"),
        (Some(sub), None) => format!("{main}/{sub}"),
        (None, _) => main.to_owned(),
    })
}

/// The types of the events that came out, by the kind of their records.
#[derive(Default)]
struct Outcome {
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Outcome {
    /// Imports what lies at `path`.
    fn learn(&mut self, path: &Path) {
        let found = discover(path).expect("the input can be read");
        for session in
            found.sessions.iter().filter(|s| s.path().is_none_or(|p| !found.unrecognised.contains(&p.to_path_buf())))
        {
            let folder = tempfile::tempdir().expect("a folder");
            let mut target = Directory::new(folder.path());
            let report = import(session, &mut target, &Options::default()).expect("an import");
            report.logs.iter().filter_map(|log| log.path.as_deref()).for_each(|log| self.learn_log(log));
        }
    }

    fn learn_log(&mut self, log: &Path) {
        let sources = sibling(log, "sources");
        let bytes = fs::read(log).expect("the log can be read");
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(item) = reader.next().expect("bytes in memory") {
            let Item::Event(event, _) = item else { panic!("{}: a line is no event", log.display()) };
            if event.kind.as_str() == format!("{VENDOR}unexpected") {
                continue;
            }
            for src in &event.src {
                let name = src.source.as_str();
                let is_rollout = name == "transcript" || name.starts_with("revert/");
                let (true, Some(at), Some(len)) = (is_rollout, src.at, src.len) else { continue };
                let source = fs::read(sources.join(name)).expect("the source is kept");
                let record = String::from_utf8_lossy(&source[at as usize..(at + len) as usize]);
                let kind = kind(&record).expect("an event comes from a record");
                self.types.entry(kind).or_default().insert(event.kind.to_string());
            }
        }
    }
}

/// Every input among the fixtures.
fn fixtures(outcome: &mut Outcome) {
    let sources = root().join("conformance-fixtures/sources");
    for scenario in entries(&sources.join("codex")) {
        for input in entries(&scenario) {
            let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if input.is_dir() || name == "after_kill.jsonl" || name == "session.jsonl" {
                outcome.learn(&input);
            }
        }
    }
    for fault in entries(&sources.join("faults")) {
        outcome.learn(&fault);
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|e| e.expect("an entry").path()).collect(),
        Err(_) => Vec::new(),
    };
    all.sort();
    all
}

fn line(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-03-03T10:00:00.000Z", "type": kind, "payload": payload})
}

fn event(kind: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    line("event_msg", members)
}

fn item(kind: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    line("response_item", members)
}

fn done(kind: &str, id: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    members["id"] = json!(id);
    event("item_completed", json!({"item": members}))
}

fn header(mode: &str) -> Value {
    line("session_meta", json!({"id": SESSION, "cwd": "/w", "cli_version": "1", "history_mode": mode}))
}

fn say(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item("message", json!({"role": role, "content": [{"type": kind, "text": text}]}))
}

fn call(id: &str, name: &str) -> Value {
    item("function_call", json!({"call_id": id, "name": name, "arguments": "{}"}))
}

/// A tool that a record of what ran fits.
fn tool(kind: &str) -> &'static str {
    match kind {
        "CommandExecution" | "exec_command_end" => "exec_command",
        "FileChange" | "patch_apply_end" => "apply_patch",
        "CollabAgentToolCall" | "SubAgentActivity" => "spawn_agent",
        _ => "lookup",
    }
}

/// What nobody has seen begin a turn, or say nothing: each kind in all that it can become.
fn made_up() -> Vec<Vec<Value>> {
    let start = |n: u32| event("task_started", json!({"turn_id": format!("t{n}")}));
    let mut all = Vec::new();
    // Turns that nobody prompted, each begun by another kind.
    for (n, first) in [
        say("assistant", "I go on."),
        item("reasoning", json!({"summary": [], "encrypted_content": "x"})),
        call("c", "exec_command"),
        item("custom_tool_call", json!({"call_id": "c", "name": "apply_patch", "input": "x"})),
        item("local_shell_call", json!({"call_id": "c", "action": {"type": "exec"}})),
        item("compaction", json!({"encrypted_content": "x"})),
        item("web_search_call", json!({"status": "completed"})),
        item("tool_search_call", json!({"arguments": {}})),
        item("agent_message", json!({"author": "a", "content": []})),
    ]
    .into_iter()
    .enumerate()
    {
        let n = n as u32;
        all.push(vec![
            header("legacy"),
            start(n),
            first,
            event("turn_aborted", json!({"turn_id": format!("t{n}")})),
            event("turn_aborted", json!({"turn_id": "none"})),
        ]);
    }
    all.push(vec![
        line("session_meta", json!({"id": SESSION})),
        say("user", "Go."),
        say("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        item("tool_search_output", json!({"tools": []})),
        item("ghost_snapshot", json!({})),
        event("thread_rolled_back", json!({"num_turns": 1})),
        event("thread_rolled_back", json!({"num_turns": 1})),
        event("thread_name_updated", json!({"thread_name": "A name"})),
        event("collab_agent_spawn_end", json!({"call_id": "s", "new_thread_id": "child"})),
        line("retained_context", json!({"type": "verified_answer", "call_id": "nobody", "questions": []})),
        line("turn_context", json!({})),
        event("thread_settings_applied", json!({"thread_settings": {"model": "m"}})),
        event("thread_settings_applied", json!({"thread_settings": {"model": "m"}})),
    ]);
    // Ends of every kind.
    let mut ends = vec![header("paginated")];
    for (n, end) in [
        ("CommandExecution", json!({"status": "declined"})),
        ("CommandExecution", json!({"status": "in_progress"})),
        ("FileChange", json!({"status": "declined"})),
        ("FileChange", json!({"status": "in_progress"})),
        ("McpToolCall", json!({"status": "in_progress"})),
        ("DynamicToolCall", json!({"status": "in_progress"})),
        ("CollabAgentToolCall", json!({"status": "in_progress"})),
        ("SubAgentActivity", json!({"kind": "ended"})),
    ]
    .into_iter()
    .enumerate()
    {
        ends.push(call(&format!("d{n}"), tool(end.0)));
        ends.push(done(end.0, &format!("d{n}"), end.1));
    }
    for kind in ["EnteredReviewMode", "ExitedReviewMode"] {
        ends.push(done(kind, "r", json!({})));
    }
    for (n, (kind, open, end)) in [
        ("exec_command_end", json!({}), json!({"exit_code": 0, "aggregated_output": "x"})),
        ("patch_apply_end", json!({}), json!({"success": true})),
        ("patch_apply_end", json!({}), json!({"status": "declined"})),
        ("mcp_tool_call_end", json!({}), json!({"result": {"Ok": {"content": []}}})),
        ("dynamic_tool_call_response", json!({}), json!({"success": false})),
    ]
    .into_iter()
    .enumerate()
    {
        for (part, mut members) in [open, end].into_iter().enumerate() {
            let id = format!("e{n}-{part}");
            ends.push(call(&id, tool(kind)));
            members["call_id"] = json!(id);
            ends.push(event(kind, members));
        }
    }
    for kind in [
        "context_compacted",
        "web_search_end",
        "sub_agent_activity",
        "entered_review_mode",
        "exited_review_mode",
        "guardian_assessment",
        "image_generation_end",
        "thread_goal_updated",
        "undo_completed",
        "collab_waiting_end",
        "collab_close_end",
    ] {
        ends.push(event(kind, json!({})));
    }
    all.push(ends);
    all.push(vec![json!({"id": SESSION, "timestamp": "2025-08-20T08:00:00.000Z", "instructions": null}), json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>\nCurrent working directory: /w\n</environment_context>"}]}), json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]})]);
    all
}

/// A session that was reverted: its second file goes on from itself.
fn reverted(outcome: &mut Outcome) {
    let numbered = |from: u64, lines: Vec<Value>| -> String {
        lines.into_iter().enumerate().fold(String::new(), |text, (n, mut line)| {
            line["ordinal"] = json!(from + n as u64);
            text + &line.to_string() + "\n"
        })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let first = numbered(0, vec![header("paginated"), say("user", "One."), say("assistant", "Done.")]);
    let base = json!({"thread_id": SESSION, "end_ordinal_exclusive": 2, "end_byte_offset": 1});
    let second = numbered(
        2,
        vec![
            line("session_meta", json!({"id": SESSION, "history_mode": "paginated", "history_base": base})),
            say("assistant", "In another way."),
        ],
    );
    let name = format!("rollout-2026-03-03T10-00-00-{SESSION}");
    fs::write(folder.path().join(format!("{name}.jsonl")), first).expect("it is written");
    fs::write(folder.path().join(format!("{name}_019c0000-0000-7000-8000-000000000002.jsonl")), second)
        .expect("it is written");
    outcome.learn(folder.path());
}

#[test]
fn records_become_what_the_table_says() {
    let kinds = table();
    let mut outcome = Outcome::default();
    fixtures(&mut outcome);
    let genuine: BTreeSet<String> = outcome.types.keys().cloned().collect();
    for lines in made_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(format!("rollout-{SESSION}.jsonl"));
        fs::write(&path, lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n"))
            .expect("it is written");
        outcome.learn(&path);
    }
    reverted(&mut outcome);
    let mut wrong = Vec::new();
    for kind in &kinds {
        let Some(types) = outcome.types.get(&kind.name) else {
            wrong.push(format!("{}: no record of this kind was imported", kind.name));
            continue;
        };
        // The kind of a completed item stands in the record.
        let kept_as = format!("{VENDOR}{}", kind.name.split('/').take(2).collect::<Vec<_>>().join("/"));
        let (kept, mapped): (BTreeSet<&str>, BTreeSet<&str>) =
            types.iter().map(String::as_str).partition(|t| t.starts_with("x."));
        let allowed: BTreeSet<&str> = kind.events.iter().map(String::as_str).collect();
        if mapped != allowed {
            wrong.push(format!("{}: {mapped:?} came out, the table says {allowed:?}", kind.name));
        }
        let may_be_kept = kind.status == Status::Kept || kind.also.is_some();
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
        assert!(!kind.seen.is_empty(), "{}", kind.name);
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
        let ours = ["0.171.0", "0.120.0", "0.42.0", "0.20.0"];
        let seen = match &*kind.seen {
            "third-party" => "† test material of other tools".into(),
            seen if ours.iter().any(|own| seen.contains(own)) => seen.to_owned(),
            others => format!("† {others}"),
        };
        writeln!(text, "| `{}` | {is} | {} | {seen} | {} |", kind.name, events.join(", "), kind.note)
            .expect("a string takes all");
    }
    text
}

#[test]
fn the_specification_shows_the_table() {
    let path = root().join("spec/sources/codex.md");
    let text = fs::read_to_string(&path).expect("the chapter is there");
    let kinds = table();
    let wanted = rendered(&kinds);
    let (before, rest) = text.split_once(BEGIN).expect("the chapter has a place for the table");
    let (shown, after) = rest.split_once(END).expect("the place has an end");
    if std::env::var_os("PALOG_UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("it is written");
        return;
    }
    assert!(shown == wanted, "the table is out of date: PALOG_UPDATE=1 cargo test -p palog-codex --test kinds");
}
