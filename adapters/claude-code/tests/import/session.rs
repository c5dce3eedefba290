//! A session under construction, and what an import makes of it.

use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::diagnostic::{Code, Diagnostics, Severity};
use palog::recover::{Context, EvidenceKind, Recovery, Verdict, recover};
use palog::reduce::reduce;
use palog::state::{Action, ActionState, State};
use palog::validate::{Options as Validation, validate};
use palog_claude_code::{Directory, Options, Report, discover, import};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const SESSION: &str = "5e550000-0000-4000-8000-000000000001";

/// A configuration folder with one session in it.
pub(crate) struct Session {
    pub(crate) root: TempDir,
    transcript: Vec<u8>,
    records: usize,
    last: Option<String>,
}

impl Session {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        Session { root, transcript: Vec::new(), records: 0, last: None }
    }

    /// Adds bytes as they stand.
    pub(crate) fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.transcript.extend(bytes.as_ref());
        self
    }

    /// Adds a line as it stands.
    pub(crate) fn line(self, line: impl AsRef<[u8]>) -> Self {
        self.bytes(line).bytes("\n")
    }

    /// The next record of the tree, with these members beside the usual ones.
    pub(crate) fn next(&mut self, members: Value) -> Value {
        self.records += 1;
        let uuid = format!("u{}", self.records);
        let mut record = json!({"parentUuid": self.last, "isSidechain": false, "uuid": uuid, "sessionId": SESSION});
        merge(&mut record, members);
        self.last = record["uuid"].as_str().map(str::to_owned);
        record
    }

    pub(crate) fn record(mut self, members: Value) -> Self {
        let record = self.next(members).to_string();
        self.line(record)
    }

    pub(crate) fn prompt(self, text: &str) -> Self {
        self.record(json!({"type": "user", "promptSource": "typed", "message": {"role": "user", "content": text}}))
    }

    /// A record of the response `id` with this content.
    pub(crate) fn model(self, id: &str, stop: Option<&str>, content: Value) -> Self {
        self.record(response(id, stop, content))
    }

    pub(crate) fn says(self, id: &str, stop: Option<&str>) -> Self {
        self.model(id, stop, json!([{"type": "text", "text": "So be it."}]))
    }

    pub(crate) fn call(self, id: &str, name: &str) -> Self {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {"command": "deploy"}});
        self.model(&format!("m-{id}"), Some("tool_use"), json!([block]))
    }

    /// The result of a call, with these members beside its content.
    pub(crate) fn result(self, id: &str, text: &str, is_error: Value, members: Value) -> Self {
        let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        if !is_error.is_null() {
            block["is_error"] = is_error;
        }
        let mut record = json!({"type": "user", "message": {"role": "user", "content": [block]}});
        merge(&mut record, members);
        self.record(record)
    }

    /// Writes a file below the configuration folder.
    pub(crate) fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, bytes).expect("it can be written");
        self
    }

    /// Writes the transcript, and says where it is.
    pub(crate) fn write(&self) -> PathBuf {
        let path = self.root.path().join(format!("projects/p/{SESSION}.jsonl"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(&path, &self.transcript).expect("it can be written");
        path
    }

    /// Imports it with all that lies beside it. Every log is held to be valid.
    pub(crate) fn import(&self) -> Imported {
        self.write();
        let found = discover(self.root.path()).expect("it can be read");
        assert_eq!(found.sessions.len(), 1, "{:?}", found.sessions);
        let folder = tempfile::tempdir().expect("a folder");
        let report = import(&found.sessions[0], &mut Directory::new(folder.path()), &Options::default());
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        let paths: Vec<&Path> = report.logs.iter().filter_map(|log| log.path.as_deref()).collect();
        for path in &paths {
            let log = fs::read(path).expect("a log");
            let found = validate(log.as_slice(), &Validation::new()).expect("memory can be read");
            assert!(found.is_valid(), "{}: {:?}", path.display(), found.diagnostics.groups());
        }
        let log = fs::read(paths[0]).expect("a log");
        let events = log.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let events = events.map(|line| serde_json::from_slice(line).expect("an event")).collect();
        let (state, _) = reduce(log.as_slice()).expect("memory can be read");
        let recovery = recover(&state, &Context::new());
        let sources = sibling(paths[0], "sources");
        Imported { report, events, state, recovery, sources, folder }
    }
}

/// The members of a record of the response `id`.
pub(crate) fn response(id: &str, stop: Option<&str>, content: Value) -> Value {
    let message = json!({"id": id, "role": "assistant", "model": "m", "content": content, "stop_reason": stop});
    json!({"type": "assistant", "message": message})
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// The log of a session, and what it adds up to.
pub(crate) struct Imported {
    pub(crate) report: Report,
    pub(crate) events: Vec<Value>,
    pub(crate) state: State,
    pub(crate) recovery: Recovery,
    /// Where the kept sources are.
    pub(crate) sources: PathBuf,
    /// Goes away with this.
    pub(crate) folder: TempDir,
}

impl Imported {
    pub(crate) fn verdict(&self) -> Verdict {
        self.recovery.verdict
    }

    /// Whether it says that there may have been calls that nobody wrote down.
    pub(crate) fn warns_of_unseen_calls(&self) -> bool {
        self.recovery.evidence.iter().any(|e| e.kind == EvidenceKind::UnseenCallsPossible)
    }

    pub(crate) fn action(&self, id: &str) -> &Action {
        self.state.action(id).unwrap_or_else(|| panic!("no action {id}: {:?}", self.state.actions))
    }

    pub(crate) fn is(&self, id: &str) -> ActionState {
        self.action(id).state
    }

    /// How often something was found.
    pub(crate) fn count(&self, code: Code) -> u64 {
        count(&self.report.diagnostics, code)
    }

    /// The events of a type.
    pub(crate) fn of_type<'i>(&'i self, kind: &'i str) -> impl Iterator<Item = &'i Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }
}

pub(crate) fn count(diagnostics: &Diagnostics, code: Code) -> u64 {
    let groups = diagnostics.groups().iter().filter(|g| g.code == code && g.severity != Severity::Info);
    groups.map(|g| g.count).sum()
}
