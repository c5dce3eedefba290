//! Databases as the client leaves them, in the forms that the genuine ones do not show.

mod support;

use palog::recover::Verdict;
use palog::state::ActionState;
use serde_json::{Value, json};
use support::{Imported, stored};

/// A session with these rows: `(id, role, content, more columns)`.
fn session(rows: &str) -> Imported {
    let all = format!("INSERT INTO sessions(id, source, started_at) VALUES ('s', 'cli', 1.0); {rows}");
    stored(&all).pop().expect("a session")
}

const CALL: &str = "INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user', 'q', 1.0);
    INSERT INTO messages(session_id, role, content, tool_calls, finish_reason, timestamp) VALUES
    ('s', 'assistant', '', '[{\"id\":\"c1\",\"function\":{\"name\":\"terminal\",\"arguments\":\"{\\\"command\\\":\\\"make\\\"}\"}}]', 'tool_calls', 2.0);";

fn result(content: &str, more: &str) -> String {
    let (columns, values) =
        more.split_once('=').map_or((String::new(), String::new()), |(c, v)| (format!(", {c}"), format!(", {v}")));
    format!(
        "{CALL} INSERT INTO messages(session_id, role, content, tool_call_id, timestamp{columns}) VALUES ('s', 'tool', '{content}', 'c1', 3.0{values});"
    )
}

#[test]
fn a_call_without_a_result_is_unknown_and_holds_the_session() {
    let one = session(CALL);
    assert_eq!((one.verdict(), one.state().actions[0].state), (Verdict::NeedsReconcile, ActionState::Unknown));
    // What the client makes up for the model is not there.
    assert!(one.of_type("message.added").iter().all(|event| event["data"]["role"] != "tool"));
}

#[test]
fn a_result_that_is_not_the_tools_own_says_nothing() {
    for text in ["[Result unavailable — see context summary above]", "[Orphan recovery: its effect is UNKNOWN]", "ok"]
    {
        let one = session(&result(text, ""));
        assert_eq!(
            (one.verdict(), one.state().actions[0].state),
            (Verdict::NeedsReconcile, ActionState::Unknown),
            "{text}"
        );
    }
    let unknown = session(&result("{\"output\":\"\",\"exit_code\":0}", "effect_disposition='unknown'"));
    assert_eq!(unknown.verdict(), Verdict::NeedsReconcile);
    let none = session(&result(
        "[Tool execution cancelled — terminal was skipped due to user interrupt]",
        "effect_disposition='none'",
    ));
    assert_eq!(none.state().actions[0].state, ActionState::Cancelled);
}

#[test]
fn a_process_in_the_background_goes_on() {
    let text = "{\"output\":\"Background process started\",\"session_id\":\"proc_1\",\"pid\":7,\"exit_code\":0}";
    let one = session(&result(text, ""));
    assert_eq!((one.verdict(), one.state().actions[0].state), (Verdict::NeedsReconcile, ActionState::Running));
}

#[test]
fn content_that_is_no_text_is_decoded() {
    let one = session(
        "INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user',
         char(0) || 'json:[{\"type\":\"text\",\"text\":\"look\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,iVBORw0KGgo=\"}},{\"type\":\"new\"}]', 1.0)",
    );
    let parts = &one.of_type("message.added")[0]["data"]["parts"];
    assert_eq!(parts[0], json!({"type": "text", "text": "look"}));
    assert_eq!(parts[1], json!({"type": "image", "media": "image/png", "data": "iVBORw0KGgo="}));
    assert_eq!(parts[2]["type"], "opaque");
    assert!(one.codes().contains(&"schema.unknown_block"), "{:?}", one.codes());
    assert_eq!(one.verdict(), Verdict::Ready);
}

#[test]
fn arguments_are_kept_as_they_stand() {
    let proposed = |arguments: &str| -> Value {
        let calls = json!([{"id": "c", "function": {"name": "terminal", "arguments": serde_json::from_str::<Value>(arguments).expect("JSON")}}]);
        let calls = calls.to_string().replace('\'', "''");
        let one = session(&format!(
            "INSERT INTO messages(session_id, role, content, tool_calls, finish_reason, timestamp) VALUES ('s', 'assistant', NULL, '{calls}', 'tool_calls', 2.0)"
        ));
        one.of_type("action.proposed")[0]["data"]["args"].clone()
    };
    assert_eq!(proposed(r#""{\"command\": \"ls\"}""#), json!({"command": "ls"}));
    assert_eq!(proposed(r#""{\"command\": \"l""#), json!("{\"command\": \"l"));
    assert_eq!(proposed(r#"{"command":"ls"}"#), json!({"command": "ls"}));
}

#[test]
fn the_model_is_given_one_result_for_each_call() {
    let one = session(&format!(
        "{} INSERT INTO messages(session_id, role, content, tool_call_id, timestamp) VALUES ('s', 'tool', '{{}}', 'c1', 4.0), ('s', 'tool', 'x', 'zzz', 5.0)",
        result("{\"output\":\"one\",\"exit_code\":0}", "")
    ));
    let seen: Vec<bool> = one
        .of_type("message.added")
        .iter()
        .filter(|e| e["data"]["role"] == "tool")
        .map(|e| e["data"]["in_context"] != false)
        .collect();
    assert_eq!((seen, one.of_type("action.ended").len()), (vec![true, false, false], 1));
}

#[test]
fn what_was_sent_in_place_of_a_content_is_what_the_model_saw() {
    let one = session(
        "INSERT INTO messages(session_id, role, content, api_content, timestamp) VALUES ('s', 'user', 'shown', 'SENT', 1.0)",
    );
    let event = one.of_type("message.added")[0];
    assert_eq!(event["data"]["parts"], json!([{"type": "text", "text": "SENT"}]));
    assert_eq!(event["ext"], json!({"com.nousresearch.hermes": {"content": "shown"}}));
}

#[test]
fn rows_that_were_taken_back_are_left_behind() {
    let one = session(
        "INSERT INTO messages(session_id, role, content, finish_reason, timestamp, active) VALUES
         ('s', 'user', 'q1', NULL, 1.0, 1), ('s', 'assistant', 'a1', 'stop', 2.0, 1), ('s', 'user', 'q2', NULL, 3.0, 0)",
    );
    // Nobody waits for an answer to what was taken back.
    assert_eq!(one.verdict(), Verdict::Idle);
    let moved = one.of_type("branch.moved")[0]["data"]["to"].clone();
    assert_eq!(moved, one.of_type("message.added")[1]["id"]);
    assert_eq!(one.of_type("turn.ended")[0]["data"], json!({"how": "interrupted", "reason": "undo"}));
}

#[test]
fn a_call_that_was_taken_back_may_have_run_all_the_same() {
    let one = session(&format!("{CALL} UPDATE messages SET active = 0"));
    assert_eq!(one.verdict(), Verdict::NeedsReconcile);
}

#[test]
fn a_session_that_a_compaction_closed_goes_on_in_the_next() {
    let all = stored(
        "INSERT INTO sessions(id, source, started_at, end_reason, parent_session_id, message_count) VALUES
            ('p', 'cli', 1.0, 'compression', NULL, 4), ('n', 'cli', 9.0, NULL, 'p', 4), ('x', 'cli', 20.0, 'compression', NULL, 9);
         INSERT INTO messages(session_id, role, content, finish_reason, timestamp) VALUES
            ('p', 'user', 'q1', NULL, 1.0), ('p', 'assistant', 'a1', 'stop', 2.0), ('p', 'user', 'q2', NULL, 3.0), ('p', 'assistant', 'a2', 'stop', 4.0),
            ('n', 'user', 'q1', NULL, 9.0), ('n', 'assistant', '[CONTEXT COMPACTION — x] s', 'stop', 9.000001), ('n', 'user', 'q2', NULL, 9.000002), ('n', 'assistant', 'a2', 'stop', 9.000003),
            ('n', 'user', 'q2', NULL, 12.0)",
    );
    let [parent, next, lost] = &all[..] else { panic!("{} sessions", all.len()) };
    assert_eq!((parent.verdict(), next.verdict()), (Verdict::Closed, Verdict::Ready));
    assert_eq!(parent.of_type("log.closed")[0]["data"]["how"], "transferred");
    let opened = &next.events[0]["data"]["parent"];
    assert_eq!(
        (&opened["session"], &opened["mode"], &opened["log"]),
        (&json!("p"), &json!("continue"), &parent.events[0]["log"])
    );
    let copies: Vec<_> = next.of_type("message.added").iter().map(|e| e["copy"]["event"].clone()).collect();
    let own = parent.of_type("message.added");
    let of = |at: usize| own[at]["id"].clone();
    assert_eq!(copies, [of(0), Value::Null, of(2), of(3), Value::Null]);
    assert_eq!((next.state().counts.prompts.0, next.state().counts.responses.0), (1, 0));
    for code in ["compaction.continuation_missing", "session.row_count_mismatch"] {
        assert!(lost.codes().contains(&code), "{:?}", lost.codes());
    }
    assert_eq!(lost.of_type("log.closed")[0]["data"]["how"], "interrupted");
}

#[test]
fn a_delegation_whose_owner_ended_is_unknown() {
    let table = "CREATE TABLE async_delegations(delegation_id TEXT PRIMARY KEY, origin_session TEXT, parent_session_id TEXT, state TEXT,
        completed_at REAL, updated_at REAL, result_json TEXT, delivery_state TEXT, owner_pid INTEGER, owner_started_at INTEGER);";
    let with = |state: &str, delivery: &str, more: &str| {
        session(&format!("{table} INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user', 'q', 1.0);
            INSERT INTO messages(session_id, role, content, tool_calls, finish_reason, timestamp) VALUES
            ('s', 'assistant', '', '[{{\"id\":\"c1\",\"function\":{{\"name\":\"delegate_task\",\"arguments\":\"{{}}\"}}}}]', 'tool_calls', 2.0);
            INSERT INTO messages(session_id, role, content, tool_call_id, timestamp) VALUES ('s', 'tool', '{{\"status\":\"dispatched\",\"delegation_id\":\"d\"}}', 'c1', 3.0);
            INSERT INTO messages(session_id, role, content, finish_reason, timestamp) VALUES ('s', 'assistant', 'waiting', 'stop', 4.0);
            INSERT INTO async_delegations VALUES ('d', 's', 's', '{state}', NULL, 5.0, NULL, '{delivery}', 42, 7); {more}"))
    };
    let job = |one: &Imported| one.state().actions.iter().find(|a| a.action == "d").map(|a| a.state);
    let running = with("running", "pending", "");
    assert_eq!((job(&running), running.verdict()), (Some(ActionState::Running), Verdict::NeedsReconcile));
    let seen = running.of_type("observation.recorded")[0]["data"].clone();
    assert_eq!(
        (&seen["fact"], &seen["subject"], &seen["detail"]["owner_pid"]),
        (&json!("busy"), &json!("d"), &json!(42))
    );
    let unknown = with("unknown", "pending", "");
    assert_eq!((job(&unknown), unknown.verdict()), (Some(ActionState::Unknown), Verdict::NeedsReconcile));
    // Its result waits to be brought to the model.
    let done = with("completed", "pending", "");
    assert_eq!((job(&done), done.verdict()), (Some(ActionState::Succeeded), Verdict::Ready));
    let delivered = with("completed", "delivered", "");
    assert_eq!(delivered.verdict(), Verdict::Idle);
}

#[test]
fn columns_are_found_by_name_and_others_are_kept() {
    let one = stored(
        "DROP TABLE sessions; DROP TABLE messages;
         CREATE TABLE sessions(started_at REAL, later TEXT, source TEXT, id TEXT PRIMARY KEY, system_prompt_hash TEXT);
         CREATE TABLE messages(later BLOB, role TEXT, timestamp REAL, content TEXT, session_id TEXT, id INTEGER PRIMARY KEY, _compressed_summary INTEGER);
         CREATE TABLE system_prompts(hash TEXT PRIMARY KEY, prompt TEXT); CREATE TABLE newer(session_id TEXT, x INTEGER);
         CREATE TABLE schema_version(version INTEGER); INSERT INTO schema_version VALUES (31);
         INSERT INTO sessions VALUES (1.0, 'kept', 'cli', 's', 'h'); INSERT INTO system_prompts VALUES ('h', 'You are an agent.');
         INSERT INTO messages VALUES (x'00ff', 'user', 5.0, 'second', 's', 2, 0), (NULL, 'user', 9.0, 'first', 's', 1, 1);
         INSERT INTO newer VALUES ('s', 1), ('other', 2);",
    )
    .pop()
    .expect("a session");
    let texts: Vec<_> = one.of_type("message.added").iter().map(|e| e["data"]["parts"][0]["text"].clone()).collect();
    assert_eq!(texts, [json!("first"), json!("second")]);
    assert_eq!(one.of_type("message.added")[0]["data"]["purpose"], "summary");
    assert_eq!(one.of_type("config.set")[1]["data"]["instructions"], "You are an agent.");
    assert_eq!(one.row("messages", "2").expect("it is kept")["later"], json!({"$blob": "AP8="}));
    assert_eq!(one.of_type("x.com.nousresearch.hermes/newer").len(), 1);
    for code in ["store.unknown_version", "schema.unknown_type", "time.backwards"] {
        assert!(one.codes().contains(&code), "{code} in {:?}", one.codes());
    }
}

#[test]
fn times_in_another_unit_are_no_times() {
    let one =
        session("INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user', 'q', 1795953078514)");
    assert_eq!(one.of_type("message.added")[0]["time"], Value::Null);
    assert!(one.codes().contains(&"time.malformed"));
}

#[test]
fn jobs_that_a_session_made_are_kept_with_it() {
    let scenario = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance-fixtures/sources/hermes/15_title_cron");
    let home = tempfile::TempDir::new().expect("a folder");
    std::fs::create_dir(home.path().join("cron")).expect("a folder");
    std::fs::copy(scenario.join("state.db"), home.path().join("state.db")).expect("a database");
    std::fs::copy(scenario.join("cron-jobs.json"), home.path().join("cron/jobs.json")).expect("jobs");
    let one = support::import(home.path()).pop().expect("a session");
    let jobs = one.of_type("x.com.nousresearch.hermes/cron_job");
    // The other job was made by a person.
    assert_eq!((jobs.len(), &jobs[0]["data"]["record"]["id"]), (1, &json!("0a64cde7742f")));
    let input = one.report.inputs.iter().find(|input| input.format == "hermes.jobs").expect("the file is told of");
    assert_eq!((input.records, input.foreign), (1, 1));
}

#[test]
fn an_export_says_what_it_lacks() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance-fixtures/sources/hermes/06_compress_inplace/export.jsonl");
    let one = support::import(&path).pop().expect("a session");
    assert_eq!((one.codes(), one.verdict()), (vec!["session.partial_export"], Verdict::Idle));
    let line = std::fs::read(&path).expect("the export");
    let folder = tempfile::TempDir::new().expect("a folder");
    let session = &palog_hermes::discover(&path).expect("it can be read").sessions[0];
    let mut target = palog_hermes::Directory::new(folder.path());
    palog_hermes::import(session, &mut target, &palog_hermes::Options::default()).expect("an import");
    let kept = folder.path().join(format!("{}.palog.sources/export", one.session));
    assert_eq!(std::fs::read(kept).expect("it is kept"), line);
}

#[test]
fn a_cut_export_is_read_as_far_as_it_goes() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance-fixtures/sources/hermes/10_branch/export.jsonl");
    let bytes = std::fs::read(path).expect("the export");
    let folder = tempfile::TempDir::new().expect("a folder");
    let cut = folder.path().join("export.jsonl");
    std::fs::write(&cut, &bytes[..bytes.len() - 200]).expect("a copy");
    let all = support::import(&cut);
    assert_eq!(all.len(), 1);
    assert!(all[0].codes().contains(&"framing.torn_tail"), "{:?}", all[0].codes());
}
