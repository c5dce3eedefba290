//! A small reader of the vendor's records that shares nothing with the importer, the reducer or the recovery: which calls
//! may have had an effect, and have no known outcome that anything went on from?

use std::collections::BTreeSet;

use palog_conformance::json;
use serde_json::Value;
use serde_json::value::RawValue;

#[path = "codex.rs"]
mod codex;

/// Stops by which the model ends its turn.
const ENDING: &[&str] = &["end_turn", "stop_sequence", "max_tokens", "refusal"];

/// Tools of the client that change nothing, whatever becomes of them.
const READING: &[&str] = &[
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "BashOutput",
    "TaskOutput",
    "WebFetch",
    "WebSearch",
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "ToolSearch",
    "EnterPlanMode",
];

/// What the client writes as the result of a call that was declined, or stopped while it ran.
const REJECTED: &str = "User rejected tool use";

/// How records begin.
const BEGINNINGS: [&str; 2] = ["{\"parentUuid\"", "{\"timestamp\""];

/// The records in `source` that are whole.
fn records(source: &[u8]) -> Vec<Value> {
    let mut records = Vec::new();
    for line in source.split(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let mut rest = text.trim_matches(|c: char| c == '\0' || c.is_whitespace() || c == '\u{feff}');
        while !rest.is_empty() {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            match values.next() {
                Some(Ok(value)) => {
                    records.extend(json::value(value.get()));
                    rest = rest[values.byte_offset()..].trim_start_matches('\0');
                }
                // A broken piece: what may stand behind it begins like every record does.
                _ => match rest
                    .char_indices()
                    .nth(1)
                    .and_then(|(at, _)| Some(at + BEGINNINGS.iter().filter_map(|b| rest[at..].find(b)).min()?))
                {
                    Some(at) => rest = &rest[at..],
                    None => break,
                },
            }
        }
    }
    records
}

fn blocks<'r>(record: &'r Value, kind: &'r str) -> impl Iterator<Item = &'r Value> {
    json::list(record, "/message/content").iter().filter(move |block| block["type"] == kind)
}

/// Whether the record is a turn of the user's side that wants an answer.
fn is_prompt(record: &Value) -> bool {
    let content = &record["message"]["content"];
    let text = content.as_str().or_else(|| blocks(record, "text").find_map(|block| json::text(block, "/text")));
    let client = |text: &str| {
        ["[Request interrupted", "<command-", "<local-command", "<bash-", "Caveat:"]
            .iter()
            .any(|mark| text.starts_with(mark))
    };
    record["type"] == "user"
        && record["isMeta"] != true
        && record["isCompactSummary"] != true
        && blocks(record, "tool_result").next().is_none()
        && (text.is_some_and(|text| !client(text)) || blocks(record, "image").next().is_some())
}

/// Whether the model said its last word in this record.
fn is_answer(record: &Value) -> bool {
    let client = record["message"]["model"] == "<synthetic>" || record["isApiErrorMessage"] == true;
    let ends = match json::text(record, "/message/stop_reason") {
        Some(stop) => ENDING.contains(&stop),
        None => blocks(record, "text").next().is_some(),
    };
    record["type"] == "assistant" && !client && ends && blocks(record, "tool_use").next().is_none()
}

/// Whether the client's note that a person interrupted stands here, and says that nothing was running.
fn is_refusal_note(record: &Value) -> bool {
    let text = blocks(record, "text").find_map(|block| json::text(block, "/text"));
    text.is_some_and(|text| text.starts_with("[Request interrupted")) && record["interruptedMessageId"].is_null()
}

/// The calls that may have run, or may still run, and that hold the session: none of their results says how they ended,
/// and no later turn was answered.
pub(crate) fn may_have_run(source: &[u8]) -> BTreeSet<String> {
    let records = records(source);
    if records.iter().any(|r| !r["payload"].is_null() || !r["record_type"].is_null()) {
        return codex::may_have_run(&records);
    }
    let mut found = BTreeSet::new();
    for (at, record) in records.iter().enumerate().filter(|(_, r)| r["type"] == "assistant") {
        let later = &records[at + 1..];
        let passed_over = later.iter().position(is_prompt).is_some_and(|prompt| later[prompt..].iter().any(is_answer));
        if passed_over {
            continue;
        }
        for call in blocks(record, "tool_use") {
            let (id, name) =
                (json::text(call, "/id").unwrap_or_default(), json::text(call, "/name").unwrap_or_default());
            if !READING.contains(&name) && !is_settled(id, later) {
                found.insert(id.to_owned());
            }
        }
    }
    found
}

/// Whether a result among the later records says how a call ended.
fn is_settled(call: &str, later: &[Value]) -> bool {
    let Some(at) = later.iter().position(|r| blocks(r, "tool_result").any(|block| block["tool_use_id"] == call)) else {
        return false;
    };
    let told = &later[at]["toolUseResult"];
    if let Some(task) = json::text(told, "/backgroundTaskId") {
        return later[at..].iter().any(|r| {
            r["message"]["content"].as_str().is_some_and(|t| t.contains("<task-notification>") && t.contains(task))
        });
    }
    if told == REJECTED && later[at]["toolDenialKind"].is_null() {
        let next = later[at + 1..].iter().find(|r| !r["message"].is_null());
        return next.is_some_and(is_refusal_note);
    }
    true
}
