//! The members of `state` in an expectation. Each is looked up in what the implementation gave, never in the other's words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::implementation::Import;
use crate::json;
use crate::log::Log;
use crate::run::{Imported, Run};

/// Checks one fact.
pub(super) fn check(run: &Run<'_>, what: &str, expected: &Value) -> Result<(), String> {
    match what {
        "sessions" => return sessions(run, expected),
        "history_of_forked_by_reference" => {
            let found: Value = history(run, "dd")?.into();
            return if found == *expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) };
        }
        "main_file_alone" => {
            let found = main_file_alone(run)?;
            return if found == *expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) };
        }
        _ => {}
    }
    if let Some(found) = of_all(run, what) {
        return if found == *expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) };
    }
    let imported = run.only()?;
    let found = fact(run, imported, what, expected).ok_or("nobody checks this fact")??;
    if found == *expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) }
}

/// What is found for a fact, in the form in which it is expected; `None` if nobody knows such a fact.
fn fact(run: &Run<'_>, imported: &Imported, what: &str, expected: &Value) -> Option<Result<Value, String>> {
    let state = &imported.state;
    let log = &imported.log;
    let count = |path: &str| json::count(state, path).map_or(Value::Null, Value::from);
    Some(Ok(match what {
        "order" => own_records(log).into_iter().filter_map(|r| r.id().map(Value::from)).collect(),
        "cycles" => cycles(run, log),
        "context_after_first_compaction" => return Some(context_after_first_compaction(run, imported)),
        "orphans_in_log" => unresolved(state).filter(|a| a["proposed"].is_null()).count().into(),
        "orphans_in_context" => orphans(imported).into(),
        "session_start_utc" => {
            own_records(log).first().map(|r| log.events[r.events[0]]["time"].clone()).unwrap_or_default()
        }
        "records_seen_by_vendor_client" => first_of_each_line(log).into(),
        "recovered_behind_fragment" => behind_fragments(log),
        "fragment_bytes" => log.notes(&["fragment", "torn"]).map(|(_, _, len)| len).sum::<u64>().into(),
        "hole_bytes" => log.notes(&["hole"]).map(|(_, _, len)| len).sum::<u64>().into(),
        "responses" => count("/counts/responses"),
        "compactions" => count("/counts/compactions"),
        "typed_prompts" => count("/counts/prompts"),
        "title" => state["title"].clone(),
        "blocks_of_first_response" => blocks_of_first_response(log),
        "usage" => return usage(state, expected),
        "open_calls" => open_calls(imported)
            .map(|a| json!({"call": a["action"], "name": a["name"], "outcome": a["state"]}))
            .collect(),
        "lost_results" => unresolved(state).filter(|a| a["passed_over"] == true).map(|a| a["action"].clone()).collect(),
        "logical_events" => own_records(log).len().into(),
        "reachable" => return Some(reachable(imported)),
        "active_path_messages" => json::list(&imported.context, "/path/events").len().into(),
        "archive_messages" => archive_messages(log).into(),
        "context" => context(imported),
        "agents" => agents(imported),
        "approvals" => approvals(imported),
        "queue" => queue(imported),
        "pending_inputs" => json::list(state, "/inputs").iter().filter(|input| input["pending"] == true).count().into(),
        "session" => state["session"].clone(),
        "cwd" => state["config"]["directory"].clone(),
        "resume_offset" => log.notes(&["torn"]).map(|(_, at, _)| Value::from(at)).next().unwrap_or_default(),
        "blobs_unique" | "blob_references" | "blob_bytes" => blobs(run, what),
        _ => return None,
    }))
}

/// Facts of all sessions together, where there are several or where only the others tell.
fn of_all(run: &Run<'_>, what: &str) -> Option<Value> {
    let several = run.mains().count() > 1;
    Some(match what {
        "resume_target" => {
            let named: serde_json::Map<String, Value> = run
                .mains()
                .filter(|one| is_of_a_chain(run, one))
                .map(|one| (one.session.clone(), tip(run, one).into()))
                .collect();
            named.into()
        }
        "declared_messages_absent" => {
            let details = json::list(&run.report, "/diagnostics")
                .iter()
                .filter(|found| found["code"] == "session.row_count_mismatch")
                .flat_map(|found| json::list(found, "/at"))
                .filter_map(|place| json::text(place, "/detail"));
            details.filter_map(absent).sum::<u64>().into()
        }
        "typed_prompts" if several => {
            run.mains().filter_map(|one| json::count(&one.state, "/counts/prompts")).sum::<u64>().into()
        }
        "open_calls" if several => run
            .mains()
            .flat_map(open_calls)
            .map(|a| json!({"call": a["action"], "name": a["name"], "outcome": a["state"]}))
            .collect(),
        _ => return None,
    })
}

/// The difference in `declared N, found M`.
fn absent(detail: &str) -> Option<u64> {
    let (declared, found) = detail.strip_prefix("declared ")?.split_once(", found ")?;
    declared.parse::<u64>().ok()?.checked_sub(found.parse().ok()?)
}

/// Whether a session goes on from another one, or another one from it.
fn is_of_a_chain(run: &Run<'_>, one: &Imported) -> bool {
    json::text(&one.state, "/parent/mode") == Some("continue") || next(run, one).is_some()
}

/// The session that goes on from this one.
fn next<'r>(run: &'r Run<'_>, one: &Imported) -> Option<&'r Imported> {
    run.mains().find(|other| {
        json::text(&other.state, "/parent/mode") == Some("continue")
            && json::text(&other.state, "/parent/log") == Some(one.log.id())
    })
}

/// Where a session goes on last.
fn tip(run: &Run<'_>, one: &Imported) -> String {
    let mut at = one;
    for _ in 0..run.logs.len() {
        match next(run, at) {
            Some(other) => at = other,
            None => break,
        }
    }
    at.session.clone()
}

/// Facts of several sessions, by their ids.
fn sessions(run: &Run<'_>, expected: &Value) -> Result<(), String> {
    for (id, facts) in expected.as_object().into_iter().flatten() {
        let imported = run.session(id).ok_or_else(|| format!("no session {id}"))?;
        for (what, expected) in facts.as_object().into_iter().flatten() {
            let state = &imported.state;
            let found: Value = match what.as_str() {
                "parent" => state["parent"]["session"].clone(),
                "own_total_tokens" => {
                    let of = |path| json::count(state, path).unwrap_or(0);
                    (of("/usage/input") + of("/usage/output")).into()
                }
                // By copy: so many of its own records. By reference: so many of the parent's.
                "prefix_records" => match prefix(run, imported)? {
                    Some((_, records)) => records.into(),
                    None => {
                        let copied = |r: &crate::log::Record| {
                            r.events.iter().all(|n| imported.log.events[*n]["copy"]["how"] == "fork")
                        };
                        imported.log.main_records().iter().filter(|r| copied(r)).count().into()
                    }
                },
                _ => return Err(format!("nobody checks {what} of a session")),
            };
            if found != *expected {
                return Err(format!("{id}: {what}: expected {expected}, found {found}"));
            }
        }
    }
    Ok(())
}

/// The parent of a log that goes on from an event in another one, and how many records there are up to that event.
fn prefix<'r>(run: &'r Run<'_>, imported: &Imported) -> Result<Option<(&'r Imported, usize)>, String> {
    let parent = &imported.log.events[0]["data"]["parent"];
    let Some(last) = json::text(parent, "/event") else { return Ok(None) };
    let parent = json::text(parent, "/log")
        .and_then(|id| run.logs.iter().find(|l| l.log.id() == id))
        .ok_or("no log of the parent")?;
    let last = parent.log.events.iter().position(|e| e["id"] == last).ok_or("the parent has no such event")?;
    let records =
        parent.log.main_records().iter().filter(|r| r.events.first().is_some_and(|first| *first <= last)).count();
    Ok(Some((parent, records)))
}

/// The texts of a session whose history goes on from a prefix in its parent's log: those up to there, then its own.
pub(super) fn history(run: &Run<'_>, end: &str) -> Result<Vec<String>, String> {
    let child =
        run.logs.iter().find(|l| l.session.ends_with(end)).ok_or_else(|| format!("no session ends in {end}"))?;
    let (parent, _) = prefix(run, child)?.ok_or("it names no event of a parent")?;
    let last = child.log.events[0]["data"]["parent"]["event"].clone();
    let at = parent.log.events.iter().position(|e| e["id"] == last).unwrap_or(0);
    let events = parent.log.events[..=at].iter().chain(&child.log.events);
    let texts = events
        .filter(|e| e["type"] == "message.added")
        .map(|e| json::list(e, "/data/parts").iter().filter_map(|part| json::text(part, "/text")).collect());
    Ok(texts.collect())
}

/// The records of the conversation that happened here and now: not those that are copies.
fn own_records(log: &Log) -> Vec<crate::log::Record> {
    let own = |r: &crate::log::Record| r.events.iter().any(|n| log.events[*n]["copy"].is_null());
    log.main_records().into_iter().filter(own).collect()
}

/// How many lines begin with a whole value: the vendor's client takes the first one and leaves the rest.
fn first_of_each_line(log: &Log) -> usize {
    let mains = log.sources.iter().filter(|(name, _)| Log::is_main(name));
    let lines = mains.flat_map(|(_, bytes)| bytes.split(|b| *b == b'\n')).filter(|line| !line.is_empty());
    let whole =
        |line: &&[u8]| matches!(serde_json::Deserializer::from_slice(line).into_iter::<Value>().next(), Some(Ok(_)));
    lines.filter(whole).count()
}

/// Ids of records that stand on one line with a fragment, behind it.
fn behind_fragments(log: &Log) -> Value {
    let mut found = Vec::new();
    for (source, at, len) in log.notes(&["fragment"]) {
        let rest =
            log.sources.get(source).map(|bytes| &bytes[usize::try_from(at + len).unwrap_or(0)..]).unwrap_or_default();
        let line_end = at + len + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()) as u64;
        let records =
            log.main_records().into_iter().filter(|r| r.source == source && r.at >= at + len && r.end() <= line_end);
        found.extend(records.filter_map(|r| r.id().map(Value::from)));
    }
    found.into()
}

fn blocks_of_first_response(log: &Log) -> Value {
    let spoken = || log.of_type("message.added").filter(|e| e["data"]["role"] == "assistant");
    let first = spoken().find_map(|e| json::text(&e["data"], "/response"));
    let own = spoken().filter(|e| first.is_some() && json::text(&e["data"], "/response") == first);
    let name = |part: &Value| match json::text(part, "/type") {
        Some("reasoning") => "thinking".into(),
        Some("action") => "tool_use".into(),
        other => other.unwrap_or_default().to_owned(),
    };
    own.flat_map(|e| json::list(e, "/data/parts")).map(name).collect()
}

/// Token counts under the vendor's names.
fn usage(state: &Value, expected: &Value) -> Option<Result<Value, String>> {
    let mut found = serde_json::Map::new();
    for name in expected.as_object()?.keys() {
        let path = match name.as_str() {
            "input_tokens" => "/usage/input",
            "output_tokens" => "/usage/output",
            "total_tokens" => {
                let of = |path| json::count(state, path).unwrap_or(0);
                found.insert(name.clone(), (of("/usage/input") + of("/usage/output")).into());
                continue;
            }
            "cache_creation_input_tokens" => "/usage/cache_write",
            "cache_read_input_tokens" => "/usage/cache_read",
            _ => return None,
        };
        found.insert(name.clone(), json::count(state, path).map_or(Value::Null, Value::from));
    }
    Some(Ok(found.into()))
}

/// Calls without a known outcome.
fn unresolved(state: &Value) -> impl Iterator<Item = &Value> {
    let settled = |a: &&Value| matches!(json::text(a, "/state"), Some("succeeded" | "failed" | "cancelled" | "denied"));
    json::list(state, "/actions").iter().filter(move |a| !settled(a))
}

/// Calls of unknown outcome that nothing has passed over.
fn open_calls(imported: &Imported) -> impl Iterator<Item = &Value> {
    unresolved(&imported.state).filter(|action| action["passed_over"] != true)
}

/// How many messages of the path hang together by the parents that are named, and how many with what was inferred.
fn reachable(imported: &Imported) -> Result<Value, String> {
    let path = json::list(&imported.context, "/path/events");
    let inferred = json::list(&imported.context, "/path/inferred");
    let strict = match path.iter().rposition(|event| inferred.contains(event)) {
        Some(at) => path.len() - at,
        None => path.len(),
    };
    Ok(json!({"strict": strict, "repaired": path.len()}))
}

/// Messages that happened here; what a compaction wrote is one where it has a record of its own.
fn archive_messages(log: &Log) -> usize {
    let own = |e: &&Value| e["copy"].is_null() && log.native(e).is_none_or(|native| native["type"] != "compaction");
    log.of_type("message.added").filter(own).count()
}

/// The loops of parents in the source, if as many are told.
fn cycles(run: &Run<'_>, log: &Log) -> Value {
    let records = log.main_records();
    let parents: BTreeMap<&str, &str> =
        records.iter().filter_map(|r| Some((r.id()?, json::text(&r.native, "/parentId")?))).collect();
    let mut found: Vec<Vec<&str>> = Vec::new();
    for id in parents.keys() {
        let mut walk = vec![*id];
        while let Some(up) = parents.get(walk[walk.len() - 1]).filter(|up| !walk.contains(up)) {
            walk.push(up);
        }
        walk.sort_unstable();
        if parents.get(id).is_some_and(|up| walk.contains(up)) && closes(&parents, id) && !found.contains(&walk) {
            found.push(walk);
        }
    }
    let told = crate::compare::findings::places(run, "reduce", "graph.cycle").len();
    if told == found.len() { json!(found) } else { json!({"found": found, "told": told}) }
}

/// Whether the parents of a record lead back to it.
fn closes(parents: &BTreeMap<&str, &str>, id: &str) -> bool {
    let mut at = parents.get(id);
    for _ in 0..parents.len() {
        match at {
            Some(up) if *up == id => return true,
            Some(up) => at = parents.get(up),
            None => return false,
        }
    }
    false
}

/// What the model saw when it said the first thing after the first compaction.
fn context_after_first_compaction(run: &Run<'_>, imported: &Imported) -> Result<Value, String> {
    let mut after = imported.log.events.iter().skip_while(|e| e["type"] != "context.compacted");
    let next =
        after.find(|e| e["type"] == "message.added").and_then(|e| json::text(e, "/id")).ok_or("nothing follows")?;
    let context = run.implementation.context(&imported.log.path, Some(next))?;
    Ok(names(imported, &context))
}

/// Results on the path of the model whose calls are not on it.
fn orphans(imported: &Imported) -> usize {
    let events = json::list(&imported.context, "/path/events").iter();
    let parts: Vec<&Value> = events
        .filter_map(|id| imported.log.event(id.as_str()?))
        .flat_map(|event| json::list(event, "/data/parts"))
        .collect();
    let of = |kind: &str| -> BTreeSet<&str> {
        parts.iter().filter(|part| part["type"] == kind).filter_map(|part| json::text(part, "/action")).collect()
    };
    of("result").difference(&of("action")).count()
}

/// The native ids of the messages that the model sees.
fn context(imported: &Imported) -> Value {
    names(imported, &imported.context)
}

fn names(imported: &Imported, context: &Value) -> Value {
    let name = |id: &Value| {
        let event = imported.log.event(id.as_str()?)?;
        let native = imported.log.native_id(event)?;
        Some(if event["data"]["purpose"] == "summary" { format!("summary:{native}") } else { native })
    };
    json::list(context, "/path/events").iter().map(|id| Value::from(name(id))).collect()
}

/// The children, by their native ids.
fn agents(imported: &Imported) -> Value {
    let mut agents = serde_json::Map::new();
    for child in json::list(&imported.state, "/children") {
        let mut agent = serde_json::Map::new();
        if let Some(call) = json::text(child, "/action") {
            agent.insert("call".into(), call.into());
        }
        agent.insert("link".into(), child["link"].clone());
        agents.insert(json::text(child, "/session").unwrap_or_default().into(), agent.into());
    }
    agents.into()
}

/// The questions for leave, in their order, each with what the vendor calls what is asked for.
fn approvals(imported: &Imported) -> Value {
    let asked = |approval: &Value| {
        let id = json::text(approval, "/approval");
        let request = imported.log.of_type("approval.requested").find(|e| json::text(e, "/data/approval") == id);
        // An end of the action settles its requests; what was answered before stands in the log.
        let ended = imported.log.of_type("approval.ended").find(|e| json::text(e, "/data/approval") == id);
        let status = ended.map_or(&approval["status"], |e| &e["data"]["outcome"]);
        json!({
            "id": id, "call": approval["action"], "status": status,
            "kind": request.map_or(&Value::Null, |e| &e["data"]["options"]["permission"]),
        })
    };
    json::list(&imported.state, "/approvals").iter().map(asked).collect()
}

/// What the database holds without the log beside it.
fn main_file_alone(run: &Run<'_>) -> Result<Value, String> {
    let alone = alone(run)?;
    let rows = |table: &str| {
        json::list(&alone.report, "/inputs").iter().find_map(|input| input["by_type"][table].as_u64()).unwrap_or(0)
    };
    Ok(
        json!({"sessions": json::list(&alone.report, "/logs").len(), "messages": rows("message"), "parts": rows("part")}),
    )
}

/// Imports the database of a case without the log beside it.
pub(super) fn alone(run: &Run<'_>) -> Result<Import, String> {
    let folder = tempfile::tempdir_in(run.folder).map_err(|e| e.to_string())?;
    let copy = folder.path().join("opencode.db");
    fs::copy(&run.source.path, &copy).map_err(|e| e.to_string())?;
    run.implementation.import(&copy, &folder.path().join("logs"))
}

/// What became of each input that was queued.
fn queue(imported: &Imported) -> Value {
    let log = &imported.log;
    let texts: BTreeMap<&str, String> = log
        .of_type("input.queued")
        .filter_map(|event| {
            let words = json::list(event, "/data/parts").iter().filter_map(|part| json::text(part, "/text"));
            Some((json::text(event, "/data/input")?, words.collect()))
        })
        .collect();
    let fate = |input: &Value| {
        let text = json::text(input, "/input").and_then(|id| texts.get(id)).cloned();
        let mut told = serde_json::Map::new();
        let fate = match json::text(input, "/status") {
            Some("dropped") => "withdrawn",
            Some("queued") => "queued",
            Some("taken" | "delivered") if input["pending"] != true => "delivered",
            other => other.unwrap_or_default(),
        };
        told.insert("text".into(), text.into());
        told.insert("fate".into(), fate.into());
        let holder = json::text(input, "/message").and_then(|id| log.event(id)).and_then(|event| log.native(event));
        if let Some(kind) = holder.as_ref().and_then(|record| json::text(record, "/type")) {
            let kind = if kind == "user" { "user record" } else { kind };
            told.insert("as".into(), kind.into());
        }
        Value::from(told)
    };
    json::list(&imported.state, "/inputs").iter().map(fate).collect()
}

/// Pictures and other content: how often it is referred to, how much of it there is, and how large that is.
fn blobs(run: &Run<'_>, what: &str) -> Value {
    let mut references = 0_u64;
    let mut unique = BTreeSet::new();
    for imported in &run.logs {
        for event in &imported.log.events {
            each_blob(&event["data"], &mut |blob| {
                references += 1;
                let digest = json::text(blob, "/$blob").unwrap_or_default().to_owned();
                let size = imported.log.content(blob).map(|bytes| bytes.len() as u64);
                if size.is_some() && size == json::count(blob, "/size") {
                    unique.insert((digest, size.unwrap_or(0)));
                }
            });
        }
    }
    match what {
        "blobs_unique" => unique.len().into(),
        "blob_references" => references.into(),
        _ => unique.iter().map(|(_, size)| size).sum::<u64>().into(),
    }
}

fn each_blob(value: &Value, visit: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(members) if members.contains_key("$blob") => visit(value),
        Value::Object(members) => members.values().for_each(|member| each_blob(member, visit)),
        Value::Array(items) => items.iter().for_each(|item| each_blob(item, visit)),
        _ => {}
    }
}
