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

/// A call of the tool `name` with this input and this result.
fn called_with(name: &str, input: Value, text: &str, members: Value) -> Imported {
    let block = json!({"type": "tool_use", "id": "c1", "name": name, "input": input});
    let session = Session::new().prompt("Deploy it.").model("m1", Some("tool_use"), json!([block]));
    session.result("c1", text, Value::Null, members).says("m2", Some("end_turn")).import()
}

#[test]
fn what_goes_on_in_the_background_has_not_succeeded_whatever_tells_of_it() {
    let command = "Command running in background with ID: b1. Output is being written to: /t/b1.output.";
    let moved = "Command was manually backgrounded by user with ID: b1.";
    let plain = json!({"command": "deploy"});
    let cases = [
        ("the call, no copy", "Bash", json!({"run_in_background": true}), "ok", json!({})),
        ("the call, odd", "Bash", json!({"run_in_background": "true"}), "ok", json!({})),
        ("the call, a text as copy", "Bash", json!({"run_in_background": true}), "ok", json!({"toolUseResult": "ok"})),
        ("the call of an agent", "Agent", json!({"run_in_background": true}), "ok", json!({})),
        ("words", "Bash", plain.clone(), command, json!({})),
        ("words, a text as copy", "Bash", plain.clone(), command, json!({"toolUseResult": command})),
        ("words, a list as copy", "Bash", plain.clone(), command, json!({"toolUseResult": [command]})),
        ("other words", "Bash", plain.clone(), moved, json!({})),
        ("words of an agent", "Agent", plain.clone(), "Async agent launched successfully.\nagentId: a1", json!({})),
        ("an id that is a number", "Bash", plain.clone(), "ok", json!({"toolUseResult": {"backgroundTaskId": 7}})),
        (
            "an id in another spelling",
            "Bash",
            plain.clone(),
            "ok",
            json!({"toolUseResult": {"background_task_id": "b"}}),
        ),
        ("a flag", "Agent", plain.clone(), "ok", json!({"toolUseResult": {"isAsync": true, "agentId": "a1"}})),
        ("a renamed status", "Agent", plain.clone(), "ok", json!({"toolUseResult": {"status": "Async_launched"}})),
    ];
    for (what, name, input, text, members) in cases {
        let imported = called_with(name, input, text, members);
        assert!(matches!(imported.is("c1"), Running | Unknown), "{what}: {:?}", imported.is("c1"));
        assert_eq!(imported.verdict(), palog::recover::Verdict::NeedsReconcile, "{what}");
    }
    for input in [json!({"run_in_background": false}), json!({"run_in_background": null}), plain] {
        assert_eq!(called_with("Bash", input, "ok", json!({})).is("c1"), Succeeded);
    }
    let completed = json!({"toolUseResult": {"status": "completed", "agentId": "a1"}});
    assert_eq!(called_with("Agent", json!({}), "ok", completed).is("c1"), Succeeded);
}

#[test]
fn a_structured_copy_beside_two_results_may_belong_to_either() {
    let of = |copy: Value| {
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        let session = Session::new().prompt("Go.").model("m1", Some("tool_use"), json!([call("c1"), call("c2")]));
        let content = json!([result("c1"), result("c2")]);
        let record = json!({"type": "user", "toolUseResult": copy, "message": {"role": "user", "content": content}});
        let imported = session.record(record).says("m2", Some("end_turn")).import();
        (imported.is("c1"), imported.is("c2"))
    };
    assert_eq!(of(json!({"backgroundTaskId": "b1"})), (Unknown, Unknown));
    assert_eq!(of(json!({"interrupted": true})), (Unknown, Unknown));
    assert_eq!(of(json!({"interrupted": false})), (Succeeded, Succeeded));
}

#[test]
fn an_interruption_in_an_odd_form_says_nothing() {
    let of = |copy: Value| called("Bash", "ok", Value::Null, json!({"toolUseResult": copy}));
    for value in [json!("true"), json!(1), json!({}), json!("")] {
        assert_eq!(of(json!({"interrupted": value.clone()})), Unknown, "{value}");
    }
    assert_eq!(of(json!({"Interrupted": true})), Unknown);
    assert_eq!(of(json!({"interrupted": true})), ActionState::Cancelled);
    assert_eq!(of(json!({"interrupted": false})), Succeeded);
}

#[test]
fn a_refusal_of_what_has_an_exit_code_says_nothing() {
    let of = |text: &str, members: Value| {
        let session = Session::new().prompt("Deploy it.").call("c1", "Bash").result("c1", text, json!(true), members);
        let note = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
        session.record(json!({"type": "user", "message": {"role": "user", "content": note}})).import().is("c1")
    };
    assert_eq!(of("Exit code 1", json!({"toolUseResult": REJECTED})), Unknown);
    for kind in ["user-rejected", "permission-rule"] {
        assert_eq!(of("Exit code 1", json!({"toolDenialKind": kind})), Unknown);
        assert_eq!(of("no", json!({"toolDenialKind": kind, "toolUseResult": "Error: Exit code 1"})), Unknown);
        assert_eq!(of("no", json!({"toolDenialKind": kind, "toolUseResult": {"exitCode": 1}})), Unknown);
        assert_eq!(of("no", json!({"toolDenialKind": kind, "toolUseResult": {"code": 0}})), Unknown);
        assert_eq!(of("no", json!({"toolDenialKind": kind})), Denied);
    }
}

#[test]
fn only_the_very_next_record_confirms_a_refusal() {
    let of = |between: fn(Session) -> Session| {
        let session = Session::new().prompt("Deploy it.").call("c1", "Bash");
        let session = between(session.result("c1", "no", json!(true), json!({"toolUseResult": REJECTED})));
        let note = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
        session.record(json!({"type": "user", "message": {"role": "user", "content": note}})).import().is("c1")
    };
    assert_eq!(of(|s| s), Denied);
    let cases: [fn(Session) -> Session; 6] = [
        |s| s.line("{\"torn"),
        |s| s.line([0; 40]),
        |s| s.line("[1]"),
        |s| s.line(r#"{"type":"mode","mode":"plan","sessionId":"s"}"#),
        |s| s.record(json!({"type": "of-the-future"})),
        |s| s.record(json!({"type": "user", "isSidechain": true, "agentId": "a1", "message": {"content": "x"}})),
    ];
    for (case, between) in cases.into_iter().enumerate() {
        assert_eq!(of(between), Unknown, "{case}");
    }
}
