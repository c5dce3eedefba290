//! The context that a log gives as input of the OpenAI Responses API equals what Codex sent to the model, request by request,
//! and what it sends when it resumes.
//!
//! Both sides are brought into one form by exactly these steps: `id` and `status` of items, `annotations` of texts, `detail` of
//! pictures and members that are `null` are dropped; so is what fills up the mark of a text that was taken out; an output that is a list of one text is that text; the base
//! instructions, which the client puts first, and the tools that it puts into each request, are dropped. What the client does
//! to its history beyond that is in [`REPAIRS`], a closed list.

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use palog::blob::BlobStore;
use palog::project::{At, openai};
use palog_conformance::{Log, json};
use palog_import::{Directory, Options, discover};
use serde_json::{Value, json};

/// Something that the client does to its history when it makes a request of it.
struct Repair {
    name: &'static str,
    /// Applies it to the items of the log, in their common form, and tells how often it did something.
    apply: fn(&mut Vec<Value>, &Request) -> usize,
    /// The requests in which it does something.
    fires: &'static [&'static str],
}

/// Everything that the client does which the log does not hold.
const REPAIRS: &[Repair] = &[
    Repair {
        name: "aborted",
        apply: aborted,
        fires: &[
            "approval_kill9 2",
            "approval_kill9 resumed: 01a2272d-5959",
            "approval_kill9 resumed: after_kill.jsonl",
            "hooks_granted_kill 2",
            "kill9_command 2",
            "kill9_command resumed: 01a2272d-6ff1",
            "kill9_command resumed: after_kill.jsonl",
        ],
    },
    Repair { name: "summary_prompt", apply: summary_prompt, fires: &["compaction 4", "compaction_auto 2", "hooks 5"] },
    Repair {
        name: "fresh_context",
        apply: fresh_context,
        fires: &[
            "approval_accept resumed: 01a2272d-4773",
            "approval_cancel resumed: 01a2272d-50f7",
            "approval_decline resumed: 01a2272d-4c47",
            "approval_kill9 resumed: 01a2272d-5959",
            "approval_kill9 resumed: after_kill.jsonl",
            "approval_session resumed: 01a2272d-54d1",
            "hooks resumed: 01a2272d-ed62",
            "responses_lite resumed: 01a2272d-dda2",
            "subagent_v1 resumed: 01a2272d-3a89",
            "subagent_v1 resumed: 01a2272d-3b28",
            "subagent_v2 resumed: 01a2272d-404c",
            "tui resumed: 01a2272d-fa92",
        ],
    },
];

/// The mark of a text that was taken out of the recordings.
const ELIDED: &str = "[client text elided]";

/// Requests whose place no record tells: nothing came of them.
const UNANSWERED: &[(&str, u64)] = &[
    // An error, a kill or an interruption came before the response was whole.
    ("compaction_failed", 2),
    ("compaction_kill9", 2),
    ("kill9_stream", 1),
    ("model_errors", 1),
    ("model_errors", 3),
    ("model_errors", 5),
    ("subagent_v1", 3),
    ("subagent_v2", 3),
    // Of a session whose file was not kept, and of the terminal, which asks for a title.
    ("name_archive", 3),
    ("tui", 2),
];

/// How many requests were recorded, and how many resumed sessions.
const RECORDED: (usize, usize) = (114, 45);

/// One request of the client, and where in which log its context is to be had.
struct Request {
    name: String,
    input: Value,
    /// The header of the rollout tells the base instructions.
    instructions: Option<String>,
    place: Place,
    /// The model was asked for a summary.
    for_summary: bool,
    /// The session was taken up again, with this prompt.
    probe: Option<&'static str>,
}

/// A place in a log; of a session that goes on from another one's, that place as well.
#[derive(Clone)]
struct Place {
    log: PathBuf,
    before: Option<String>,
    parent: Option<(PathBuf, u64)>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let requests = match requests(scratch.path()) {
        Ok(requests) => Arc::new(requests),
        Err(why) => {
            let broken = Trial::test("the recorded requests can be read", move || Err(Failed::from(why)));
            return libtest_mimic::run(&arguments, vec![broken]).exit_code();
        }
    };
    let mut trials = Vec::new();
    for index in 0..requests.len() {
        let all = Arc::clone(&requests);
        let name = requests[index].name.clone();
        trials.push(Trial::test(name, move || {
            all[index].equals(&REPAIRS.iter().collect::<Vec<_>>()).map_err(Failed::from)
        }));
    }
    for repair in REPAIRS {
        let all = Arc::clone(&requests);
        trials.push(Trial::test(format!("{} fires where it should", repair.name), move || {
            fires(repair, &all).map_err(Failed::from)
        }));
        let all = Arc::clone(&requests);
        trials.push(Trial::test(format!("without {} requests differ", repair.name), move || {
            needed(repair, &all).map_err(Failed::from)
        }));
    }
    let all = Arc::clone(&requests);
    trials.push(Trial::test("every recorded request is here", move || complete(&all).map_err(Failed::from)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Reads all recorded requests, imports what the client left behind, and finds the place of each.
fn requests(scratch: &Path) -> Result<Vec<Request>, String> {
    let sources = fixtures::folder().join("sources/codex");
    let mut scenarios: Vec<PathBuf> =
        fs::read_dir(&sources).map_err(|e| e.to_string())?.filter_map(|e| Some(e.ok()?.path())).collect();
    scenarios.sort();
    let mut requests = Vec::new();
    for folder in scenarios {
        let scenario = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let home = folder.join("home");
        if !home.is_dir() {
            continue;
        }
        let logs = imported(&home, &scratch.join(&scenario))?;
        live(&scenario, &folder, &logs, &mut requests)?;
        resumed(&scenario, &folder, &logs, scratch, &mut requests)?;
    }
    Ok(requests)
}

fn imported(source: &Path, into: &Path) -> Result<Vec<Log>, String> {
    let mut logs = Vec::new();
    for session in discover(source, None).map_err(|e| e.to_string())?.sessions {
        let report = session.import(&mut Directory::new(into), &Options::default()).map_err(|e| e.to_string())?;
        for log in report.logs.iter().filter_map(|log| log.path.as_deref()) {
            logs.push(Log::read(log)?);
        }
    }
    Ok(logs)
}

/// What the client sent while it ran.
fn live(scenario: &str, folder: &Path, logs: &[Log], requests: &mut Vec<Request>) -> Result<(), String> {
    let Ok(text) = fs::read_to_string(folder.join("requests.jsonl")) else { return Ok(()) };
    for line in text.lines() {
        let recorded = json::value(line).map_err(|e| format!("{scenario}: {e}"))?;
        let n = json::count(&recorded, "/n").ok_or("a request without a number")?;
        let response = format!("resp_mock{n:04}");
        let found = logs.iter().find_map(|log| Some((log, first_of(log, &response)?)));
        let Some((log, event)) = found else {
            if UNANSWERED.contains(&(scenario, n)) {
                continue;
            }
            return Err(format!("{scenario} {n}: no log has its response"));
        };
        requests.push(Request {
            name: format!("{scenario} {n}"),
            input: recorded["input"].clone(),
            instructions: instructions(log),
            for_summary: event["data"]["purpose"] == "summary",
            place: Place {
                log: log.path.clone(),
                before: json::text(event, "/id").map(str::to_owned),
                parent: parent(log, logs),
            },
            probe: None,
        });
    }
    Ok(())
}

/// The first message of a response: its messages stand right before what is known of it.
fn first_of<'l>(log: &'l Log, response: &str) -> Option<&'l Value> {
    let end = log
        .events
        .iter()
        .position(|e| e["type"] == "model.response" && e["data"]["response"] == response && e["copy"].is_null())?;
    let other =
        |e: &Value| e["type"] == "model.response" || e["type"] == "message.added" && e["data"]["role"] != "assistant";
    let own = log.events[..end].iter().rev().take_while(|e| !other(e) && e["type"] != "context.compacted");
    own.filter(|e| e["type"] == "message.added").last()
}

/// What the client sends when it takes a session up again.
fn resumed(
    scenario: &str,
    folder: &Path,
    logs: &[Log],
    scratch: &Path,
    requests: &mut Vec<Request>,
) -> Result<(), String> {
    let Ok(text) = fs::read_to_string(folder.join("oracle.json")) else { return Ok(()) };
    let oracle = json::value(&text).map_err(|e| format!("{scenario}: {e}"))?;
    for (path, told) in oracle.as_object().into_iter().flatten() {
        let Some(input) = told["resume_input"].as_array().filter(|input| !input.is_empty()) else { continue };
        let own = if path.starts_with("home/") {
            Vec::new()
        } else {
            imported(&folder.join(path), &scratch.join(format!("{scenario}-{path}")))?
        };
        let is_it =
            |log: &&Log| json::text(&log.events[1], "/data/locator").is_some_and(|locator| path.ends_with(locator));
        let log =
            own.first().or_else(|| logs.iter().find(is_it)).ok_or_else(|| format!("{scenario}: no log of {path}"))?;
        requests.push(Request {
            name: format!("{scenario} resumed: {}", short(path)),
            input: input.clone().into(),
            instructions: instructions(log),
            for_summary: false,
            place: Place { log: log.path.clone(), before: None, parent: parent(log, logs) },
            probe: Some("PROBE"),
        });
    }
    Ok(())
}

/// A file in short: its name, or the beginning of the thread's id in it.
fn short(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let thread = name
        .len()
        .checked_sub("01a2272d-2378-7b93-b602-3c86f973e062.jsonl".len())
        .filter(|_| name.starts_with("rollout-"));
    thread.map_or(name, |at| &name[at..at + 13])
}

fn instructions(log: &Log) -> Option<String> {
    log.of_type("config.set").find_map(|e| json::text(e, "/data/instructions")).map(str::to_owned)
}

/// The last event of the parent that a log goes on from.
fn parent(log: &Log, logs: &[Log]) -> Option<(PathBuf, u64)> {
    let named = &log.events[0]["data"]["parent"];
    let parent = logs.iter().find(|l| named["log"] == l.id())?;
    Some((parent.path.clone(), json::count(parent.event(json::text(named, "/event")?)?, "/seq")?))
}

/// The context at a place. That the log goes on from another one, if it does, is all that it lacks.
fn context(log: &Path, at: At<'_>, goes_on: bool) -> Result<Vec<Value>, String> {
    let file = File::open(log).map_err(|e| e.to_string())?;
    let context = openai::context(file, at, Some(&BlobStore::beside(log))).map_err(|e| e.to_string())?;
    let elsewhere = context.omitted.iter().filter(|o| o.log.is_some() && o.event.is_some()).count();
    if (elsewhere, context.omitted.len()) != (usize::from(goes_on), usize::from(goes_on)) {
        return Err(format!("omitted: {:?}", context.omitted));
    }
    context.input.iter().map(|item| json::value(item.get()).map_err(|e| e.to_string())).collect()
}

impl Request {
    fn context(&self, repairs: &[&Repair]) -> Result<(Vec<Value>, BTreeMap<&'static str, usize>), String> {
        let Place { log, before, parent } = &self.place;
        let mut items = match parent {
            Some((parent, last)) => context(parent, At::Seq(*last), false)?,
            None => Vec::new(),
        };
        items.extend(context(log, before.as_deref().map_or(At::Head, At::Before), parent.is_some())?);
        if let Some(probe) = self.probe {
            items.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": probe}]}));
        }
        items = common(items, self.instructions.as_deref());
        let fired = repairs.iter().map(|repair| (repair.name, (repair.apply)(&mut items, self))).collect();
        Ok((items, fired))
    }

    fn equals(&self, repairs: &[&Repair]) -> Result<(), String> {
        let (found, _) = self.context(repairs)?;
        let expected = common(self.input.as_array().cloned().unwrap_or_default(), self.instructions.as_deref());
        if found == expected {
            return Ok(());
        }
        let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(found.len().min(expected.len()));
        let show = |side: &[Value]| side.get(at).map_or_else(|| "nothing".into(), Value::to_string);
        Err(format!("item {at}: the client sent\n  {}\nthe log gives\n  {}", show(&expected), show(&found)))
    }
}

/// The common form.
fn common(items: Vec<Value>, instructions: Option<&str>) -> Vec<Value> {
    let is_base = |item: &Value| {
        item["role"] == "developer" && instructions.is_some() && json::text(item, "/content/0/text") == instructions
    };
    let mut items: Vec<Value> =
        items.into_iter().enumerate().filter(|(at, item)| *at > 0 || !is_base(item)).map(|(_, item)| item).collect();
    for item in &mut items {
        let Some(members) = item.as_object_mut() else { continue };
        members.retain(|name, value| name != "id" && name != "status" && !value.is_null());
        for list in ["content", "output"] {
            for part in members
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
                .filter_map(Value::as_object_mut)
            {
                part.retain(|name, _| name != "annotations" && name != "detail");
                if let Some(Value::String(text)) = part.get_mut("text") {
                    *text = without_filling(text);
                }
            }
        }
        if let Some([one]) = members.get("output").and_then(Value::as_array).map(Vec::as_slice)
            && let Some(text) = one.get("text").cloned()
        {
            members.insert("output".into(), text);
        }
    }
    items
}

/// In the files the mark of a text that was taken out is filled up to the length of the text.
fn without_filling(text: &str) -> String {
    let mut pieces = text.split(ELIDED);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(ELIDED);
        out.push_str(piece.trim_start_matches('.'));
    }
    out
}

/// What the client tells the model of its surroundings when a session is taken up under other settings.
fn fresh_context(items: &mut Vec<Value>, request: &Request) -> usize {
    let sent = common(request.input.as_array().cloned().unwrap_or_default(), request.instructions.as_deref());
    if request.probe.is_none() {
        return 0;
    }
    let Some(probe) = items.pop() else { return 0 };
    let is_context = |item: &&Value| {
        let wrapped = json::text(item, "/content/0/text").is_some_and(|text| text.starts_with("<environment_context>"));
        item["type"] == "message" && (item["role"] == "developer" || item["role"] == "user" && wrapped)
    };
    let run = |items: &[Value]| items.iter().rev().take_while(is_context).count();
    let before_probe = &sent[..sent.len().saturating_sub(1)];
    let fired = run(before_probe).saturating_sub(run(items));
    items.extend_from_slice(&before_probe[before_probe.len() - fired..]);
    items.push(probe);
    fired
}

/// A call without an output gets one that says so, right behind it. The client makes it up at each resume.
fn aborted(items: &mut Vec<Value>, _: &Request) -> usize {
    let told: BTreeSet<String> = items
        .iter()
        .filter(|i| i["type"].as_str().is_some_and(|t| t.ends_with("_output")))
        .filter_map(|i| json::text(i, "/call_id").map(str::to_owned))
        .collect();
    let (mut out, mut fired) = (Vec::new(), 0);
    for item in items.drain(..) {
        let output = match item["type"].as_str() {
            Some("function_call") => Some("function_call_output"),
            Some("custom_tool_call") => Some("custom_tool_call_output"),
            _ => None,
        };
        let call = json::text(&item, "/call_id").map(str::to_owned);
        out.push(item);
        if let (Some(output), Some(call)) = (output, call.filter(|call| !told.contains(call))) {
            out.push(json!({"type": output, "call_id": call, "output": "aborted"}));
            fired += 1;
        }
    }
    *items = out;
    fired
}

/// Who asks for a summary ends with the client's prompt for it, which is nowhere written down.
fn summary_prompt(items: &mut Vec<Value>, request: &Request) -> usize {
    let last = request.input.as_array().and_then(|input| input.last()).filter(|_| request.for_summary);
    let prompt = last.filter(|last| last["role"] == "user");
    items.extend(prompt.into_iter().flat_map(|prompt| common(vec![prompt.clone()], None)));
    usize::from(prompt.is_some())
}

/// A repair fires in the requests that it names, and in no other.
fn fires(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let mut found = BTreeSet::new();
    for request in requests {
        if request.context(&[repair])?.1.values().any(|times| *times > 0) {
            found.insert(request.name.as_str());
        }
    }
    let expected: BTreeSet<_> = repair.fires.iter().copied().collect();
    if found.is_empty() || found != expected {
        return Err(format!("it fires in {found:#?}, and should in {expected:#?}"));
    }
    Ok(())
}

/// Without a repair the requests that it fires in differ, and no other.
fn needed(repair: &Repair, requests: &[Request]) -> Result<(), String> {
    let others: Vec<&Repair> = REPAIRS.iter().filter(|other| other.name != repair.name).collect();
    for request in requests {
        let fires = repair.fires.contains(&request.name.as_str());
        if request.equals(&others).is_ok() == fires {
            return Err(format!("{}: fires {fires}, and the request is equal without it: {}", request.name, !fires));
        }
    }
    Ok(())
}

fn complete(requests: &[Request]) -> Result<(), String> {
    let resumed = requests.iter().filter(|r| r.probe.is_some()).count();
    let found = (requests.len() - resumed, resumed);
    if found == RECORDED {
        Ok(())
    } else {
        Err(format!("requests and resumed sessions: {found:?}, and not {RECORDED:?}"))
    }
}
