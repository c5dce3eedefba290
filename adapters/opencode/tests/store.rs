//! Databases of the client that no recording shows: each test makes one, and asks what its log says.

use std::fs;
use std::path::{Path, PathBuf};

use palog::blob::sibling;
use palog::project::{At, context};
use palog::recover::{Context, recover};
use palog::reduce::reduce;
use palog_opencode::{Directory, Options, Report, discover, import};
use rusqlite::Connection;
use serde_json::{Value, json};

/// The tables as 1.18.33 makes them.
const SCHEMA: &str = include_str!("schema_1.18.33.sql");
const SESSION: &str = "ses_1";
const DAY: i64 = 1_772_532_000_000;

/// A database while it is made, and what was imported from it.
struct Store {
    folder: tempfile::TempDir,
    db: Connection,
    events: i64,
}

/// The log of a session.
struct Imported {
    log: PathBuf,
    events: Vec<Value>,
    report: Report,
}

impl Store {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let db = Connection::open(folder.path().join("data/opencode.db")).expect("a database");
        // What tests put in need not fit together.
        db.execute_batch("PRAGMA foreign_keys=OFF").and_then(|()| db.execute_batch(SCHEMA)).expect("tables");
        let store = Store { folder, db, events: 0 };
        store.run(
            "INSERT INTO project VALUES ('prj_1', '/w', 'git', NULL, NULL, NULL, NULL, 1, 1, NULL, '[]', NULL)",
            &[],
        );
        store.session(SESSION, None);
        store
    }

    fn run(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) {
        self.db.execute(sql, values).expect(sql);
    }

    fn session(&self, id: &str, parent: Option<&str>) {
        self.run(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated) \
             VALUES (?1, 'prj_1', ?2, 's', '/w', 'a title', '1.18.33', ?3, ?3)",
            &[&id, &parent, &DAY],
        );
    }

    fn message(&self, id: &str, at: i64, data: Value) {
        self.run("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", &[&id, &SESSION, &(DAY + at), &data.to_string()]);
    }

    fn part(&self, id: &str, message: &str, data: Value) {
        self.run(
            "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            &[&id, &message, &SESSION, &DAY, &data.to_string()],
        );
    }

    fn change(&mut self, kind: &str, data: Value) {
        self.events += 1;
        let (seq, id) = (self.events, format!("evt_{:04}", self.events));
        self.run("INSERT OR REPLACE INTO event_sequence VALUES (?1, ?2, NULL)", &[&SESSION, &seq]);
        self.run("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)", &[&id, &SESSION, &seq, &kind, &data.to_string()]);
    }

    /// A prompt.
    fn user(&self, id: &str, at: i64, text: &str) {
        self.message(id, at, user(at));
        self.part(&format!("prt_{id}"), id, json!({"type": "text", "text": text}));
    }

    /// An answer.
    fn assistant(&self, id: &str, at: i64, parent: &str, text: &str) {
        self.message(id, at, assistant(at, parent, "stop"));
        self.part(&format!("prt_{id}"), id, json!({"type": "text", "text": text}));
    }

    fn imported(&self) -> Imported {
        self.imported_into("logs")
    }

    fn imported_into(&self, into: &str) -> Imported {
        import_at(&self.folder.path().join("data"), &self.folder.path().join(into))
    }
}

fn import_at(source: &Path, into: &Path) -> Imported {
    let found = discover(source).expect("it can be read");
    let session = found.sessions.iter().find(|s| s.id() == Some(SESSION)).expect("the session");
    let report = import(session, &mut Directory::new(into), &Options::default()).expect("an import");
    let log = report.logs[0].path.clone().expect("a path");
    let text = fs::read_to_string(&log).expect("a log");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    Imported { log, events, report }
}

fn user(at: i64) -> Value {
    json!({"role": "user", "time": {"created": DAY + at}, "agent": "build", "model": {"providerID": "p", "modelID": "m"}})
}

fn assistant(at: i64, parent: &str, finish: &str) -> Value {
    json!({
        "role": "assistant", "parentID": parent, "agent": "build", "providerID": "p", "modelID": "m", "cost": 0,
        "time": {"created": DAY + at, "completed": DAY + at + 1}, "finish": finish,
        "tokens": {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    })
}

fn tool(call: &str, name: &str, state: Value) -> Value {
    json!({"type": "tool", "callID": call, "tool": name, "state": state})
}

impl Imported {
    fn of_type<'i>(&'i self, kind: &'i str) -> impl Iterator<Item = &'i Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }

    /// The texts of the messages that the model sees at the end.
    fn seen(&self) -> Vec<String> {
        let log = fs::File::open(&self.log).expect("a log");
        let seen = context(log, At::Head, None).expect("a context");
        let seen = serde_json::to_value(&seen.messages).expect("messages");
        let texts = |message: &Value| {
            let content = message["content"].as_array().cloned().unwrap_or_default();
            let text = |part: &Value| part["text"].as_str().or(part["content"].as_str()).unwrap_or_default().to_owned();
            content.iter().map(text).collect::<Vec<_>>().join("|")
        };
        seen.as_array().into_iter().flatten().map(texts).collect()
    }

    fn verdict(&self) -> String {
        let (state, _) = reduce(fs::File::open(&self.log).expect("a log")).expect("a state");
        let verdict = recover(&state, &Context::new()).verdict;
        serde_json::to_value(verdict).expect("a word").as_str().unwrap_or_default().to_owned()
    }

    fn action(&self, action: &str) -> Value {
        let (state, _) = reduce(fs::File::open(&self.log).expect("a log")).expect("a state");
        let state = serde_json::to_value(&state).expect("a state");
        let all = state["actions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|a| a["action"] == action).unwrap_or_default()
    }

    fn codes(&self) -> Vec<&'static str> {
        self.report.diagnostics.groups().iter().map(|group| group.code.as_str()).collect()
    }

    /// The rows that are kept, by table and key.
    fn kept(&self) -> Vec<Value> {
        let store = fs::read_to_string(sibling(&self.log, "sources").join("store")).expect("the rows are kept");
        store.lines().skip(1).map(|line| serde_json::from_str(line).expect("a row")).collect()
    }
}

#[test]
fn messages_stand_in_the_order_of_time_also_where_their_ids_wrapped() {
    let store = Store::new();
    store.user("msg_ff1", 1, "old");
    store.assistant("msg_ff2", 2, "msg_ff1", "old answer");
    store.user("msg_001", 3, "new");
    store.assistant("msg_000", 3, "msg_001", "answer of the same millisecond");
    let imported = store.imported();
    let texts: Vec<_> = imported.of_type("message.added").map(|e| e["data"]["parts"][0]["text"].clone()).collect();
    assert_eq!(texts, ["old", "old answer", "answer of the same millisecond", "new"]);
}

#[test]
fn what_was_taken_back_and_gone_on_from_is_in_the_log_and_not_in_the_context() {
    let mut store = Store::new();
    store.user("msg_1", 1, "keep");
    store.assistant("msg_2", 2, "msg_1", "kept");
    // The client removes the rows; its changes still hold what they were.
    let removed = |id: &str, info: Value| json!({"sessionID": SESSION, "info": merged(info, json!({"id": id, "sessionID": SESSION}))});
    store.change("message.updated.1", removed("msg_3", user(3)));
    let text = json!({"type": "text", "text": "take back", "id": "prt_3", "messageID": "msg_3", "sessionID": SESSION});
    store.change("message.part.updated.1", json!({"sessionID": SESSION, "part": text, "time": DAY}));
    store.change("message.updated.1", removed("msg_4", assistant(4, "msg_3", "tool-calls")));
    let call = |state: Value| {
        merged(tool("call_1", "bash", state), json!({"id": "prt_4", "messageID": "msg_4", "sessionID": SESSION}))
    };
    store.change(
        "message.part.updated.1",
        json!({"sessionID": SESSION, "part": call(json!({"status": "pending", "input": {}, "raw": ""})), "time": DAY}),
    );
    let done = json!({"status": "completed", "input": {"command": "make"}, "output": "made", "title": "", "metadata": {"exit": 0}, "time": {"start": DAY, "end": DAY}});
    store.change("message.part.updated.1", json!({"sessionID": SESSION, "part": call(done), "time": DAY}));
    store.change("message.removed.1", json!({"sessionID": SESSION, "messageID": "msg_3"}));
    store.change("message.removed.1", json!({"sessionID": SESSION, "messageID": "msg_4"}));
    store.user("msg_5", 5, "instead");
    store.assistant("msg_6", 6, "msg_5", "well");
    let imported = store.imported();
    assert_eq!(imported.seen(), ["keep", "kept", "instead", "well"]);
    let texts: Vec<_> =
        imported.of_type("message.added").filter_map(|e| e["data"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(texts, ["keep", "kept", "take back", "instead", "well"]);
    assert_eq!(imported.action("call_1")["state"], "succeeded");
    assert_eq!(imported.of_type("branch.moved").count(), 1);
    assert_eq!(imported.verdict(), "idle");
}

fn merged(mut a: Value, b: Value) -> Value {
    if let (Some(a), Some(b)) = (a.as_object_mut(), b.as_object()) {
        a.extend(b.clone());
    }
    a
}

#[test]
fn what_was_taken_back_and_not_gone_on_from_is_hidden() {
    let store = Store::new();
    store.user("msg_1", 1, "keep");
    store.assistant("msg_2", 2, "msg_1", "kept");
    store.user("msg_3", 3, "take back");
    store.assistant("msg_4", 4, "msg_3", "gone");
    let revert = json!({"messageID": "msg_3", "snapshot": "abc"}).to_string();
    store.run("UPDATE session SET revert = ?1", &[&revert]);
    let imported = store.imported();
    assert_eq!(imported.seen(), ["keep", "kept"]);
    assert_eq!(imported.of_type("message.added").count(), 4);
}

#[test]
fn outputs_that_the_client_dropped_are_dropped_from_the_context_only() {
    let store = Store::new();
    store.user("msg_1", 1, "run");
    store.message("msg_2", 2, assistant(2, "msg_1", "tool-calls"));
    let state = json!({"status": "completed", "input": {"command": "ls"}, "output": "a long list", "title": "", "metadata": {"exit": 0}, "time": {"start": DAY, "end": DAY, "compacted": DAY + 5}});
    store.part("prt_2", "msg_2", tool("call_1", "bash", state));
    store.assistant("msg_3", 3, "msg_1", "done");
    let imported = store.imported();
    let seen = imported.seen();
    assert!(seen.iter().any(|text| text == "[Old tool result content cleared]"), "{seen:?}");
    let told = imported.of_type("message.added").find(|e| e["data"]["role"] == "tool").expect("a result");
    assert_eq!(told["data"]["parts"][0]["parts"][0]["text"], "a long list");
}

#[test]
fn a_compaction_can_leave_the_newest_messages_as_they_are() {
    let store = Store::new();
    store.user("msg_1", 1, "one");
    store.assistant("msg_2", 2, "msg_1", "answer one");
    store.user("msg_3", 3, "two");
    store.assistant("msg_4", 4, "msg_3", "answer two");
    store.message("msg_5", 5, user(5));
    store.part("prt_5", "msg_5", json!({"type": "compaction", "auto": true, "tail_start_id": "msg_3"}));
    store.message("msg_6", 6, merged(assistant(6, "msg_5", "stop"), json!({"summary": true, "agent": "compaction"})));
    store.part("prt_6", "msg_6", json!({"type": "text", "text": "summary"}));
    store.user("msg_7", 7, "three");
    let imported = store.imported();
    assert_eq!(imported.seen(), ["What did we do so far?", "summary", "two", "answer two", "three"]);
    assert_eq!(imported.verdict(), "ready");
    // Cut after the question: the compaction never ended, and everything is as it was.
    store.run("DELETE FROM part WHERE message_id IN ('msg_6', 'msg_7')", &[]);
    store.run("DELETE FROM message WHERE id IN ('msg_6', 'msg_7')", &[]);
    assert_eq!(store.imported_into("again").seen(), ["one", "answer one", "two", "answer two"]);
}

#[test]
fn a_call_id_that_is_used_again_is_another_action() {
    let store = Store::new();
    store.user("msg_1", 1, "run");
    store.message("msg_2", 2, assistant(2, "msg_1", "tool-calls"));
    let state = |status: &str| json!({"status": status, "input": {"command": "x"}, "output": "", "title": "", "metadata": {"exit": 0}, "time": {"start": DAY, "end": DAY}});
    store.part("prt_2", "msg_2", tool("call_1", "bash", state("completed")));
    store.part("prt_3", "msg_2", tool("call_1", "bash", state("running")));
    let imported = store.imported();
    assert_eq!(imported.action("call_1")["state"], "succeeded");
    assert_eq!(imported.action("call_1#2")["state"], "unknown");
    assert_eq!(imported.verdict(), "needs_reconcile");
    assert!(imported.codes().contains(&"tool.call_without_result"));
}

#[test]
fn a_call_whose_arguments_never_ended_was_not_made() {
    let store = Store::new();
    store.user("msg_1", 1, "run");
    let mut open = assistant(2, "msg_1", "stop");
    open.as_object_mut().expect("an object").remove("finish");
    open["time"] = json!({"created": DAY + 2});
    store.message("msg_2", 2, open);
    store.part("prt_1", "msg_2", json!({"type": "step-start"}));
    store.part("prt_2", "msg_2", tool("call_1", "bash", json!({"status": "pending", "input": {}, "raw": ""})));
    let imported = store.imported();
    assert_eq!(imported.of_type("action.proposed").count(), 0);
    assert_eq!(imported.verdict(), "ready");
    assert_eq!(imported.of_type("x.ai.opencode/part/tool").count(), 1);
}

#[test]
fn parts_without_a_message_are_told_and_what_they_ran_is_not_forgotten() {
    let store = Store::new();
    store.run("PRAGMA foreign_keys = OFF", &[]);
    store.user("msg_1", 1, "hello");
    store.assistant("msg_2", 2, "msg_1", "hello");
    store.part(
        "prt_9",
        "msg_lost",
        tool("call_9", "bash", json!({"status": "running", "input": {"command": "x"}, "time": {"start": DAY}})),
    );
    let imported = store.imported();
    assert_eq!(imported.action("call_9")["state"], "unknown");
    assert!(imported.codes().contains(&"graph.missing_parent"));
    assert_eq!(imported.seen(), ["hello", "hello"]);
}

#[test]
fn what_nobody_knows_is_kept_and_told() {
    let store = Store::new();
    store.user("msg_1", 1, "hello");
    store.part("prt_x", "msg_1", json!({"type": "hologram", "n": 1.0}));
    store.run("UPDATE message SET data = '{\"role\":' WHERE id = 'none'", &[]);
    store.run("CREATE TABLE session_dream (id TEXT PRIMARY KEY, session_id TEXT, dream TEXT)", &[]);
    store.run("INSERT INTO session_dream VALUES ('d1', ?1, 'of sheep')", &[&SESSION]);
    store.run("INSERT INTO todo VALUES (?1, 'do it', 'pending', 'high', 0, 1, 1)", &[&SESSION]);
    store.run("INSERT INTO permission VALUES ('per_1', 'prj_1', 'bash', 'ls *', 1, 1)", &[]);
    store.message("msg_2", 2, json!("no object"));
    let imported = store.imported();
    for kind in ["part/hologram", "session_dream", "todo", "permission", "message"] {
        assert_eq!(imported.of_type(&format!("x.ai.opencode/{kind}")).count(), 1, "{kind}");
    }
    let codes = imported.codes();
    for code in ["schema.unknown_block", "store.unknown_version", "schema.unexpected_shape"] {
        assert!(codes.contains(&code), "{code} is not among {codes:?}");
    }
}

#[test]
fn credentials_stay_in_the_database() {
    let store = Store::new();
    store.user("msg_1", 1, "hello");
    store.run("INSERT INTO account VALUES ('a', 'e', 'u', 'SECRET-1', 'SECRET-2', NULL, 1, 1)", &[]);
    store.run("INSERT INTO credential VALUES ('c', NULL, 'l', 'SECRET-3', NULL, NULL, NULL, 1, 1)", &[]);
    store.run("INSERT INTO control_account VALUES ('e', 'u', 'SECRET-4', 'SECRET-5', NULL, 1, 1, 1)", &[]);
    store.run("INSERT INTO session_share VALUES (?1, 's', 'SECRET-6', 'u', 1, 1)", &[&SESSION]);
    let imported = store.imported();
    for file in files(&store.folder.path().join("logs")) {
        let bytes = fs::read(&file).expect("a file");
        assert!(!String::from_utf8_lossy(&bytes).contains("SECRET-"), "{}", file.display());
    }
    let report = &imported.report.inputs[0];
    let left: Vec<_> = ["account", "credential", "control_account", "session_share"].map(|t| report.by_type[t]).into();
    assert_eq!(left, [1, 1, 1, 1]);
    assert_eq!(report.records - report.foreign, imported.kept().len() as u64);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn the_whole_of_a_cut_output_is_read_where_the_client_put_it() {
    let store = Store::new();
    let whole = "line\n".repeat(10);
    fs::create_dir(store.folder.path().join("data/tool-output")).expect("a folder");
    fs::write(store.folder.path().join("data/tool-output/tool_1"), &whole).expect("a file");
    store.user("msg_1", 1, "run");
    store.message("msg_2", 2, assistant(2, "msg_1", "tool-calls"));
    let state = json!({"status": "completed", "input": {}, "output": "...output truncated...", "title": "", "metadata": {"exit": 0, "outputPath": "/home/demo/.local/share/opencode/tool-output/tool_1"}, "time": {"start": DAY, "end": DAY}});
    store.part("prt_2", "msg_2", tool("call_1", "bash", state));
    let imported = store.imported();
    let ended = imported.of_type("action.ended").next().expect("an end");
    assert_eq!(ended["data"]["output"][0]["text"], whole);
    let kept = fs::read_to_string(sibling(&imported.log, "sources").join("tool-output/tool_1")).expect("it is kept");
    assert_eq!(kept, whole);
}

#[test]
fn agents_and_the_sessions_that_started_them_name_each_other() {
    let store = Store::new();
    store.user("msg_1", 1, "delegate");
    store.message("msg_2", 2, assistant(2, "msg_1", "tool-calls"));
    let state = json!({"status": "running", "input": {}, "metadata": {"sessionId": "ses_2", "parentSessionId": SESSION}, "time": {"start": DAY}});
    store.part("prt_2", "msg_2", tool("call_1", "task", state));
    store.session("ses_2", Some(SESSION));
    store.session("ses_3", Some(SESSION));
    let imported = store.imported();
    let children: Vec<_> = imported
        .of_type("child.spawned")
        .map(|e| (e["data"]["session"].clone(), e["data"]["action"].clone()))
        .collect();
    assert_eq!(children, [(json!("ses_2"), json!("call_1")), (json!("ses_3"), Value::Null)]);
    assert_eq!(imported.verdict(), "needs_reconcile");
}

#[test]
fn a_changed_row_has_another_id_and_all_others_keep_theirs() {
    let store = Store::new();
    store.user("msg_1", 1, "run");
    store.message("msg_2", 2, assistant(2, "msg_1", "tool-calls"));
    store.part(
        "prt_2",
        "msg_2",
        tool("call_1", "bash", json!({"status": "running", "input": {"command": "x"}, "time": {"start": DAY}})),
    );
    let before = store.imported();
    let done = tool(
        "call_1",
        "bash",
        json!({"status": "completed", "input": {"command": "x"}, "output": "", "title": "", "metadata": {"exit": 0}, "time": {"start": DAY, "end": DAY}}),
    );
    store.run("UPDATE part SET data = ?1 WHERE id = 'prt_2'", &[&done.to_string()]);
    let after = store.imported_into("again");
    let ids = |i: &Imported, kind: &str| i.of_type(kind).map(|e| e["id"].clone()).collect::<Vec<_>>();
    assert_ne!(ids(&before, "action.proposed"), ids(&after, "action.proposed"));
    assert_eq!(ids(&before, "turn.started"), ids(&after, "turn.started"));
    let said = |i: &Imported| ids(i, "message.added");
    assert_eq!(said(&before)[0], said(&after)[0]);
    assert_ne!(said(&before)[1], said(&after)[1]);
}

#[test]
fn the_client_lists_no_session_that_was_begun_before_its_folder_became_a_project() {
    let store = Store::new();
    store.user("msg_1", 1, "hello");
    assert!(!store.imported().codes().contains(&"session.project_shadowed"));
    store.run("UPDATE session SET project_id = 'global', directory = '/w/sub'", &[]);
    assert!(store.imported_into("again").codes().contains(&"session.project_shadowed"));
}

#[test]
fn a_title_of_a_fork_says_that_nothing_records_of_what() {
    let store = Store::new();
    store.user("msg_1", 1, "hello");
    store.run("UPDATE session SET title = 'a title (fork #2)'", &[]);
    let imported = store.imported();
    assert_eq!(imported.of_type("note.added").filter(|e| e["data"]["kind"] == "lineage").count(), 1);
}
