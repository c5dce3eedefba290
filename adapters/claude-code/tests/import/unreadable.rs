//! What cannot be read may be a call: it never makes a session look finished.

use palog::diagnostic::Code;
use palog::recover::Verdict;
use palog::state::ActionState;
use serde_json::{Value, json};

use crate::session::{Imported, Session, response};

fn deploy() -> Value {
    json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "deploy"}})
}

/// A record with a call, after `change` was made to its text.
fn changed(stop: Option<&str>, content: Value, change: impl Fn(String) -> String) -> Imported {
    let mut session = Session::new().prompt("Deploy it.");
    let record = session.next(response("m1", stop, content)).to_string();
    let text = change(record.clone());
    assert_ne!(text, record, "nothing was changed");
    session.line(text).import()
}

fn twice(member: &'static str, again: &'static str) -> impl Fn(String) -> String {
    move |text| text.replacen(member, &format!("{again},{member}"), 1)
}

#[test]
fn a_call_is_seen_whatever_is_wrong_with_its_members() {
    let block = |name: &str, value: Value| {
        let mut block = deploy();
        block[name] = value;
        json!([block])
    };
    let nothing = |text: String| text + " ";
    let cases: Vec<(&str, Imported)> = vec![
        ("no name", changed(None, block("name", Value::Null), nothing)),
        ("name is a number", changed(None, block("name", json!(7)), nothing)),
        ("two names", changed(None, json!([deploy()]), twice(r#""name":"Bash""#, r#""name":"Read""#))),
        ("the same name twice", changed(None, json!([deploy()]), twice(r#""name":"Bash""#, r#""name":"Bash""#))),
        (
            "two names in a final answer",
            changed(Some("end_turn"), json!([deploy()]), twice(r#""name":"Bash""#, r#""name":"Read""#)),
        ),
        ("two inputs", changed(None, json!([deploy()]), twice(r#""input":{"#, r#""input":1"#))),
        (
            "the kind of the record stands twice",
            changed(None, json!([deploy()]), twice(r#""type":"assistant""#, r#""type":"assistant""#)),
        ),
        ("two ids of the response", changed(None, json!([deploy()]), twice(r#""id":"m1""#, r#""id":"m2""#))),
        ("a block in place of a list", changed(None, deploy(), nothing)),
    ];
    for (what, imported) in cases {
        assert_eq!(imported.verdict(), Verdict::NeedsReconcile, "{what}");
        let action = imported.action("c1");
        assert_eq!(action.state, ActionState::Unknown, "{what}");
        assert!(!action.only_reads(), "{what}");
    }
}

#[test]
fn a_call_without_an_id_is_a_call() {
    let mut block = deploy();
    block["id"] = Value::Null;
    for content in [json!([block]), json!([{"type": "text", "text": "Now."}, block, block])] {
        let imported = Session::new().prompt("Deploy it.").model("m1", None, content).import();
        assert_eq!(imported.verdict(), Verdict::NeedsReconcile);
        assert!(imported.state.actions.iter().all(|a| a.state == ActionState::Unknown));
    }
    let imported = Session::new().prompt("Deploy it.").model("m1", None, json!([block, block])).import();
    assert_eq!(imported.state.actions.len(), 2);
}

#[test]
fn a_call_in_a_record_that_the_client_made_is_a_call() {
    for members in [json!({"isApiErrorMessage": true}), json!({})] {
        let mut record = response("m1", None, json!([deploy()]));
        record["message"]["model"] = json!("<synthetic>");
        crate::session::merge(&mut record, members);
        let imported = Session::new().prompt("Deploy it.").record(record).import();
        assert_eq!(imported.verdict(), Verdict::NeedsReconcile);
    }
}

#[test]
fn a_call_that_cannot_be_read_is_kept_as_it_stands() {
    let imported = changed(None, json!([deploy()]), twice(r#""name":"Bash""#, r#""name":"Read""#));
    let kept: Vec<&Value> = imported.of_type("x.com.anthropic.claude-code/assistant").collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(imported.count(Code::UnexpectedShape), 1);
    // What became of it is told as of any other.
    let mut block = deploy();
    block["name"] = Value::Null;
    let session = |text: &str, error: Value| {
        let session = Session::new().prompt("Deploy it.").model("m1", Some("tool_use"), json!([block.clone()]));
        session.result("c1", text, error, json!({})).says("m2", Some("end_turn")).import()
    };
    assert_eq!(session("done", Value::Null).is("c1"), ActionState::Succeeded);
    assert_eq!(
        session("<tool_use_error>no", json!(true)).is("c1"),
        ActionState::Unknown,
        "whose error it is nobody knows"
    );
}

/// A text of a response whose stop is not known, and then something.
fn text_and(then: impl FnOnce(Session) -> Session) -> Imported {
    then(Session::new().prompt("Deploy it.").says("m1", None)).import()
}

fn call_record() -> String {
    let mut session = Session::new().prompt("Deploy it.").says("m1", None);
    session.next(response("m1", None, json!([deploy()]))).to_string()
}

#[test]
fn what_cannot_be_read_behind_a_text_may_be_the_call_that_belongs_to_it() {
    assert_eq!(text_and(|s| s).verdict(), Verdict::Idle, "a text alone answers");
    let call = call_record();
    let torn = &call[..call.len() - 20];
    let cases: Vec<(&str, Imported)> = vec![
        ("torn", text_and(|s| s.bytes(torn))),
        ("a fragment", text_and(|s| s.line(torn))),
        ("a hole", text_and(|s| s.line([0; 900]))),
        ("a value that is no record", text_and(|s| s.line("[1]"))),
        ("a kind that is not known", text_and(|s| s.record(json!({"type": "of-the-future"})))),
        ("no content", text_and(|s| s.record(json!({"type": "assistant", "message": {"id": "m1"}})))),
        ("content of another form", text_and(|s| s.model("m1", None, json!(7)))),
        ("a block that is not known", text_and(|s| s.model("m1", None, json!([{"type": "tool_use_2"}])))),
        ("a block without a kind", text_and(|s| s.model("m1", None, json!(["x"])))),
        ("before the text", Session::new().prompt("Deploy it.").line(torn).says("m1", None).import()),
    ];
    for (what, imported) in cases {
        assert_eq!(imported.verdict(), Verdict::Ready, "{what}");
        assert!(imported.warns_of_unseen_calls(), "{what}");
    }
}

#[test]
fn a_call_in_a_record_of_no_known_kind_is_a_call() {
    let call = call_record();
    let two_kinds = twice(r#""type":"assistant""#, r#""type":"user""#)(call.clone());
    for line in [call.replace("\"assistant\"", "\"Assistant\""), two_kinds] {
        let imported = text_and(|s| s.line(&line));
        assert_eq!((imported.verdict(), imported.is("c1")), (Verdict::NeedsReconcile, ActionState::Unknown), "{line}");
        let proposed = imported.of_type("action.proposed").next().expect("a proposal");
        assert_eq!(proposed["src"][0]["how"], "synthesized");
    }
}

#[test]
fn what_cannot_be_read_elsewhere_takes_no_answer_back() {
    let torn = r#"{"type":"assistant","uuid":"x""#;
    let cases = [
        ("behind a stop", Session::new().prompt("Go.").says("m1", Some("end_turn")).line(torn).import()),
        (
            "before a stop",
            Session::new().prompt("Go.").says("m1", None).line(torn).says("m1", Some("end_turn")).import(),
        ),
        (
            "before a later answer",
            Session::new().prompt("Go.").says("m1", None).line(torn).prompt("On.").says("m2", None).import(),
        ),
        (
            "a kind that is kept",
            Session::new().prompt("Go.").says("m1", None).record(json!({"type": "progress", "data": {}})).import(),
        ),
    ];
    for (what, imported) in cases {
        assert_eq!(imported.verdict(), Verdict::Idle, "{what}");
        assert!(imported.warns_of_unseen_calls(), "{what}");
    }
}

#[test]
fn a_call_that_was_asked_for_and_cannot_be_found_blocks() {
    let asks = || Session::new().prompt("Deploy it.").says("m1", Some("tool_use"));
    let call = |block: Value| asks().model("m1", Some("tool_use"), json!([block]));
    let text = {
        let mut session = asks();
        session.next(response("m1", Some("tool_use"), json!([deploy()]))).to_string()
    };
    let mut renamed = deploy();
    renamed["type"] = json!("Tool_Use");
    let cases: Vec<(&str, Session)> = vec![
        ("dropped", asks()),
        ("torn", asks().bytes(&text[..text.len() - 20])),
        ("a fragment", asks().line(&text[..text.len() - 20])),
        ("an odd block", call(renamed.clone())),
        ("an odd block alone", Session::new().prompt("Go.").model("m1", Some("tool_use"), json!([renamed]))),
        ("no message", asks().line(text.replace("\"message\":", "\"Message\":"))),
        ("no content", asks().line(text.replace("\"content\":", "\"Content\":"))),
        (
            "no content anywhere",
            Session::new()
                .prompt("Go.")
                .record(json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "tool_use"}})),
        ),
        ("an empty list", Session::new().prompt("Go.").model("m1", Some("tool_use"), json!([]))),
        ("a later answer in the turn", asks().says("m2", Some("end_turn"))),
    ];
    for (what, session) in cases {
        assert_eq!(session.import().verdict(), Verdict::NeedsReconcile, "{what}");
    }
    let passed = asks().prompt("Next.").says("m2", Some("end_turn")).import();
    assert_eq!(passed.verdict(), Verdict::Idle);
    assert_eq!(passed.recovery.obligations.len(), 1, "it is told");
}

/// An open call, this record of the user's side, and a final answer.
fn beside_a_call(record: Value) -> Imported {
    let mut members = json!({"type": "user"});
    crate::session::merge(&mut members, record);
    let prompt = json!({"type": "user", "promptId": "p1", "message": {"role": "user", "content": "Deploy it."}});
    Session::new().record(prompt).call("c1", "Bash").record(members).says("m2", Some("end_turn")).import()
}

#[test]
fn what_may_be_a_result_is_no_prompt() {
    let content = |content: Value| json!({"message": {"role": "user", "content": content}});
    let block = |kind: Value| content(json!([{"type": kind, "tool_use_id": "c1", "content": "ok"}]));
    let marked = |member: &str, value: Value| {
        let mut record = content(json!("ok"));
        record[member] = value;
        record
    };
    let cases = [
        ("another case", block(json!("Tool_Result"))),
        ("no kind", block(Value::Null)),
        ("another kind", block(json!("web_search_tool_result"))),
        ("an id beside a text", content(json!([{"type": "text", "text": "ok", "tool_use_id": "c1"}]))),
        ("an unknown block", content(json!([{"type": "of-the-future"}]))),
        ("an unknown block beside a text", content(json!([{"type": "text", "text": "a"}, {"type": "of-the-future"}]))),
        ("no block", content(json!([]))),
        ("a number", content(json!(7))),
        ("no text", content(json!(""))),
        ("an empty text", content(json!([{"type": "text", "text": ""}]))),
        ("a copy", marked("toolUseResult", json!({"stdout": "ok"}))),
        ("a caller", marked("sourceToolAssistantUUID", json!("u2"))),
        ("the turn", marked("promptId", json!("p1"))),
    ];
    for (what, record) in cases {
        let imported = beside_a_call(record);
        assert_eq!(imported.verdict(), Verdict::NeedsReconcile, "{what}");
        assert_eq!(imported.of_type("turn.started").count(), 1, "{what}");
        assert!(!imported.action("c1").passed_over, "{what}");
        assert_eq!(imported.state.counts.prompts.0, 1, "{what}");
        assert_eq!(imported.of_type("note.added").filter(|n| n["data"]["kind"] == "unread").count(), 1, "{what}");
        assert_eq!(imported.count(Code::UnexpectedShape), 1, "{what}");
    }
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let document =
        json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}});
    for blocks in [json!("Next."), json!([picture]), json!([document, {"type": "text", "text": "Next."}])] {
        let imported = beside_a_call(content(blocks.clone()));
        assert!(imported.action("c1").passed_over, "{blocks}");
    }
    let mut typed = block(json!("of-the-future"));
    typed["message"]["content"] = json!([{"type": "of-the-future"}, {"type": "text", "text": "Next."}]);
    typed["promptSource"] = json!("typed");
    typed["promptId"] = json!("p1");
    assert!(beside_a_call(typed).action("c1").passed_over);
}

#[test]
fn a_known_kind_in_an_unknown_form_may_be_the_call_that_belongs_to_a_text() {
    let message = || json!({"id": "m1", "content": [deploy()]});
    let with_message = |mut record: Value| {
        record["message"] = message();
        record
    };
    let cases = [
        json!({"type": "system"}),
        json!({"type": "system", "subtype": "of-the-future"}),
        json!({"type": "progress"}),
        json!({"type": "attachment"}),
        json!({"type": "mode"}),
        json!({"type": "permission-mode"}),
        json!({"type": "summary"}),
        json!({"type": "queue-operation"}),
        json!({"type": null}),
        with_message(json!({"type": "system", "subtype": "informational"})),
        with_message(json!({"type": "system", "subtype": "turn_duration"})),
        with_message(json!({"type": "progress", "data": {"type": "bash_progress"}})),
        with_message(json!({"type": "attachment", "attachment": {"type": "task_reminder"}})),
        with_message(json!({"type": "mode", "mode": "normal"})),
        with_message(json!({"type": "summary", "summary": "x"})),
        with_message(json!({"type": "queue-operation", "operation": "dequeue"})),
        with_message(json!({"type": "last-prompt", "leafUuid": "u1"})),
        with_message(json!({"type": "file-history-snapshot"})),
    ];
    for record in cases {
        let imported = text_and(|s| s.record(record.clone()));
        assert_eq!(imported.verdict(), Verdict::Ready, "{record}");
        assert_eq!(imported.count(Code::UnexpectedShape) + imported.count(Code::UnknownType), 1, "{record}");
    }
}

#[test]
fn a_torn_line_behind_a_record_of_the_client_may_be_the_call_that_belongs_to_a_text() {
    let call = call_record();
    let torn = &call[..call.len() - 20];
    let cases = [
        json!({"type": "mode", "mode": "normal"}),
        json!({"type": "attachment", "attachment": {"type": "task_reminder"}}),
        json!({"type": "system", "subtype": "local_command", "content": "<command-name>/x</command-name>"}),
        json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "Remember."}}),
        json!({"type": "queue-operation", "operation": "remove"}),
        json!({"type": "last-prompt", "lastPrompt": "x"}),
    ];
    for record in cases {
        assert_eq!(text_and(|s| s.record(record.clone())).verdict(), Verdict::Idle, "{record}");
        assert_eq!(text_and(|s| s.record(record.clone()).bytes(torn)).verdict(), Verdict::Ready, "{record}");
    }
}
