//! The sentences of an expectation, each with what it means for an import. A sentence without a check is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::case::{Expect, Expectation, check_input};
use crate::compare::findings;
use crate::implementation::World;
use crate::json;
use crate::log::{Log, Record};
use crate::run::{Imported, Run};

/// Whether a sentence speaks of what an import cannot show.
pub(super) fn is_about_an_export(sentence: &str) -> bool {
    sentence.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "export")
}

/// Checks one sentence; a `must_not` holds as well when its check does.
pub(super) fn check(run: &Run<'_>, expect: &Expect, sentence: &str) -> Result<(), String> {
    let number = expect.case.get(..2).unwrap_or_default();
    let Some((_, _, check)) = TABLE.iter().find(|(case, text, _)| *case == number && *text == sentence) else {
        return Err("nobody checks this sentence".into());
    };
    // Of several sessions, a check looks for its own.
    check(run, run.only().or_else(|why| run.logs.first().ok_or(why))?)
}

/// Whether the files beside the source of a case are what they were, and no more have come.
fn source_is_unchanged(run: &Run<'_>) -> Result<(), String> {
    let Expectation::Faults(expect) = &run.source.expectation else { return Err("no files are told".into()) };
    expect.inputs.iter().try_for_each(|input| check_input(&run.source.base, input))?;
    let folder = run.source.path.parent().ok_or("no folder")?;
    let there = fs::read_dir(folder).map_err(|e| e.to_string())?.count();
    holds(there == expect.inputs.len(), || format!("{there} files lie there"))
}

type Check = fn(&Run<'_>, &Imported) -> Result<(), String>;

/// Case, sentence, and what has to hold. A `must_not` is turned into what must be instead.
const TABLE: &[(&str, &str, Check)] = &[
    ("01", "four events in file order", |_, one| {
        let starts: Vec<u64> = messages(&one.log).iter().map(|r| r.at).collect();
        holds(starts.len() == 4 && starts.is_sorted(), || format!("messages of records at {starts:?}"))
    }),
    ("01", "parent chain 1 <- 2 <- 3 <- 4 is whole", |_, one| {
        let inferred = json::list(&one.context, "/path/inferred");
        is_path(one, &[1, 2, 3, 4])?;
        holds(inferred.is_empty(), || format!("inferred: {inferred:?}"))
    }),
    ("01", "drop the line", |_, one| record_at(one, 310)),
    ("01", "drop the second object of the line", |_, one| {
        let second =
            one.log.main_records().into_iter().any(|r| r.at > 310 && r.end() <= 310 + 955 && r.id() == Some(&uuid(3)));
        holds(second, || format!("no event points to {} behind the first object", uuid(3)))
    }),
    ("01", "stop reading the file", last_line_is_read),
    ("02", "the prompt \"second prompt, whole\" is recovered", |_, one| {
        let found = one.log.of_type("message.added").any(|e| {
            let data = &e["data"];
            e["actor"]["kind"] == "user" && data["purpose"] == "prompt" && text_of(data) == "second prompt, whole"
        });
        holds(found, || "no prompt says so".into())
    }),
    (
        "02",
        "the identifier that can still be read in the fragment is reported as damaged, not as a record",
        |run, one| {
            let id = uuid(2);
            let told =
                findings::places(run, "import", "framing.fragment").iter().any(|place| place["record"] == id.as_str());
            holds(told, || format!("no fragment is reported as {id}"))?;
            holds(one.log.main_records().iter().all(|r| r.id() != Some(&id)), || format!("{id} is a record"))
        },
    ),
    ("02", "stop reading at line 2", last_line_is_read),
    ("02", "invent the missing end of the answer", |_, one| {
        let spoken: Vec<&Value> =
            one.log.of_type("message.added").filter(|e| e["data"]["role"] == "assistant").collect();
        let whole = |e: &&Value| one.log.native_id(e) == Some(uuid(4));
        holds(spoken.iter().all(whole), || format!("{} messages of the model, and one record of it", spoken.len()))
    }),
    ("03", "the offset from which to go on reading is the start of line 5", |_, one| {
        let torn: Vec<u64> = one.log.notes(&["torn"]).map(|(_, at, _)| at).collect();
        holds(torn == [749], || format!("torn tails at {torn:?}"))
    }),
    // What was imported is no writer's: the tail is apart from the records, so that it can be cut off.
    (
        "03",
        "a writer that goes on in this file writes a newline first or cuts the tail off and keeps it elsewhere",
        |_, one| {
            let inside = one.log.main_records().iter().any(|r| r.end() > 749);
            holds(!inside, || "a record reaches into the tail".into())
        },
    ),
    ("03", "fail because of the tail", |_, one| records_are(one, 4)),
    ("05", "offsets and watermarks count raw bytes, not decoded characters", |_, one| record_at(one, 722)),
    ("05", "decode the file as a whole", |_, one| records_are(one, 4)),
    ("05", "stall at the bad byte", last_line_is_read),
    ("04", "three records, and all three are on the active path", |_, one| {
        records_are(one, 3)?;
        is_path(one, &[1, 2, 3])
    }),
    ("04", "end the context at line 2", |_, one| is_path(one, &[1, 2, 3])),
    ("04", "write NUL bytes into the output", |_, one| {
        let text = String::from_utf8_lossy(&one.log.bytes);
        holds(!text.contains('\0') && !text.contains("\\u0000"), || "the log holds NUL".into())
    }),
    ("06", "call toolu_demo1 and its result stay paired", |_, one| is_paired(one, "toolu_demo1")),
    ("06", "crash", |_, _| Ok(())),
    ("06", "drop the record", |_, one| record_at(one, 992)),
    ("07", "two records", |_, one| records_are(one, 2)),
    ("07", "the prompt holds exactly one U+2028, one U+2029 and one U+0085", |_, one| {
        let prompt = one.log.of_type("message.added").next().map(|e| text_of(&e["data"])).unwrap_or_default();
        let counts = ['\u{2028}', '\u{2029}', '\u{85}'].map(|c| prompt.matches(c).count());
        holds(counts == [1, 1, 1], || format!("{counts:?} in {prompt:?}"))
    }),
    ("15", "results pair with calls by call id although each result hangs under its own record", |_, one| {
        let calls = calls_in_source(&one.log);
        holds(calls.len() == 2, || format!("{} calls in the source", calls.len()))?;
        calls.iter().try_for_each(|call| is_paired(one, call))
    }),
    ("15", "output_tokens 10 (first record of each group)", |_, one| output_is_not(one, 10)),
    ("15", "output_tokens 260 (all records added up)", |_, one| output_is_not(one, 260)),
    ("16", "a store with a unique key on the uuid does not fail on the copies", |_, one| {
        let ids: BTreeSet<&str> = one.log.events.iter().filter_map(|e| json::text(e, "/id")).collect();
        holds(ids.len() == one.log.events.len(), || "ids of events repeat".into())?;
        let own = one
            .log
            .main_records()
            .into_iter()
            .filter(|r| r.events.iter().all(|n| one.log.events[*n]["copy"].is_null()));
        let uuids: Vec<String> = own.filter_map(|r| r.id().map(str::to_owned)).collect();
        let distinct: BTreeSet<&String> = uuids.iter().collect();
        holds(distinct.len() == uuids.len(), || "records with one uuid that are no copies".into())
    }),
    ("16", "count usage twice", |_, one| {
        let once = once_per_response(&one.log);
        let found = json::count(&one.state, "/usage/output");
        holds(found == Some(once), || format!("{found:?} and not {once}"))
    }),
    ("16", "count a prompt twice", |_, one| {
        let prompts: BTreeSet<String> = source_records(&one.log)
            .iter()
            .filter(|r| r["type"] == "user" && r["message"]["content"].is_string() && r["isCompactSummary"] != true)
            .filter_map(|r| json::text(r, "/uuid").map(str::to_owned))
            .collect();
        let found = json::count(&one.state, "/counts/prompts");
        holds(found == Some(prompts.len() as u64), || format!("{found:?} and not {}", prompts.len()))
    }),
    ("18", "total_tokens 5660", |_, one| {
        let total = total_tokens(&one.state);
        holds(total == 2280, || format!("{total}"))
    }),
    ("19", "the usage of both pairs adds up to 1190 and 1770", |run, _| {
        let pairs = [["aa", "bb"], ["cc", "dd"]].map(|pair| pair.map(|end| tokens_of(run, end)).iter().sum::<u64>());
        holds(pairs == [1190, 1770], || format!("{pairs:?}"))
    }),
    ("19", "with the parent file taken away, the child by reference is reported as incomplete", |run, _| {
        let child = run.source.base.join("input/by-reference/child.jsonl");
        let alone = run.implementation.import(&child, &run.folder.join("alone"))?;
        let told = json::list(&alone.report, "/diagnostics")
            .iter()
            .any(|d| d["code"] == "graph.missing_parent" && d["severity"] == "warning");
        holds(told, || "no warning says so".into())
    }),
    ("19", "the copied child identified as 019c0000-0000-7000-8000-0000000000aa", |run, _| {
        let child = run.logs.iter().find(|l| l.session.ends_with("bb")).ok_or("no log of the copied child")?;
        records_are(child, 8)
    }),
    ("19", "usage of the copied pair 1740", |run, _| {
        let pair = tokens_of(run, "aa") + tokens_of(run, "bb");
        holds(pair == 1190, || format!("{pair}"))
    }),
    ("19", "\"try A\" or \"A done\" in the history of the child by reference", |run, _| {
        let history = crate::compare::facts::history(run, "dd")?;
        let wrong = history.iter().any(|text| text == "try A" || text == "A done");
        holds(!wrong && !history.is_empty(), || format!("{history:?}"))
    }),
    ("21", "nothing made up enters the archive", |_, one| {
        let made_up = |e: &&Value| json::list(e, "/src").is_empty() && e["actor"]["kind"] != "importer";
        holds(!one.log.events.iter().any(|e| made_up(&e)), || "an event comes from no record".into())?;
        let ends = [
            "action.started",
            "action.ended",
            "action.reconciled",
            "approval.requested",
            "approval.ended",
            "turn.ended",
            "log.closed",
        ];
        let ended = one.log.events.iter().find(|e| json::text(e, "/type").is_some_and(|kind| ends.contains(&kind)));
        holds(ended.is_none(), || format!("{ended:?}"))?;
        holds(results(&one.log).is_empty(), || "there is a result".into())
    }),
    ("21", "report the call as never started", |_, one| {
        let action = action(one, "toolu_dep")?;
        holds(action["state"] == "unknown" && action["applied"] == "unknown", || action.to_string())
    }),
    ("21", "run the call again without a decision", |_, one| {
        let owed: Vec<&Value> = one.obligations("toolu_dep").collect();
        holds(!owed.is_empty() && owed.iter().all(|o| o["decision"] == "reconcile" || o["decision"] == "ask"), || {
            format!("{owed:?}")
        })
    }),
    ("22", "toolu_1 and toolu_3 keep their results", |_, one| {
        is_paired(one, "toolu_1").and_then(|()| is_paired(one, "toolu_3"))
    }),
    ("22", "list toolu_2 as running or pending", |_, one| {
        let action = action(one, "toolu_2")?;
        let open = ["running", "awaiting", "proposed", "approved"].iter().any(|s| action["state"] == *s);
        let pending = json::list(&one.state, "/pending").iter().any(|p| p["action"] == "toolu_2");
        let blocking = one.obligations("toolu_2").any(|o| o["blocking"] == true);
        holds(!open && !pending && !blocking, || format!("{action}, pending {pending}, blocking {blocking}"))
    }),
    ("22", "treat toolu_2 as succeeded", |_, one| {
        let action = action(one, "toolu_2")?;
        holds(action["state"] != "succeeded" && action["applied"] == "unknown" && action["told"] == "none", || {
            action.to_string()
        })
    }),
    ("23", "the context either begins at e2 or leaves e3 out", |_, one| {
        let seen = one.context["messages"].to_string();
        let (call, result) = (seen.contains("\"tool_use\""), seen.contains("\"tool_result\""));
        holds(call == result, || seen)
    }),
    ("23", "report call_9 as lost", |run, one| {
        let lost = findings::places(run, "reduce", "tool.result_lost");
        holds(lost.is_empty(), || format!("{lost:?}"))?;
        let action = action(one, "call_9")?;
        holds(action["state"] == "succeeded" && action["told"] == "result", || action.to_string())
    }),
    ("26", "the inferred link from 5 to 4 is marked as inferred", |_, one| {
        is_path(one, &[1, 2, 3, 4, 5, 6])?;
        let marked: Vec<String> = natives(one, json::list(&one.context, "/path/inferred"));
        holds(marked == [uuid(5)], || format!("marked: {marked:?}"))
    }),
    ("26", "leave records 1 to 4 out of the archive", |_, one| holds_records(one, &[1, 2, 3, 4])),
    ("27", "the reader terminates", |_, _| Ok(())),
    ("27", "every entry appears exactly once", |_, one| {
        let ids: Vec<String> = one.log.main_records().iter().filter_map(|r| r.id().map(str::to_owned)).collect();
        let seen = natives(one, json::list(&one.context, "/path/events"));
        let distinct: BTreeSet<&String> = seen.iter().collect();
        holds(ids == ["e1", "e2", "e3", "e4"] && distinct.len() == seen.len(), || format!("{ids:?}, seen {seen:?}"))
    }),
    ("29", "toolu_p keeps its result", |_, one| is_paired(one, "toolu_p")),
    ("29", "the tool result is on the active path", |_, one| {
        let blocks = json::list(&one.context, "/messages").iter().flat_map(|m| json::list(m, "/content"));
        let found = blocks.filter(|b| b["type"] == "tool_result" && b["tool_use_id"] == "toolu_p").count();
        holds(found == 1, || format!("{found} times in the context"))
    }),
    ("29", "report toolu_p as open", |_, one| {
        let action = action(one, "toolu_p")?;
        holds(action["state"] == "succeeded" && one.obligations("toolu_p").next().is_none(), || action.to_string())
    }),
    ("30", "all 8 records are in the archive", |run, _| {
        let all: usize = run.logs.iter().map(|l| l.log.main_records().len()).sum();
        holds(all == 8, || format!("{all}"))
    }),
    ("30", "drop a sidechain record that cannot be traced", |run, _| {
        let orphan = run.session("ag0003").ok_or("no log of ag0003")?;
        records_are(orphan, 1)
    }),
    ("31", "the summary is not counted as a typed prompt", |_, one| {
        let summaries: Vec<&Value> =
            one.log.of_type("message.added").filter(|e| e["data"]["purpose"] == "summary").collect();
        let by_harness = summaries.iter().all(|e| e["actor"]["kind"] == "harness");
        let prompts = one.log.of_type("message.added").filter(|e| e["data"]["purpose"] == "prompt").count() as u64;
        let counted = json::count(&one.state, "/counts/prompts");
        holds(summaries.len() == 1 && by_harness && counted == Some(prompts), || format!("{counted:?} of {prompts}"))
    }),
    ("31", "removing the boundary and the summary changes no call and no approval", without_the_compaction),
    ("32", "no message is in neither a window nor under a summary", |_, one| {
        let last = one.log.events.iter().rposition(|e| e["type"] == "context.compacted").ok_or("no compaction")?;
        let seen = json::list(&one.context, "/path/events");
        let lost: Vec<&Value> = one.log.events[last..]
            .iter()
            .filter(|e| e["type"] == "message.added" && !seen.contains(&e["id"]))
            .collect();
        holds(lost.is_empty(), || format!("{lost:?}"))
    }),
    ("34", "both odd records are kept", |_, one| record_at(one, 0).and_then(|()| record_at(one, 1156))),
    ("34", "take the title from line 1", |_, one| {
        holds(one.state["title"] != "Other project: tune the parser", || one.state["title"].to_string())
    }),
    ("34", "rename the session after line 5", |_, one| {
        let own = "5e550000-0000-4000-8000-000000000001";
        holds(one.session == own && one.state["session"] == own, || {
            format!("{} and {}", one.session, one.state["session"])
        })
    }),
    ("38", "times are absent or marked as inferred", without_times),
    ("38", "the environment block is not counted as a typed prompt", |_, one| {
        let prompts = json::count(&one.state, "/counts/prompts");
        holds(prompts == Some(1), || format!("{prompts:?}"))
    }),
    ("38", "copy the time of the header to the records as if it were theirs", without_times),
    ("38", "report an empty session", |_, one| {
        let messages = one.log.of_type("message.added").count();
        holds(messages == 5, || format!("{messages} messages"))
    }),
    ("44", "sort by time", |_, one| {
        let starts: Vec<u64> = messages(&one.log).iter().map(|r| r.at).collect();
        holds(starts.len() == 5 && starts.is_sorted(), || format!("messages of records at {starts:?}"))
    }),
    ("44", "drop e5", |_, one| record_at(one, 1036)),
    ("45", "show \"also run the linter\" twice", |_, one| {
        let shown = one.log.of_type("message.added").filter(|e| text_of(&e["data"]) == "also run the linter").count();
        let seen = one.context["messages"].to_string().matches("also run the linter").count();
        holds((shown, seen) == (1, 1), || format!("shown {shown} times, seen by the model {seen} times"))
    }),
    ("45", "lose the queued prompt", |_, one| {
        let text = "typed just before the crash";
        let queued =
            one.log.of_type("input.queued").find(|e| text_of(&e["data"]) == text).ok_or("it is in no event")?;
        let input = &queued["data"]["input"];
        let waits = json::list(&one.state, "/pending").iter().any(|p| p["input"] == *input);
        let owed = json::list(&one.recovery, "/obligations")
            .iter()
            .any(|o| o["subject"]["kind"] == "input" && o["subject"]["id"] == *input);
        holds(waits && owed, || format!("pending {waits}, owed {owed}"))
    }),
    ("45", "take every remove for a withdrawal", |_, one| {
        let dropped = json::list(&one.state, "/inputs").iter().filter(|i| i["status"] == "dropped").count();
        let removes = source_records(&one.log).iter().filter(|r| r["operation"] == "remove").count();
        holds(dropped == 1 && removes > 1, || format!("{dropped} of {removes} removes are withdrawals"))
    }),
    ("53", "three references, one stored object", |_, one| {
        let folder = one.log.path.with_extension("").with_extension("").with_extension("palog.blobs");
        let stored = files_below(&folder);
        let references = one.log.events.iter().map(|e| e.to_string().matches("\"$blob\"").count()).sum::<usize>();
        holds((references, stored) == (3, 1), || {
            format!("{references} references, {stored} objects in {}", folder.display())
        })
    }),
    ("43", "rows are ordered by id, not by time", |run, _| {
        let keys = |one: &Imported| -> Vec<u64> {
            let rows =
                one.log.main_records().into_iter().filter(|r| json::text(&r.native, "/table") == Some("messages"));
            rows.filter_map(|r| json::text(&r.native, "/key")?.parse().ok()).collect()
        };
        let all: Vec<Vec<u64>> = run.logs.iter().map(keys).collect();
        let ordered = all.iter().all(|keys| keys.is_sorted()) && all.iter().map(Vec::len).sum::<usize>() == 5;
        holds(ordered, || format!("rows in the order {all:?}"))
    }),
    ("43", "the prior-context row is not counted as a typed prompt", |run, _| {
        let prior = run
            .logs
            .iter()
            .flat_map(|one| one.log.of_type("message.added"))
            .find(|event| text_of(&event["data"]).starts_with("[PRIOR CONTEXT"));
        let kind = prior.map(|event| (&event["actor"]["kind"], &event["data"]["purpose"]));
        holds(kind.is_some_and(|(actor, purpose)| actor == "harness" && purpose == "summary"), || format!("{kind:?}"))
    }),
    // The tables of the case have columns and an order of their own.
    ("43", "columns are read by name, so that newer schemas do not break the reader", |run, _| {
        let call = run.logs.iter().find_map(|one| one.action("call_h1"));
        let read = call.is_some_and(|a| a["name"] == "terminal" && a["state"] == "succeeded" && a["told"] == "result");
        holds(read, || format!("the call is {call:?}"))
    }),
    ("41", "\"only in the WAL\" is in the archive", |run, _| {
        let said = |log: &Imported| log.log.of_type("message.added").any(|e| text_of(&e["data"]) == "only in the WAL");
        holds(run.logs.iter().any(said), || "nobody says it".into())
    }),
    ("41", "a .db without its -wal is reported as possibly short, since SQLite cannot tell", |run, _| {
        let alone = crate::compare::facts::alone(run)?;
        let told = json::list(&alone.report, "/diagnostics").iter().any(|d| d["code"] == "store.wal_missing");
        holds(told, || "no warning says so".into())
    }),
    ("41", "open the source read-write", |run, _| source_is_unchanged(run)),
    ("41", "create a -shm file beside the source", |run, _| source_is_unchanged(run)),
    (
        "46",
        "a reader that resumes offers per_2 again, under a new request id, bound to the same call and the same arguments",
        |_, one| {
            let asks = |owed: &&Value| owed["decision"] == "ask" && owed["approval"]["approval"] == "per_2";
            let call = one.action("call_2").ok_or("no call_2")?;
            let asked = one.log.of_type("approval.requested").find(|e| e["data"]["approval"] == "per_2");
            let bound = asked.is_some_and(|e| e["data"]["args_digest"] == call["args_digest"]);
            let owed = json::list(&one.recovery, "/obligations");
            let of_call = owed.iter().any(|o| o["subject"]["id"] == "per_2" || o["call"]["action"] == "call_2");
            holds(bound && (of_call || owed.iter().any(|o| asks(&o))), || format!("{owed:?}"))
        },
    ),
    ("46", "nothing is granted on import and grants do not move to another vendor", |_, one| {
        let grants = one.log.of_type("grant.added").count();
        let by_importer = one
            .log
            .of_type("approval.ended")
            .filter(|e| e["data"]["outcome"] == "granted" && json::list(e, "/src").is_empty())
            .count();
        holds(grants == 0 && by_importer == 0, || format!("{grants} grants, {by_importer} without a record"))
    }),
    ("46", "list per_1 or per_3 as open", |_, one| {
        let open = |a: &&Value| a["status"] == "open" && a["approval"] != "per_2";
        let open: Vec<&Value> = json::list(&one.state, "/approvals").iter().filter(open).collect();
        holds(open.is_empty(), || format!("{open:?}"))
    }),
    ("46", "answer awaiting_human for export.json alone", |run, _| {
        let export = run.logs.iter().find(|log| log.input.as_deref() == Some("input/export.json"));
        let verdict = export.and_then(|log| json::text(&log.recovery, "/verdict"));
        holds(verdict.is_some_and(|v| v != "awaiting_human"), || format!("{verdict:?}"))
    }),
];

fn holds(it: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if it { Ok(()) } else { Err(why()) }
}

/// The ids of records in these cases are patterned.
fn uuid(n: u32) -> String {
    format!("aaaa0000-0000-4000-8000-{n:012}")
}

/// Events of records have no time, but for those of the header.
fn without_times(_: &Run<'_>, one: &Imported) -> Result<(), String> {
    let timed: Vec<u64> = one
        .log
        .main_records()
        .iter()
        .filter(|r| r.events.iter().any(|n| !one.log.events[*n]["time"].is_null()))
        .map(|r| r.at)
        .collect();
    holds(timed == [0], || format!("records with times at {timed:?}"))
}

/// Input and output of a session, copies left out.
fn total_tokens(state: &Value) -> u64 {
    json::count(state, "/usage/input").unwrap_or(0) + json::count(state, "/usage/output").unwrap_or(0)
}

/// Tokens of the session whose id ends so.
fn tokens_of(run: &Run<'_>, end: &str) -> u64 {
    run.logs.iter().filter(|l| l.session.ends_with(end)).map(|l| total_tokens(&l.state)).sum()
}

fn text_of(data: &Value) -> String {
    json::list(data, "/parts").iter().filter_map(|part| json::text(part, "/text")).collect()
}

fn action<'r>(one: &'r Imported, id: &str) -> Result<&'r Value, String> {
    one.action(id).ok_or_else(|| format!("no action {id}"))
}

/// The records that became messages, in the order of the log.
fn messages(log: &Log) -> Vec<Record> {
    let is_message = |r: &Record| r.events.iter().any(|n| log.events[*n]["type"] == "message.added");
    log.main_records().into_iter().filter(is_message).collect()
}

fn natives(one: &Imported, events: &[Value]) -> Vec<String> {
    events.iter().filter_map(|id| one.log.native_id(one.log.event(id.as_str()?)?)).collect()
}

/// The active path is that of exactly these records.
fn is_path(one: &Imported, records: &[u32]) -> Result<(), String> {
    let path = natives(one, json::list(&one.context, "/path/events"));
    holds(path == records.iter().map(|n| uuid(*n)).collect::<Vec<_>>(), || format!("the path is {path:?}"))
}

fn records_are(one: &Imported, n: usize) -> Result<(), String> {
    let found = one.log.main_records().len();
    holds(found == n && one.records == n as u64, || {
        format!("{found} records have events, {} are reported", one.records)
    })
}

fn holds_records(one: &Imported, records: &[u32]) -> Result<(), String> {
    let ids: BTreeSet<String> = one.log.main_records().iter().filter_map(|r| r.id().map(str::to_owned)).collect();
    let missing: Vec<String> = records.iter().map(|n| uuid(*n)).filter(|id| !ids.contains(id)).collect();
    holds(missing.is_empty(), || format!("missing: {missing:?}"))
}

/// An event points to a record at this offset.
fn record_at(one: &Imported, at: u64) -> Result<(), String> {
    let found = one.log.main_records().iter().any(|r| r.at == at && !r.native.is_null());
    holds(found, || format!("no event points to a record at {at}"))
}

/// An event points to the last record of the source.
fn last_line_is_read(_: &Run<'_>, one: &Imported) -> Result<(), String> {
    let len = one.log.sources.get("transcript").map(|bytes| bytes.trim_ascii_end().len() as u64);
    let end = one.log.main_records().iter().map(Record::end).max();
    holds(len.is_some() && end == len, || format!("events go to {end:?} of {len:?}"))
}

/// The results that the model was given, by call.
fn results(log: &Log) -> Vec<(&str, &Value)> {
    let parts =
        log.of_type("message.added").flat_map(|e| json::list(e, "/data/parts").iter().map(move |part| (part, e)));
    parts
        .filter(|(part, _)| part["type"] == "result")
        .filter_map(|(part, e)| Some((json::text(part, "/action")?, e)))
        .collect()
}

/// A call has its own result: one, from the record that names it.
fn is_paired(one: &Imported, call: &str) -> Result<(), String> {
    let action = action(one, call)?;
    holds(action["state"] == "succeeded" && action["told"] == "result" && !action["proposed"].is_null(), || {
        action.to_string()
    })?;
    let own: Vec<&Value> = results(&one.log).into_iter().filter(|(id, _)| *id == call).map(|(_, e)| e).collect();
    let [result] = own[..] else { return Err(format!("{} results of {call}", own.len())) };
    let native = one.log.native(result).unwrap_or_default();
    let names =
        json::list(&native, "/message/content").iter().any(|b| b["type"] == "tool_result" && b["tool_use_id"] == call);
    holds(names, || format!("the record of the result does not name {call}"))
}

/// The records of the transcript, read from the source and not from the log.
fn source_records(log: &Log) -> Vec<Value> {
    let lines = log.sources.get("transcript").map(Vec::as_slice).unwrap_or_default().split(|b| *b == b'\n');
    lines.filter_map(|line| json::value(std::str::from_utf8(line).ok()?).ok()).collect()
}

fn calls_in_source(log: &Log) -> Vec<String> {
    let blocks = |r: &Value| json::list(r, "/message/content").to_vec();
    let calls = source_records(log).iter().flat_map(blocks).filter(|b| b["type"] == "tool_use").collect::<Vec<_>>();
    calls.iter().filter_map(|b| json::text(b, "/id").map(str::to_owned)).collect()
}

/// Output tokens of the source, each response once.
fn once_per_response(log: &Log) -> u64 {
    let mut responses = BTreeMap::new();
    for record in source_records(log) {
        if let (Some(id), Some(output)) =
            (json::text(&record, "/message/id"), json::count(&record, "/message/usage/output_tokens"))
        {
            responses.insert(id.to_owned(), output);
        }
    }
    responses.values().sum()
}

fn output_is_not(one: &Imported, wrong: u64) -> Result<(), String> {
    let found = json::count(&one.state, "/usage/output");
    holds(found.is_some_and(|n| n != wrong && n == once_per_response(&one.log)), || format!("{found:?}"))
}

/// The log without its compaction reduces to the same calls, approvals and obligations.
fn without_the_compaction(run: &Run<'_>, one: &Imported) -> Result<(), String> {
    let mut removed = 0;
    let mut lines = String::new();
    for mut event in one.log.events.clone() {
        if event["type"] == "context.compacted" || event["data"]["purpose"] == "summary" {
            removed += 1;
            continue;
        }
        event["seq"] = json::count(&event, "/seq").map(|seq| seq - removed).into();
        // A tree orders members by name, and the version comes first.
        let version = event.as_object_mut().and_then(|event| event.remove("palog")).unwrap_or_default();
        lines.push_str(&event.to_string().replacen('{', &format!("{{\"palog\":{version},"), 1));
        lines.push('\n');
    }
    holds(removed == 2, || format!("{removed} events make up the compaction"))?;
    let path = run.folder.join("without-compaction.palog.jsonl");
    fs::write(&path, lines).map_err(|e| e.to_string())?;
    let state = run.implementation.state(&path)?;
    let recovery = run.implementation.recovery(&path, &World::default())?;
    for member in ["actions", "approvals"] {
        let (with, without) = (&one.state[member], &state["state"][member]);
        holds(with == without, || format!("{member}: {with} becomes {without}"))?;
    }
    holds(recovery["verdict"] == one.recovery["verdict"], || format!("the verdict becomes {}", recovery["verdict"]))
}

fn files_below(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|e| if e.path().is_dir() { files_below(&e.path()) } else { 1 }).sum()
}
