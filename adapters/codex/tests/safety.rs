//! Whatever a rollout holds: what may have run is never taken for done, for refused, or for not begun.

mod support;

use palog::recover::Verdict;
use serde_json::{Value, json};
use support::{begin, call, done, end, event, header, item, line, made, numbered, output, say, text};

/// A paginated rollout in which `lines` follow a prompt. Its turn is not over.
fn asked(lines: &[Value]) -> String {
    let all: Vec<Value> =
        [header("paginated"), begin("t1"), say("user", "Go.")].into_iter().chain(lines.iter().cloned()).collect();
    text(&numbered(0, &all))
}

/// The same in the legacy dialect.
fn asked_legacy(lines: &[Value]) -> String {
    let all: Vec<Value> = [header("legacy"), say("user", "Go.")].into_iter().chain(lines.iter().cloned()).collect();
    text(&all)
}

fn ran(id: &str, turn: &str) -> Value {
    done("CommandExecution", id, turn, json!({"status": "completed", "exit_code": 0, "aggregated_output": "x"}))
}

const DENIED: &str = r#"exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }"#;

#[test]
fn an_end_of_one_use_of_an_id_is_not_that_of_another() {
    // The first command went on in the background, and ends after the second one with its id began.
    let twice =
        [call("c", "exec_command"), begin("t2"), say("user", "More."), call("c", "exec_command"), ran("c", "t1")];
    let made_up = made(asked(&twice));
    assert_eq!(made_up.actions(), ["c succeeded", "c#2 unknown"]);
    assert_eq!(made_up.verdict, Verdict::NeedsReconcile);
    // Both in one turn: nothing tells which.
    let same = [call("c", "exec_command"), call("c", "exec_command"), ran("c", "t1")];
    assert_eq!(made(asked(&same)).actions(), ["c unknown", "c#2 unknown"]);
    // The end of the first, told again.
    let again = [
        call("c", "exec_command"),
        ran("c", "t1"),
        begin("t2"),
        say("user", "More."),
        call("c", "exec_command"),
        ran("c", "t1"),
    ];
    assert_eq!(made(asked(&again)).actions(), ["c succeeded", "c#2 unknown"]);
    // The first call was lost, and the second has its id.
    for lost in [ran("c", "t1"), output("c", "Chunk ID: 1\nProcess exited with code 0\nOutput:\n")] {
        let later = made(asked(&[lost, begin("t2"), say("user", "More."), call("c", "exec_command")]));
        assert!(later.actions().contains(&"c#2 unknown".to_owned()), "{:?}", later.actions());
        assert_eq!(later.verdict, Verdict::NeedsReconcile);
    }
    // An id that looks like another one that was used again.
    let named = [
        call("c", "exec_command"),
        ran("c", "t1"),
        begin("t2"),
        call("c", "exec_command"),
        call("c#2", "exec_command"),
        ran("c#2", "t2"),
    ];
    assert_eq!(made(asked(&named)).actions(), ["c succeeded", "c#2 unknown", "c#2#2 succeeded"]);
}

#[test]
fn no_item_has_the_id_of_another_event() {
    for id in ["source", "log", "0", "", "about/transcript"] {
        let mut said = say("user", "Go.");
        said["payload"]["id"] = json!(id);
        let mut again = said.clone();
        again["payload"]["content"][0]["text"] = json!("Again.");
        let found = made(asked(&[said, again]));
        let mut ids: Vec<Value> = found.events().into_iter().map(|event| event["id"].clone()).collect();
        let all = ids.len();
        ids.sort_by_key(Value::to_string);
        ids.dedup();
        assert_eq!(ids.len(), all, "{id}");
    }
}

#[test]
fn what_a_tool_can_write_refuses_nothing() {
    let head = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n";
    let mcp = |name: &str, namespace: Option<&str>| {
        let mut members = json!({"call_id": "c", "name": name, "arguments": "{}"});
        if let Some(namespace) = namespace {
            members["namespace"] = json!(namespace);
        }
        item("function_call", members)
    };
    // Somebody else's tools.
    for (call, text) in [
        (mcp("echo", Some("mcp__demo")), DENIED),
        (mcp("echo", Some("mcp__demo")), "unsupported call: echo"),
        (mcp("exec_command", Some("mcp__demo")), DENIED),
        (mcp("demo__echo", None), "unsupported call: demo__echo"),
        (mcp("demo__echo", None), "failed to parse function arguments: x"),
        (mcp("write_file", None), DENIED),
    ] {
        for all in [asked(&[call.clone(), output("c", text)]), asked_legacy(&[call.clone(), output("c", text)])] {
            let found = made(all);
            assert_eq!(found.actions(), ["c unknown"], "{call}: {text}");
            assert_eq!(found.verdict, Verdict::NeedsReconcile);
        }
    }
    // A tool of the program that started the session.
    let meta = line(
        "session_meta",
        json!({"id": support::SESSION, "history_mode": "paginated", "dynamic_tools": [{"name": "lookup"}]}),
    );
    let dynamic = text(&[meta, say("user", "Go."), call("c", "lookup"), output("c", "unsupported call: lookup")]);
    assert_eq!(made(dynamic).actions(), ["c unknown"]);
    // What a command printed stands behind the head of the client.
    let printed = made(asked(&[call("c", "exec_command"), output("c", &format!("{head}{DENIED}"))]));
    assert_eq!(printed.actions(), ["c succeeded"]);
    // Where outputs were seen to have no head, none is believed.
    let bare = [
        call("a", "shell"),
        output("a", "a.txt"),
        call("b", "shell"),
        output("b", DENIED),
        call("c", "shell"),
        output("c", head),
    ];
    assert_eq!(made(asked_legacy(&bare)).actions(), ["a succeeded", "b unknown", "c unknown"]);
    // Beginnings alone are no refusal.
    for text in
        [DENIED.replace("rejected by user", "x").replace(" }", ""), format!("{DENIED} and more"), format!(" {DENIED}")]
    {
        assert_eq!(made(asked(&[call("c", "exec_command"), output("c", &text)])).actions(), ["c unknown"], "{text}");
    }
    // What the client writes is one.
    assert_eq!(made(asked(&[call("c", "exec_command"), output("c", DENIED)])).actions(), ["c denied"]);
    let declined = done("CommandExecution", "c", "t1", json!({"status": "declined"}));
    assert_eq!(made(asked(&[call("c", "exec_command"), declined])).actions(), ["c denied"]);
    // What is made up on resume tells nothing.
    for text in ["aborted", "Wall time: 1.0 seconds\naborted by user", "", "rejected by user"] {
        assert_eq!(made(asked(&[call("c", "exec_command"), output("c", text)])).actions(), ["c unknown"], "{text}");
    }
}

#[test]
fn a_call_in_a_record_of_no_known_form_is_not_lost() {
    let prefix = asked(&[]);
    let with = |record: &str| made(format!("{prefix}{record}\n"));
    for (record, action) in [
        (
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","type":"function_call","call_id":"c","name":"exec_command"}}"#,
            "c",
        ),
        (
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"message"},"payload":{"type":"function_call","call_id":"c","name":"exec_command"}}"#,
            "c",
        ),
        (
            r#"{"timestamp":"t","type":"event_msg","type":"response_item","payload":{"type":"function_call","call_id":"c","name":"exec_command"}}"#,
            "c",
        ),
        (r#"{"timestamp":"t","type":7,"payload":{"type":"function_call","call_id":"c","name":"exec_command"}}"#, "c"),
        (
            r#"{"timestamp":"t","type":"response_item","payload":[{"type":"function_call","call_id":"c","name":"exec_command"}]}"#,
            "c",
        ),
        (
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":7,"name":"exec_command"}}"#,
            "7",
        ),
        (
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":"c","name":["exec_command"]}}"#,
            "c",
        ),
        (
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"shell_call","call_id":"c","action":{"commands":["rm"]}}}"#,
            "c",
        ),
        (
            r#"{"timestamp":"t","type":"turn_item","payload":{"item":{"type":"function_call","call_id":"c","name":"x"}}}"#,
            "c",
        ),
    ] {
        let found = with(record);
        assert_eq!(found.actions(), [format!("{action} unknown")], "{record}");
        assert_eq!(found.verdict, Verdict::NeedsReconcile, "{record}");
        assert!(found.log.windows(record.len()).any(|w| w == record.as_bytes()), "it is kept: {record}");
        // A refusal of it in a form that is known counts.
        let told = format!("{prefix}{record}\n{}\n", output(action, DENIED));
        assert_ne!(made(told).verdict, Verdict::Idle);
    }
    let nameless = with(
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}"}}"#,
    );
    assert_eq!((nameless.actions().len(), nameless.verdict), (1, Verdict::NeedsReconcile));
}

#[test]
fn odd_ends_end_nothing() {
    let completed = |members: Value| done("CommandExecution", "c", "t1", members);
    let raw = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    for odd in [
        completed(json!({"status": "completed"})),
        completed(json!({"status": "in_progress", "exit_code": 0})),
        completed(json!({"status": "in_progress"})),
        completed(json!({"exit_code": "0"})),
        completed(json!({"exit_code": 0.5})),
        completed(json!({"status": ["declined"]})),
        completed(json!({})),
        done("FileChange", "c", "t1", json!({"status": "in_progress"})),
        done("McpToolCall", "c", "t1", json!({"result": "x"})),
        done("SomethingNew", "c", "t1", json!({"status": "completed", "exit_code": 0})),
        event("item_completed", json!({"item": [{"id": "c"}]})),
        event("item_started", json!({"item": {"type": "CommandExecution", "id": "c", "exit_code": 0}})),
        event("exec_command_begin", json!({"call_id": "c"})),
        event("exec_command_end", json!({"call_id": "c"})),
        line("retained_context", json!({"type": "verified_answer", "call_id": "c", "questions": []})),
        item("function_call_output", json!({"call_id": "c"})),
        item("function_call_output", json!({"call_id": "c", "output": {"content": "x", "success": true}})),
        item("function_call_output", json!({"call_id": ["c"], "output": "Chunk ID: 1\nProcess exited with code 0\n"})),
        raw(r#"{"timestamp":null,"type":"event_msg","payload":null}"#),
    ] {
        let found = made(asked(&[call("c", "exec_command"), odd.clone()]));
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile), "{odd}");
    }
    // Of members that stand twice, none is believed.
    for twice in [
        r#"{"timestamp":"t","type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"CommandExecution","id":"c","status":"completed","exit_code":1,"exit_code":0}}}"#,
        r#"{"timestamp":"t","type":"event_msg","payload":{"type":"item_completed","item":{"id":"c"},"item":{"type":"CommandExecution","id":"c","status":"completed","exit_code":0}}}"#,
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x","output":"Chunk ID: 1\nProcess exited with code 0\n"}}"#,
    ] {
        let found = made(format!("{}{twice}\n", asked(&[call("c", "exec_command")])));
        assert_eq!(found.actions(), ["c unknown"], "{twice}");
    }
}

#[test]
fn a_turn_that_is_over_does_not_hide_what_it_left_running() {
    for over in [end("t1"), event("turn_aborted", json!({"turn_id": "t1", "reason": "interrupted"}))] {
        let found = made(asked(&[call("c", "exec_command"), over]));
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile));
    }
    // A compaction and a command of the user are no turns of the conversation.
    let compacted = line("compacted", json!({"message": "Summary.", "replacement_history": []}));
    let found = made(asked(&[call("c", "exec_command"), begin("t2"), compacted, end("t2")]));
    assert_eq!(found.verdict, Verdict::NeedsReconcile);
}

#[test]
fn of_two_commands_the_one_that_ended_is_known_and_owed() {
    let found = made(asked(&[call("quick", "exec_command"), call("long", "exec_command"), ran("quick", "t1")]));
    assert_eq!(found.actions(), ["quick succeeded", "long unknown"]);
    let recovery = palog::recover::recover(&found.state, &palog::recover::Context::new());
    let owed: Vec<String> = recovery
        .obligations
        .iter()
        .filter_map(|o| Some(format!("{} {}", o.call.as_ref()?.action, o.decision.word())))
        .collect();
    assert!(owed.contains(&"quick deliver".to_owned()) && owed.contains(&"long reconcile".to_owned()), "{owed:?}");
}

#[test]
fn guessed_copies_hide_no_call() {
    // A legacy fork without its parent: what is a copy, only the times tell, and these are those of one go.
    let meta = |id: &str, from: Option<&str>| {
        let mut meta = json!({"id": id});
        if let Some(from) = from {
            meta["forked_from_id"] = json!(from);
        }
        line("session_meta", meta)
    };
    let parent = "019c0000-0000-7000-8000-0000000000aa";
    let found = made(text(&[
        meta(support::SESSION, Some(parent)),
        meta(parent, None),
        say("user", "plan"),
        say("assistant", "done"),
        say("user", "Deploy."),
        call("c", "exec_command"),
    ]));
    assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile));
    // What was copied by number stands first: a number that comes back later is no copy.
    let mut lines = numbered(
        0,
        &[
            line(
                "session_meta",
                json!({"id": support::SESSION, "history_mode": "paginated", "parent_thread_id": parent, "subagent_history_start_ordinal": 3}),
            ),
            meta(parent, None),
            call("copied", "exec_command"),
            say("user", "Go."),
            call("own", "exec_command"),
        ],
    );
    lines[4]["ordinal"] = json!(2);
    let found = made(text(&lines));
    let own = found.state.actions.iter().find(|a| a.action == "own").expect("it is there");
    let copied = found.state.actions.iter().find(|a| a.action == "copied").expect("it is there");
    assert!(copied.inherited && !own.inherited);
    assert_eq!(found.verdict, Verdict::NeedsReconcile);
}

#[test]
fn an_item_that_nobody_can_read_does_not_let_its_turn_be_answered() {
    for kind in [
        "Function_Call",
        "apply_patch_call",
        "call",
        "code_interpreter_call",
        "computer_call",
        "custom_call",
        "function_calls",
        "local_shell",
        "mcp_approval_request",
        "mcp_call",
        "shell",
        "shell_call",
        "tool_call",
        "tool_search_call",
        "tool_use",
        "ghost_snapshot",
    ] {
        let named = json!({"name": "shell", "arguments": "{\"command\":[\"deploy\"]}", "call_id": "c"});
        let nameless = json!({"id": "c", "action": {"command": ["deploy"]}});
        // A search for tools has such a form.
        let known = kind == "tool_search_call";
        for members in [Some(named), (!known).then_some(nameless)].into_iter().flatten() {
            for lines in [
                [item(kind, members.clone()), say("assistant", "I will.")],
                [say("assistant", "I will."), item(kind, members.clone())],
            ] {
                for rollout in [asked(&lines), asked_legacy(&lines)] {
                    let found = made(rollout);
                    assert_eq!(found.verdict, Verdict::NeedsReconcile, "{kind}: {members}");
                    assert_eq!(found.actions().len(), 1, "{kind}: {members}");
                }
            }
        }
    }
    // What is no call as far as anybody can tell may be one.
    for odd in [
        item("tool_request", json!({"id": "c", "tool": "shell"})),
        item("message", json!({"role": "model", "content": []})),
        line("Response_item", json!({"type": "message", "role": "assistant"})),
        json!({"timestamp": "2026-03-03T10:00:00.000Z", "type": "response_item", "payload": ["deploy"]}),
        json!({"timestamp": "2026-03-03T10:00:00.000Z", "type": "response_item"}),
    ] {
        for lines in [[odd.clone(), say("assistant", "Done.")], [say("assistant", "Done."), odd.clone()]] {
            let found = made(asked_legacy(&lines));
            assert_ne!(found.verdict, Verdict::Idle, "{odd}");
            let about = found.events().iter().any(|e| e["type"] == "note.added" && e["data"]["kind"] == "unread");
            assert!(about, "{odd}");
        }
    }
    // What the screen was shown is no part of a response.
    let shown = [say("assistant", "Done."), event("something_new", json!({"id": "c"}))];
    assert_eq!(made(asked_legacy(&shown)).verdict, Verdict::Idle);
    // A new event beside a call that is known is no other call.
    let beside = [call("c", "exec_command"), event("tool_progress", json!({"call_id": "c", "name": "exec_command"}))];
    assert_eq!(made(asked(&beside)).actions(), ["c unknown"]);
}

#[test]
fn what_looks_like_a_call_is_one_whatever_its_type() {
    let shape = || json!({"name": "shell", "arguments": "{}", "call_id": "c"});
    let with = |kind: Value| {
        let mut payload = shape();
        payload["type"] = kind;
        line("response_item", payload)
    };
    let record = |key: &str, payload: Value| {
        let mut record = json!({"timestamp": "2026-03-03T10:00:00.000Z", "type": "response_item"});
        record[key] = payload;
        record
    };
    let mut text_call = shape();
    text_call["type"] = json!("function_call");
    for odd in [
        line("response_item", shape()),
        with(json!(null)),
        with(json!(7)),
        with(json!(["function_call"])),
        with(json!("")),
        record("Payload", text_call.clone()),
        record("payload", json!(text_call.to_string())),
        line("Response_item", text_call.clone()),
        event("function_call", shape()),
        item(
            "message",
            json!({"role": "assistant", "content": [], "call_id": "c", "name": "shell", "arguments": "{}"}),
        ),
    ] {
        let found = made(asked(&[odd.clone(), say("assistant", "Done.")]));
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile), "{odd}");
    }
    // There was a call if something came of it.
    for kind in ["function_call_output", "custom_tool_call_output", "local_shell_call_output"] {
        let out = item(kind, json!({"call_id": "c", "output": "aborted"}));
        let found = made(asked(&[out, say("assistant", "Done.")]));
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile), "{kind}");
        assert!(found.codes().contains(&"tool.result_without_call"));
    }
}

#[test]
fn an_output_without_the_head_of_the_client_is_no_success() {
    for text in [
        "denied",
        "rejected",
        "Killed",
        "timeout",
        "interrupted",
        "Error:exec",
        "execution",
        "sandbox_denied",
        "killed.",
        r#"{"error":"sandbox_denied"}"#,
        r#"{"output":"x"}"#,
        r#"{"output":"x","metadata":{"exit_code":null}}"#,
        r#"{"output":"x","metadata":{"exit_code":"0"}}"#,
        r#"{"output":"x","metadata":{"exit_code":0.5}}"#,
        r#"{"output":"x","metadata":{"exit_code":137,"exit_code":0}}"#,
        r#"{"output":"x","metadata":{"exit_code":137},"metadata":{"exit_code":0}}"#,
        r#"{"output":"x","metadata":{"exit_co"#,
        r#"{"output":"x","metadata":{}}"#,
    ] {
        for name in ["shell", "exec_command"] {
            let found = made(asked_legacy(&[call("c", name), output("c", text)]));
            assert_eq!(
                (found.actions(), found.verdict),
                (vec!["c unknown".to_owned()], Verdict::NeedsReconcile),
                "{text}"
            );
        }
    }
    for list in [
        json!([{"type": "input_text", "text": "a.txt"}, {"type": "input_text", "text": "command failed: boom boom"}]),
        json!([{"type": "input_text", "text": "a.txt"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]),
    ] {
        let out = item("function_call_output", json!({"call_id": "c", "output": list}));
        assert_eq!(made(asked_legacy(&[call("c", "shell"), out])).actions(), ["c unknown"]);
    }
    // The client's JSON has no white space either.
    for (code, outcome) in [(0, "c succeeded"), (3, "c failed")] {
        let text = format!(r#"{{"output":"hi\n","metadata":{{"exit_code":{code},"duration_seconds":0.0}}}}"#);
        assert_eq!(made(asked_legacy(&[call("c", "shell"), output("c", &text)])).actions(), [outcome]);
    }
}

#[test]
fn an_end_fits_its_call_or_ends_nothing() {
    let elsewhere = |members: Value, thread: &str, turn: &str| {
        let mut end = done("CommandExecution", "c", turn, members);
        end["payload"]["thread_id"] = json!(thread);
        end
    };
    let zero = json!({"status": "completed", "exit_code": 0});
    for odd in [
        done("ImageView", "c", "t1", json!({})),
        done("FileChange", "c", "t1", json!({"status": "completed"})),
        done("FileChange", "c", "t1", json!({"status": "declined"})),
        done("McpToolCall", "c", "t1", json!({"status": "completed"})),
        done("DynamicToolCall", "c", "t1", json!({"success": true})),
        done("CollabAgentToolCall", "c", "t1", json!({"status": "completed"})),
        done("SubAgentActivity", "c", "t1", json!({"kind": "started"})),
        event("patch_apply_end", json!({"call_id": "c", "success": true})),
        event("mcp_tool_call_end", json!({"call_id": "c", "result": {"Ok": {"content": []}}})),
        event("dynamic_tool_call_response", json!({"call_id": "c", "success": true})),
        elsewhere(zero.clone(), "another thread", "t1"),
        elsewhere(zero.clone(), support::SESSION, "t9"),
        done("CommandExecution", "c", "t1", json!({"status": "declined", "exit_code": 0})),
        done("CommandExecution", "c", "t1", json!({"status": "failed", "exit_code": 0})),
    ] {
        let found = made(asked(&[call("c", "exec_command"), odd.clone()]));
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile), "{odd}");
        assert!(found.codes().contains(&"schema.unexpected_shape"), "{odd}: {:?}", found.codes());
        // The end that fits still counts.
        assert_eq!(made(asked(&[call("c", "exec_command"), odd, ran("c", "t1")])).actions(), ["c succeeded"]);
    }
    for (name, end) in [
        ("apply_patch", done("CommandExecution", "c", "t1", zero.clone())),
        ("view_image", done("McpToolCall", "c", "t1", json!({"status": "completed"}))),
        ("spawn_agent", done("ImageView", "c", "t1", json!({}))),
    ] {
        assert_eq!(made(asked(&[call("c", name), end])).actions(), ["c unknown"], "{name}");
    }
    assert_eq!(
        made(asked(&[call("c", "exec_command"), elsewhere(zero, support::SESSION, "t1")])).actions(),
        ["c succeeded"]
    );
    // A namespace of a form that nobody knows is somebody else's.
    for namespace in [json!(5), json!(["mcp__demo"]), json!({}), json!("")] {
        for text in ["Exit code: 0\nWall time: 1\nOutput:\n", "failed to parse function arguments: x", DENIED] {
            let members =
                json!({"call_id": "c", "name": "exec_command", "arguments": "{}", "namespace": namespace.clone()});
            let found = made(asked(&[item("function_call", members), output("c", text)]));
            assert_eq!(found.actions(), ["c unknown"], "{namespace}: {text}");
        }
    }
}

#[test]
fn copies_end_where_something_says_so() {
    let parent = "019c0000-0000-7000-8000-0000000000aa";
    let agent = |border: u64| {
        line(
            "session_meta",
            json!({"id": support::SESSION, "history_mode": "paginated", "parent_thread_id": parent, "subagent_history_start_ordinal": border}),
        )
    };
    let lines = |border: u64| {
        made(text(&numbered(0, &[agent(border), begin("t1"), say("user", "Go."), call("c", "exec_command")])))
    };
    // The border is behind the file, and nobody confirms it.
    for border in [4, 9999] {
        let found = lines(border);
        assert_eq!((found.actions(), found.verdict), (vec!["c unknown".to_owned()], Verdict::NeedsReconcile));
        assert!(found.state.actions.iter().all(|action| !action.inherited));
        assert!(found.codes().contains(&"graph.missing_parent"), "{:?}", found.codes());
    }
    // It is there.
    let found = lines(3);
    assert!(!found.codes().contains(&"graph.missing_parent"), "{:?}", found.codes());
    // A fork of what is not at hand: that its records follow each other closely does not make them copies.
    let meta = |id: &str, from: Option<&str>| line("session_meta", json!({"id": id, "forked_from_id": from}));
    let fork = [meta(support::SESSION, Some(parent)), meta(parent, None), say("user", "Deploy.")];
    let found = made(text(&fork));
    assert_ne!(found.verdict, Verdict::Idle);
    assert!(found.events().iter().all(|event| event["copy"].is_null()));
    assert!(found.codes().contains(&"graph.missing_parent"), "{:?}", found.codes());
}
