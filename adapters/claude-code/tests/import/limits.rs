//! What is too long for a line of a log: nothing of a session is lost for it.

use std::io;

use palog::diagnostic::Code;
use palog::recover::Verdict;
use palog::state::ActionState;
use palog::writer::WriteError;
use palog_claude_code::{ImportError, Options, Stream, discover, import};
use serde_json::{Value, json};

use crate::session::{Imported, Session, merge, response};

/// Longer than an id, a name or a word can be.
fn long() -> String {
    "x".repeat(70 << 10)
}

/// A session with a record, and a call behind it.
fn with(record: Value) -> Imported {
    Session::new().prompt("Deploy it.").record(record).call("c1", "Bash").import()
}

/// The record is kept as it stands, that is told, and what is behind it is read.
fn hold_kept(what: &str, imported: &Imported) {
    assert_eq!(imported.verdict(), Verdict::NeedsReconcile, "{what}");
    assert_eq!(imported.is("c1"), ActionState::Unknown, "{what}");
    assert!(imported.count(Code::UnexpectedShape) + imported.count(Code::UnknownType) > 0, "{what}");
    let kept = |e: &&Value| e["type"].as_str().is_some_and(|t| t.starts_with("x.") && t.len() < 300);
    let long = |e: &Value| e["data"]["record"].to_string().len() > 60 << 10;
    assert!(imported.events.iter().filter(kept).any(long), "{what}");
}

#[test]
fn a_word_that_is_too_long_is_kept_and_loses_nothing() {
    let text = || json!([{"type": "text", "text": "So be it."}]);
    let user = |more: Value| {
        let mut record = json!({"type": "user", "message": {"role": "user", "content": "Go."}});
        merge(&mut record, more);
        record
    };
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]);
    let cases = [
        ("type", user(json!({"type": long()}))),
        ("subtype", json!({"type": "system", "subtype": long()})),
        ("uuid", user(json!({"uuid": long()}))),
        ("parent", user(json!({"parentUuid": long()}))),
        ("session", user(json!({"sessionId": long()}))),
        ("turn", user(json!({"promptId": long()}))),
        ("mode", user(json!({"permissionMode": long()}))),
        ("version", user(json!({"version": long()}))),
        ("directory", user(json!({"cwd": long()}))),
        ("branch", user(json!({"gitBranch": long()}))),
        ("agent", user(json!({"agentId": long()}))),
        ("title", json!({"type": "custom-title", "customTitle": long()})),
        ("leaf", json!({"type": "last-prompt", "leafUuid": long()})),
        ("attachment", json!({"type": "attachment", "attachment": {"type": long()}})),
        ("response", response(&long(), Some("end_turn"), text())),
        ("stop", response("m1", Some(&long()), text())),
        ("result", user(json!({"message": {"role": "user", "content": result(&long())}}))),
        ("error", {
            let mut record = response("m1", None, text());
            merge(&mut record, json!({"isApiErrorMessage": true, "error": long()}));
            record
        }),
    ];
    for (what, record) in cases {
        hold_kept(what, &with(record));
    }
}

#[test]
fn a_call_whose_id_or_name_is_too_long_is_a_call() {
    for (id, name) in [(long(), "Bash".to_owned()), ("c2".to_owned(), long())] {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let imported = with(response("m1", Some("tool_use"), json!([block])));
        assert_eq!(imported.state.actions.len(), 2);
        assert!(imported.state.actions.iter().all(|a| a.state == ActionState::Unknown && a.action.len() < 100));
        hold_kept("a call", &imported);
    }
}

#[test]
fn a_message_of_many_calls_holds_them_all() {
    let call = |n: usize| json!({"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {}});
    let content: Vec<Value> = (0..25_000).map(call).collect();
    let imported = Session::new().prompt("Go.").model("m1", Some("tool_use"), json!(content)).import();
    assert_eq!(imported.state.actions.len(), 25_000);
    let of_model = |e: &&Value| e["data"]["role"] == "assistant";
    let messages: Vec<&Value> = imported.of_type("message.added").filter(of_model).collect();
    assert!(messages.iter().all(|m| m["data"]["response"] == "m1"));
    let parts: Vec<usize> = messages.iter().map(|m| m["data"]["parts"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(parts, [10_000, 10_000, 5_000]);
}

#[test]
fn what_a_record_becomes_can_be_too_long() {
    let names: Vec<String> = (0..300_000).map(|n| format!("{n:060}")).collect();
    let imported = with(json!({"type": "attachment", "attachment": {"type": "skill_listing", "names": names}}));
    assert_eq!(imported.of_type("x.com.anthropic.claude-code/attachment/skill_listing").count(), 1);
    assert_eq!(imported.count(Code::UnexpectedShape), 1);
    assert_eq!(imported.is("c1"), ActionState::Unknown);
}

#[test]
fn a_stream_without_a_place_for_large_values_refuses_them() {
    let session = Session::new().prompt("Go.").call("c1", "Bash");
    let session = session.result("c1", &"x".repeat(17 << 20), Value::Null, json!({}));
    let found = discover(&session.write()).expect("it can be read");
    let refused = import(&found.sessions[0], &mut Stream::new(io::sink()), &Options::default());
    assert!(matches!(refused, Err(ImportError::Write(WriteError::LineTooLong { .. }))));
}
