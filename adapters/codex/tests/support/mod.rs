//! Rollouts that are made up, and what becomes of them.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use palog::diagnostic::Severity;
use palog::project::{At, openai};
use palog::recover::{Context, Verdict, recover};
use palog::reduce::reduce;
use palog::state::State;
use palog::validate::{self, validate};
use palog_codex::{Directory, Options, Report, discover, import};
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "019c0000-0000-7000-8000-000000000001";

pub(crate) fn line(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-03-03T10:00:00.000Z", "type": kind, "payload": payload})
}

pub(crate) fn event(kind: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    line("event_msg", members)
}

pub(crate) fn item(kind: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    line("response_item", members)
}

/// What ran, in the paginated dialect.
pub(crate) fn done(kind: &str, id: &str, turn: &str, mut members: Value) -> Value {
    members["type"] = json!(kind);
    members["id"] = json!(id);
    event("item_completed", json!({"item": members, "turn_id": turn}))
}

pub(crate) fn header(mode: &str) -> Value {
    line("session_meta", json!({"id": SESSION, "cwd": "/w", "cli_version": "1", "history_mode": mode}))
}

pub(crate) fn say(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item("message", json!({"role": role, "content": [{"type": kind, "text": text}]}))
}

pub(crate) fn call(id: &str, name: &str) -> Value {
    item("function_call", json!({"call_id": id, "name": name, "arguments": "{}"}))
}

pub(crate) fn output(id: &str, text: &str) -> Value {
    item("function_call_output", json!({"call_id": id, "output": text}))
}

pub(crate) fn begin(turn: &str) -> Value {
    event("task_started", json!({"turn_id": turn}))
}

pub(crate) fn end(turn: &str) -> Value {
    event("task_complete", json!({"turn_id": turn}))
}

/// The text of a rollout.
pub(crate) fn text(lines: &[Value]) -> String {
    lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

/// The lines with ordinals from `first`.
pub(crate) fn numbered(first: u64, lines: &[Value]) -> Vec<Value> {
    let number = |(n, line): (usize, &Value)| {
        let mut line = line.clone();
        line["ordinal"] = json!(first + n as u64);
        line
    };
    lines.iter().enumerate().map(number).collect()
}

/// What became of a session.
pub(crate) struct Made {
    pub(crate) log: Vec<u8>,
    pub(crate) path: PathBuf,
    pub(crate) state: State,
    pub(crate) verdict: Verdict,
    pub(crate) report: Report,
    /// Where the log lies, as long as it is wanted.
    _folder: Rc<tempfile::TempDir>,
}

impl Made {
    /// The actions, each as `id state`, with what applied.
    pub(crate) fn actions(&self) -> Vec<String> {
        self.state.actions.iter().map(|a| format!("{} {}", a.action, a.state.word())).collect()
    }

    /// Codes of what was found.
    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.report.diagnostics.groups().iter().map(|group| group.code.as_str()).collect()
    }

    /// The texts of the messages that the model sees.
    pub(crate) fn context(&self) -> Vec<String> {
        let context = openai::context(std::io::Cursor::new(&self.log), At::Head, None).expect("a context");
        let text = |item: &palog::json::Raw<'_>| {
            let item: Value = serde_json::from_str(item.get()).expect("JSON");
            item.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        context.input.iter().map(text).collect()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.log.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

/// Imports every session at `path`. Each log is valid, and every record of its rollouts is told by an event.
pub(crate) fn sessions(path: &Path) -> Vec<Made> {
    let found = discover(path).expect("it can be read");
    let folder = Rc::new(tempfile::tempdir().expect("a folder"));
    let mut all = Vec::new();
    for session in &found.sessions {
        let report = import(session, &mut Directory::new(folder.path()), &Options::default()).expect("an import");
        let path = report.logs[0].path.clone().expect("a path");
        let log = fs::read(&path).expect("the log");
        let blobs = palog::blob::BlobStore::beside(&path);
        let validation =
            validate(log.as_slice(), &validate::Options::new().with_blobs(&blobs)).expect("bytes in memory");
        let bad = validation.diagnostics.count(Severity::Error) + validation.diagnostics.count(Severity::Void);
        assert_eq!(bad, 0, "{:?}", validation.diagnostics.groups());
        let (state, _) = reduce(log.as_slice()).expect("bytes in memory");
        let verdict = recover(&state, &Context::new()).verdict;
        all.push(Made { log, path, state, verdict, report, _folder: Rc::clone(&folder) });
    }
    all
}

/// Imports one rollout.
pub(crate) fn made(text: impl AsRef<[u8]>) -> Made {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("rollout-2026-03-03T10-00-00-{SESSION}.jsonl"));
    fs::write(&path, text).expect("it is written");
    let mut all = sessions(&path);
    assert_eq!(all.len(), 1);
    all.remove(0)
}
