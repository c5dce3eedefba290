//! Ids of records that come again. That every log is valid is held by the import itself.

use palog::diagnostic::Code;
use palog::recover::Verdict;
use serde_json::{Value, json};

use crate::session::{Imported, SESSION, Session, response};

/// A session with these records, of which each has the same uuid.
fn repeated(records: &[Value]) -> Imported {
    let session = Session::new().prompt("Go.").says("m1", Some("end_turn"));
    let again = |session: Session, record: &Value| {
        let mut record = record.clone();
        record["uuid"] = json!("again");
        record["parentUuid"] = json!("u2");
        session.record(record)
    };
    records.iter().fold(session, again).import()
}

#[test]
fn ids_of_events_are_unique_whatever_is_repeated() {
    let kinds = |n: usize| {
        let text = ["one", "two"][n];
        [
            json!({"type": "mode", "mode": text}),
            json!({"type": "permission-mode", "permissionMode": text}),
            json!({"type": "custom-title", "customTitle": text}),
            json!({"type": "ai-title", "aiTitle": text}),
            json!({"type": "summary", "summary": text, "leafUuid": "u1"}),
            json!({"type": "last-prompt", "lastPrompt": text, "leafUuid": "u1"}),
            json!({"type": "queue-operation", "operation": "enqueue", "content": text}),
            json!({"type": "user", "isSidechain": true, "agentId": "a1", "message": {"role": "user", "content": text}}),
            json!({"type": "user", "message": {"role": "user", "content": text}}),
            json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": text}}),
            json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": text}}),
            json!({"type": "of-the-future", "text": text}),
        ]
    };
    for (first, other) in kinds(0).into_iter().zip(kinds(1)) {
        let what = first["type"].to_string();
        let mapped = |imported: &Imported| {
            imported.events.iter().filter(|e| e["copy"].is_null() && e["type"] != "note.added").count()
        };
        let same = repeated(&[first.clone(), first.clone()]);
        assert_eq!(mapped(&same), mapped(&repeated(std::slice::from_ref(&first))), "{what}: it says nothing new");
        if first["isSidechain"].is_null() {
            assert_eq!((same.count(Code::Replay), same.count(Code::IdReused)), (1, 0), "{what}");
            let changed = repeated(&[first.clone(), other]);
            assert_eq!((changed.count(Code::Replay), changed.count(Code::IdReused)), (0, 1), "{what}");
        }
    }
    for other in kinds(0) {
        repeated(&[kinds(0)[0].clone(), other.clone()]);
        repeated(&[other, kinds(0)[0].clone()]);
    }
}

#[test]
fn a_record_can_have_any_id() {
    for id in ["source", "spawned", "log", "own", "at", ""] {
        let record = json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "Go."}});
        Session::new().record(record.clone()).says("m1", Some("end_turn")).import();
        let mut child = record;
        crate::session::merge(&mut child, json!({"isSidechain": true, "agentId": "a1"}));
        Session::new().prompt("Go.").record(child).import();
    }
}

#[test]
fn another_thing_that_is_said_under_an_id_is_no_replay() {
    let prompt = || json!({"type": "user", "message": {"role": "user", "content": "Go."}});
    let result = |members: Value| {
        let block = json!({"type": "tool_result", "tool_use_id": "c1", "content": "It runs."});
        let mut record = json!({"type": "user", "message": {"role": "user", "content": [block]}});
        crate::session::merge(&mut record, members);
        record
    };
    let with = |mut record: Value, members: Value| {
        crate::session::merge(&mut record, members);
        record
    };
    let text = json!([{"type": "text", "text": "Now."}]);
    let pairs = [
        (prompt(), with(prompt(), json!({"isMeta": true}))),
        (prompt(), with(prompt(), json!({"origin": {"kind": "task-notification"}}))),
        (prompt(), with(prompt(), json!({"isCompactSummary": true}))),
        (result(json!({})), result(json!({"toolUseResult": {"backgroundTaskId": "b1"}}))),
        (result(json!({})), result(json!({"toolDenialKind": "user-rejected"}))),
        (response("m2", None, text.clone()), response("m2", Some("tool_use"), text)),
    ];
    for (first, other) in pairs {
        assert_eq!(repeated(&[first.clone(), other.clone()]).count(Code::IdReused), 1, "{other}");
        // Where and when a record was written down makes no other one of it.
        let members = json!({"timestamp": "2026-11-29T12:00:00.000Z", "cwd": "/w", "version": "2", "gitBranch": "b", "requestId": "r"});
        assert_eq!(repeated(&[first.clone(), with(first, members)]).count(Code::Replay), 1, "{other}");
    }
}

#[test]
fn a_stop_that_comes_later_under_the_same_id_counts() {
    let text = json!([{"type": "text", "text": "Now."}]);
    let session = Session::new().prompt("Go.").record(response("m1", None, text.clone()));
    let mut again = response("m1", Some("tool_use"), text);
    again["uuid"] = json!("u2");
    again["sessionId"] = json!(SESSION);
    assert_eq!(
        session.record(again).import().verdict(),
        Verdict::NeedsReconcile,
        "the call that it asked for is nowhere"
    );
}
