//! What a result says of its call, and what only looks as if it did.

use palog::events::Applied;
use palog::state::ActionState::{self, Denied, Failed, Running, Succeeded, Unknown};
use serde_json::{Value, json};

use crate::session::{Imported, Session};

const DECLINED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nno";
const REJECTED: &str = "User rejected tool use";

/// A call of the tool `name` with this result, and a final answer.
fn called(name: &str, text: &str, is_error: Value, members: Value) -> ActionState {
    let session = Session::new().prompt("Deploy it.").call("c1", name);
    session.result("c1", text, is_error, members).says("m2", Some("end_turn")).import().is("c1")
}

/// An error of the tool `name`, with the structured copy that the client makes.
fn error(name: &str, text: &str) -> (ActionState, Applied) {
    let session = Session::new().prompt("Deploy it.").call("c1", name);
    let members = json!({"toolUseResult": format!("Error: {text}")});
    let imported = session.result("c1", text, json!(true), members).says("m2", Some("end_turn")).import();
    (imported.is("c1"), imported.action("c1").applied)
}

#[test]
fn only_a_known_kind_of_denial_denies_and_only_an_error() {
    let of = |kind: Value, is_error: Value| called("Bash", "no", is_error, json!({"toolDenialKind": kind}));
    assert_eq!(of(json!("user-rejected"), json!(true)), Denied);
    assert_eq!(of(json!("permission-rule"), json!(true)), Denied);
    for kind in ["interrupted", "cancelled", "", "user", "user-told", "of-the-future"] {
        assert_eq!(of(json!(kind), json!(true)), Unknown, "{kind:?}");
    }
    for kind in [json!(7), json!({}), json!(["user-rejected"])] {
        assert_eq!(of(kind.clone(), json!(true)), Unknown, "{kind}");
    }
    for kind in ["user-rejected", "permission-rule", "of-the-future"] {
        assert_eq!(of(json!(kind), Value::Null), Unknown, "it is no error: {kind}");
        assert_eq!(of(json!(kind), json!(false)), Unknown, "it is no error: {kind}");
    }
    assert_eq!(of(Value::Null, Value::Null), Succeeded);
}

#[test]
fn a_mark_of_an_error_that_nobody_knows_says_nothing() {
    for mark in [json!("true"), json!("false"), json!(1), json!({})] {
        assert_eq!(called("Bash", "Exit code 1", mark.clone(), json!({})), Unknown, "{mark}");
    }
    for mark in [json!(false), Value::Null] {
        assert_eq!(called("Bash", "done", mark.clone(), json!({})), Succeeded, "{mark}");
    }
    let mut session = Session::new().prompt("Deploy it.").call("c1", "Bash");
    let block = json!({"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": true});
    let record = session.next(json!({"type": "user", "message": {"role": "user", "content": [block]}})).to_string();
    let twice = record.replace("\"is_error\":true", "\"is_error\":true,\"is_error\":false");
    assert_eq!(session.line(twice).import().is("c1"), Unknown);
}

#[test]
fn a_structured_result_with_a_member_that_stands_twice_says_nothing() {
    let mut session = Session::new().prompt("Deploy it.").call("c1", "Bash");
    let result = json!([{"type": "tool_result", "tool_use_id": "c1", "content": "It runs."}]);
    let members = json!({"type": "user", "message": {"role": "user", "content": result}, "toolUseResult": {"backgroundTaskId": "b1"}});
    let record = session.next(members).to_string();
    let twice = record.replace("\"backgroundTaskId\":\"b1\"", "\"backgroundTaskId\":\"b1\",\"backgroundTaskId\":null");
    assert_eq!(session.line(twice).import().is("c1"), Unknown);
}

#[test]
fn words_of_a_refusal_count_only_where_the_tool_cannot_write_them() {
    let permission = |name: &str| format!("Permission to use {name} has been denied.");
    for name in ["Bash", "Read", "Edit", "Write", "Grep"] {
        assert_eq!(error(name, &permission(name)), (Denied, Applied::No), "{name}");
        assert_eq!(error(name, DECLINED), (Denied, Applied::No), "{name}");
    }
    let with_command = "Permission to use Bash with command curl x has been denied.";
    assert_eq!(error("Bash", with_command), (Denied, Applied::No));
    // A tool that says what others told it can say this as well; so nobody knows whether it ran.
    for name in ["Agent", "Task", "mcp__a__b", "Skill", "Weird"] {
        for text in [&permission(name), &permission("Bash"), DECLINED, "<tool_use_error>no</tool_use_error>"] {
            assert_eq!(error(name, text), (Unknown, Applied::Unknown), "{name}: {text}");
        }
    }
    for name in ["WebFetch", "TaskOutput", "BashOutput"] {
        assert_eq!(error(name, &permission(name)).0, Failed, "{name}");
    }
    assert_eq!(error("Read", &permission("Bash")), (Failed, Applied::No), "the client names the tool that it refuses");
    assert_eq!(error("mcp__a__b", "no such host"), (Failed, Applied::Yes));
    // Without the copy beside it, the text alone does not tell who wrote it.
    let session = Session::new().prompt("Go.").call("c1", "Weird");
    let imported = session.result("c1", "<tool_use_error>no", json!(true), json!({})).import();
    assert_eq!(imported.is("c1"), Unknown);
}

#[test]
fn a_refusal_that_the_next_record_confirms_needs_a_tool_that_cannot_write_it() {
    let note = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    let rejected = |name: &str| {
        let session = Session::new().prompt("Deploy it.").call("c1", name);
        let session = session.result("c1", "no", json!(true), json!({"toolUseResult": REJECTED}));
        session.record(json!({"type": "user", "message": {"role": "user", "content": note}})).import().is("c1")
    };
    assert_eq!(rejected("Bash"), Denied);
    assert_eq!(rejected("Write"), Denied);
    for name in ["mcp__a__b", "Weird"] {
        assert_eq!(rejected(name), Unknown, "{name}");
    }
}

/// A command in the background, and a text of the client about one.
fn notified(text: &str) -> Imported {
    let session = Session::new().prompt("Deploy it.").call("c1", "Bash");
    let session = session.result("c1", "It runs.", Value::Null, json!({"toolUseResult": {"backgroundTaskId": "b1"}}));
    let session = session.says("m2", Some("end_turn"));
    let members =
        json!({"type": "user", "message": {"role": "user", "content": text}, "origin": {"kind": "task-notification"}});
    session.record(members).says("m3", Some("end_turn")).import()
}

#[test]
fn a_notification_is_read_where_the_client_writes_it() {
    let of = |head: &str| notified(&format!("<task-notification>\n{head}\n</task-notification>")).is("c1");
    let call = "<tool-use-id>c1</tool-use-id>";
    assert_eq!(
        of(&format!("<task-id>b1</task-id>\n{call}\n<status>completed</status>\n<summary>Done.</summary>")),
        Succeeded
    );
    assert_eq!(
        of(&format!("<task-id>b1</task-id>\n{call}\n<output-file>/t/b1</output-file>\n<status>completed</status>")),
        Succeeded
    );
    for head in [
        format!(
            "<task-id>b2</task-id>\n<status>completed</status>\n<summary>Command \"echo {call}\" completed</summary>"
        ),
        format!("<task-id>b2</task-id>\n<summary>\n{call}\n<status>completed</status>\n</summary>"),
        format!("<task-id>b2</task-id>\n{call}\n<summary>Done.</summary>\n<status>completed</status>"),
        format!("<task-id>b2</task-id>\n{call}\n{call}\n<status>completed</status>"),
        format!("<task-id>b2</task-id>\n<tool-use-id>c2</tool-use-id>\n{call}\n<status>completed</status>"),
        format!("It printed:\n{call}\n<status>completed</status>"),
        format!("{call} <status>completed</status>"),
    ] {
        assert_eq!(of(&head), Running, "{head}");
    }
    assert_eq!(
        notified(&format!("See: <task-notification>\n{call}\n<status>completed</status>\n</task-notification>"))
            .is("c1"),
        Running
    );
}

#[test]
fn actions_have_names_of_their_own_whatever_the_ids_of_the_calls() {
    let session = Session::new().prompt("Deploy it.");
    let session = session.call("t", "Bash").result("t", "done", Value::Null, json!({}));
    let session = session.call("t#2", "Bash").call("t", "Bash").result("t", "done", Value::Null, json!({}));
    let imported = session.import();
    let states: Vec<(&str, ActionState)> =
        imported.state.actions.iter().map(|a| (a.action.as_str(), a.state)).collect();
    assert_eq!(states, [("t", Succeeded), ("t#2#1", Unknown), ("t#2", Succeeded)]);
}

#[test]
fn a_server_does_not_name_the_agent_that_a_call_started() {
    let of = |name: &str| {
        let session = Session::new().prompt("Go.").call("c1", name);
        let members = json!({"toolUseResult": {"status": "completed", "agentId": "a1"}});
        session.result("c1", "done", Value::Null, members).import().of_type("child.spawned").count()
    };
    assert_eq!((of("Agent"), of("mcp__a__b")), (1, 0));
}
