//! `expect/truth.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::{Call, Child, Family, Session, Tally, Truth, Usage};
use crate::compare::equal;
use crate::json;
use crate::log::{Log, kind_of};
use crate::run::{Imported, Run};

/// Compares everything that a truth says.
pub(crate) fn truth(run: &Run<'_>, truth: &Truth, failures: &mut Vec<String>) {
    let found: Vec<&str> = sorted(run.logs.iter().map(|log| log.session.as_str()));
    let expected: Vec<&str> = sorted(truth.sessions.iter().map(|s| s.session.as_str()));
    equal("sessions", &found, &expected, failures);
    for session in &truth.sessions {
        if let Some(imported) = run.session(&session.session) {
            let mut own = Vec::new();
            compare(run, imported, session, &mut own);
            failures.extend(own.into_iter().map(|failure| format!("{}: {failure}", session.session)));
        }
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

fn compare(run: &Run<'_>, imported: &Imported, session: &Session, failures: &mut Vec<String>) {
    let state = &imported.state;
    records(run, imported, session, failures);
    if session.typed_prompts.is_some() {
        equal("typed_prompts", &json::count(state, "/counts/prompts"), &session.typed_prompts, failures);
    }
    if session.model_responses.is_some() {
        equal("model_responses", &json::count(state, "/counts/responses"), &session.model_responses, failures);
    }
    equal("inherited", &inherited(&imported.log), &session.inherited, failures);
    calls(imported, session, failures);
    approvals(imported, session, failures);
    equal("usage", &usage(state), &session.usage, failures);
    equal("children", &children(state), &sorted(session.children.iter().cloned()), failures);
    equal("parent", &json::text(state, "/parent/session").map(str::to_owned), &session.parent, failures);
    if session.ended.is_some() == state["closed"].is_null() {
        failures.push(format!("ended: expected {:?}, found {}", session.ended, state["closed"]));
    }
    let pending = sorted(json::list(state, "/pending").iter().filter_map(|p| json::text(p, "/kind")));
    equal("pending", &pending, &sorted(session.pending.iter().map(|p| p.kind.as_str())), failures);
    let verdict = json::text(&imported.recovery, "/verdict").unwrap_or_default();
    if !session.accepts(verdict) {
        failures.push(format!("verdict: expected {}, found {verdict}", session.verdict.word()));
    }
}

/// The records are told three times: by the report for the log and for the file, and by what the events point to.
fn records(run: &Run<'_>, imported: &Imported, session: &Session, failures: &mut Vec<String>) {
    let expected = &session.records;
    equal("records of the log", &imported.records, &expected.total, failures);
    // A database holds the rows of all sessions, and the report tells of all of them.
    let in_database = session.file.starts_with("session:");
    let inputs = json::list(&run.report, "/inputs").iter().filter(|input| {
        let path = json::text(input, "/path").unwrap_or_default();
        run.relative(path) == session.file || in_database && holds(input, expected)
    });
    // A file that several sessions share is reported with each of them: with records of others, or with its own only.
    let of = |input: &Value| Some(json::count(input, "/records")? - json::count(input, "/foreign").unwrap_or(0));
    let inputs: Vec<&Value> = inputs.collect();
    match inputs.iter().find(|input| of(input) == Some(expected.total)).or(inputs.first()) {
        Some(_) if in_database => {}
        Some(input) => {
            equal("records of the file", &of(input), &Some(expected.total), failures);
            let found = by_type(input);
            if json::text(input, "/format").is_some_and(|format| format.ends_with(".sqlite")) {
                let missing = expected.by_type.iter().find(|(name, count)| found.get(*name) < Some(*count));
                equal("records by type that are missing", &missing, &None, failures);
            } else {
                equal("records by type", &found, &expected.by_type, failures);
            }
        }
        None => failures.push(format!("the report has no input {}", session.file)),
    }
    let mut pointed = BTreeMap::new();
    for record in imported.log.main_records() {
        *pointed.entry(kind_of(&record)).or_insert(0) += 1;
    }
    equal("records by type that events point to", &pointed, &expected.by_type, failures);
}

/// Whether a report of a database says that just these rows belong to a session, among at least as many of each table.
fn holds(input: &Value, expected: &Tally) -> bool {
    let count = |member: &str| json::count(input, member).unwrap_or(0);
    let in_table = |table: &str| input["by_type"][table].as_u64().unwrap_or(0);
    let of_own = count("/records").checked_sub(count("/foreign")) == Some(expected.total);
    json::text(input, "/format") == Some("opencode.sqlite")
        && of_own
        && expected.by_type.iter().all(|(table, rows)| in_table(table) >= *rows)
}

/// Records by the vendor's type in the words of a truth: of records without an envelope without what stands behind a slash.
fn by_type(input: &Value) -> BTreeMap<String, u64> {
    let mut folded = BTreeMap::new();
    let format = json::text(input, "/format").unwrap_or_default();
    for (name, count) in input["by_type"].as_object().into_iter().flatten() {
        let name = match format {
            "codex.rollout" | "pi.jsonl" | "openclaw.jsonl" => name.clone(),
            "codex.rollout-bare" if name == "state" => format!("record_type:{name}"),
            _ => name.split_once('/').map_or(name.as_str(), |(name, _)| name).to_owned(),
        };
        *folded.entry(name).or_insert(0) += count.as_u64().unwrap_or(0);
    }
    folded
}

/// What of the log is copied from another one.
fn inherited(log: &Log) -> Family {
    let copied = |event: &Value| {
        let from = json::text(event, "/copy/log");
        !event["copy"].is_null() && from.is_some_and(|from| from != log.id())
    };
    let events = || log.events.iter().filter(|event| copied(event));
    let typed = |event: &&Value| {
        let data = &event["data"];
        let purpose = json::text(data, "/purpose").unwrap_or("prompt");
        event["type"] == "message.added"
            && data["role"] == "user"
            && event["actor"]["kind"] == "user"
            && ["prompt", "steer"].contains(&purpose)
    };
    let named = |kind: &'static str, member: &'static str| -> u64 {
        let names: BTreeSet<&str> =
            events().filter(|e| e["type"] == kind).filter_map(|e| e["data"][member].as_str()).collect();
        names.len() as u64
    };
    let records = log.main_records().into_iter().filter(|record| record.events.iter().any(|n| copied(&log.events[*n])));
    Family {
        records: records.count() as u64,
        typed_prompts: events().filter(typed).count() as u64,
        model_responses: named("model.response", "response"),
        calls: named("action.proposed", "action"),
    }
}

fn calls(imported: &Imported, session: &Session, failures: &mut Vec<String>) {
    let is_call =
        |a: &&Value| !a["proposed"].is_null() && matches!(json::text(a, "/kind"), Some("tool" | "question" | "spawn"));
    let found: Vec<&Value> = json::list(&imported.state, "/actions").iter().filter(is_call).collect();
    let ids: Vec<&str> = found.iter().filter_map(|a| json::text(a, "/action")).collect();
    equal("calls", &ids, &session.calls.iter().map(|c| c.call.as_str()).collect(), failures);
    for call in &session.calls {
        if let Some(action) = imported.action(&call.call) {
            compare_call(imported, action, call, failures);
        }
    }
}

fn compare_call(imported: &Imported, action: &Value, call: &Call, failures: &mut Vec<String>) {
    let mut check = |member: &str, found: &str, expected: &str| {
        if found != expected {
            failures.push(format!("{} {member}: expected {expected}, found {found}", call.call));
        }
    };
    let own = |member: &str| action[member].as_str().unwrap_or_default();
    let inherited = action["inherited"] == true;
    let state = state_of(action, inherited);
    check("name", own("name"), &call.name);
    if !call.also.iter().any(|also| also == state) {
        check("state", state, &call.state);
    }
    // A state that is as true may be unknown, and then nothing is known of the effect either.
    let applied = if state != call.state && state == "unknown" { "unknown" } else { &call.applied };
    // Partly is run as well.
    check("applied", if own("applied") == "partial" { "yes" } else { own("applied") }, applied);
    check("told", own("told"), &call.told);
    check("inherited", &inherited.to_string(), &call.inherited.to_string());
    let blocking = imported.obligations(&call.call).any(|owed| owed["blocking"] == true);
    check("blocking", &blocking.to_string(), &call.blocking.to_string());
}

/// The state in the words of a truth, to which a copied call without an end is `inherited`.
fn state_of(action: &Value, inherited: bool) -> &str {
    let state = json::text(action, "/state").unwrap_or_default();
    if inherited && !matches!(state, "succeeded" | "failed" | "cancelled" | "denied") { "inherited" } else { state }
}

fn approvals(imported: &Imported, session: &Session, failures: &mut Vec<String>) {
    let mut found: BTreeSet<(&str, &str)> = BTreeSet::new();
    for approval in json::list(&imported.state, "/approvals") {
        let (Some(call), Some(status)) = (json::text(approval, "/action"), json::text(approval, "/status")) else {
            continue;
        };
        if status != "settled" {
            found.insert((call, status));
        }
    }
    for action in json::list(&imported.state, "/actions") {
        let Some(call) = json::text(action, "/action") else { continue };
        match (json::text(action, "/kind"), json::text(action, "/state")) {
            (Some("question"), Some("awaiting")) => _ = found.insert((call, "open")),
            (Some("question"), Some("succeeded")) => _ = found.insert((call, "answered")),
            _ => {}
        }
        let asked = |owed: &Value| json::list(owed, "/evidence").iter().any(|e| e["kind"] == "approval_asked");
        if imported.obligations(call).any(asked) {
            found.insert((call, "asked"));
        }
    }
    let expected: BTreeSet<(&str, &str)> =
        session.approvals.iter().map(|a| (a.call.as_str(), a.status.as_str())).collect();
    let state = |call: &str| imported.action(call).and_then(|a| json::text(a, "/state"));
    for (call, status) in expected.difference(&found) {
        let called = session.calls.iter().find(|c| c.call == **call);
        let other = called.is_some_and(|c| state(call).is_some_and(|s| c.also.iter().any(|also| also == s)));
        if !(*status == "denied" && other) {
            failures.push(format!("approvals: {call} is not {status}"));
        }
    }
    for (call, status) in found.difference(&expected) {
        // Refusals by a rule or by the client are not listed.
        if !(*status == "denied" && state(call) == Some("denied")) {
            failures.push(format!("approvals: {call} is {status}, of which the truth knows nothing"));
        }
    }
}

fn usage(state: &Value) -> Option<Usage> {
    let usage = Usage {
        input: json::count(state, "/usage/input"),
        output: json::count(state, "/usage/output"),
        cache_read: json::count(state, "/usage/cache_read"),
        cache_write: json::count(state, "/usage/cache_write"),
        reasoning: json::count(state, "/usage/reasoning"),
    };
    (usage != Usage::default()).then_some(usage)
}

fn children(state: &Value) -> Vec<Child> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    sorted(json::list(state, "/children").iter().map(|child| Child {
        session: text(&child["session"]),
        kind: text(&child["kind"]),
        call: child["action"].as_str().map(str::to_owned),
        link: text(&child["link"]),
    }))
}
