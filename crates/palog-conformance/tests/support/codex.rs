//! The same question to the records of Codex: which calls may have had an effect?

use std::collections::BTreeSet;

use palog_conformance::json;
use serde_json::Value;

/// Tools of the client that change nothing, or whose output alone says that they are done.
const HARMLESS: &[&str] =
    &["update_plan", "create_goal", "update_goal", "get_goal", "view_image", "request_user_input"];

/// How the client's outputs begin of which it is known how the call ended.
const TELLING: &[&str] = &[
    "{\"output\":",
    "Exit code: ",
    "unsupported c",
    "failed to parse function arguments: ",
    "apply_patch verification failed",
    "exec_command failed: CreateProcess { message: \"Rejected(",
    "Script completed",
];

fn payload(record: &Value) -> &Value {
    if record["payload"].is_null() { record } else { &record["payload"] }
}

fn is(record: &Value, kinds: &[&str]) -> bool {
    json::text(payload(record), "/type").is_some_and(|kind| kinds.contains(&kind))
}

/// Whether a person's words stand here.
fn is_prompt(record: &Value) -> bool {
    let item = payload(record);
    let kinds = json::list(item, "/internal_chat_message_metadata_passthrough/content_item_kinds");
    let text = json::text(item, "/content/0/text").unwrap_or_default();
    let typed = if kinds.is_empty() {
        !text.starts_with('<')
    } else {
        kinds.iter().any(|k| k.as_str().is_some_and(|k| k.starts_with("user.")))
    };
    is(record, &["message"]) && item["role"] == "user" && typed
}

/// Whether a turn is over here: by the client's mark, or, where it makes none, by the model's last word.
fn is_answer(record: &Value, marks: bool) -> bool {
    match marks {
        true => is(record, &["turn_aborted"]) || is(record, &["task_complete"]) && payload(record)["error"].is_null(),
        false => is(record, &["message"]) && payload(record)["role"] == "assistant",
    }
}

pub(crate) fn may_have_run(records: &[Value]) -> BTreeSet<String> {
    let paginated = records.iter().any(|r| r["type"] == "session_meta" && r["payload"]["history_mode"] == "paginated");
    let inherited =
        records.first().and_then(|r| json::count(r, "/payload/subagent_history_start_ordinal")).unwrap_or(0);
    let mut found = BTreeSet::new();
    for (at, record) in
        records.iter().enumerate().filter(|(_, r)| is(r, &["function_call", "custom_tool_call", "local_shell_call"]))
    {
        let (call, later) = (payload(record), &records[at + 1..]);
        let (Some(id), name) = (json::text(call, "/call_id"), json::text(call, "/name").unwrap_or_default()) else {
            continue;
        };
        let copied = json::count(record, "/ordinal").is_some_and(|ordinal| ordinal < inherited);
        let passed_over = later
            .iter()
            .position(is_prompt)
            .is_some_and(|prompt| later[prompt..].iter().any(|r| is_answer(r, paginated)));
        if !copied && !passed_over && !HARMLESS.contains(&name) && !later.iter().any(|r| settles(r, id, paginated)) {
            found.insert(id.to_owned());
        }
    }
    found
}

/// Whether a record says how a call ended.
fn settles(record: &Value, call: &str, paginated: bool) -> bool {
    let item = payload(record);
    if item["item"]["id"] == call {
        return item["item"]["status"] != "in_progress";
    }
    if item["call_id"] != call {
        return false;
    }
    if is(record, &["exec_command_end", "patch_apply_end", "mcp_tool_call_end"]) {
        return true;
    }
    let output = json::text(item, "/output").or_else(|| json::text(item, "/output/0/text")).unwrap_or_default();
    let head = output.split("\nOutput:").next().unwrap_or_default();
    TELLING.iter().any(|opening| output.starts_with(opening))
        || head.starts_with("Chunk ID: ") && head.contains("\nProcess exited with code ")
        // What is no sentence is none of the client's.
        || !paginated && !output.is_empty() && !output.contains(char::is_whitespace) && output != "aborted"
}
